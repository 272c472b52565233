"""Arrays in a file that is mapped into memory, each under its name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.errors import StoreError
from hdlog.store import disk
from hdlog.store.disk import File
from hdlog.store.store import Store

_MARK = b"hdlog-segment-1\n"
_ALIGNED = 64
_SMALL = 4096
"""Elements of an array that is written by itself."""
_TAIL = 8
"""Bytes at the end: where the directory begins."""
Arrays = Mapping[str, NDArray[Any]]
Parts = Mapping[str, Sequence[NDArray[Any]]]
"""Arrays, each as parts that stand one behind the other."""


def write_segment(store: Store, arrays: Parts) -> File:
    """Arrays one behind the other, then a directory of them. One that has nothing but zeros is not written."""
    directory: dict[str, tuple[str, int, int]] = {}
    with store.create("image", "segment") as (path, sink):
        sink.write(_MARK)
        for name, parts in arrays.items():
            place = 0
            if any(part.any() for part in parts):
                sink.write(b"\0" * (-sink.bytes % _ALIGNED))
                place = sink.bytes
                for piece in _in_larger_pieces(parts):
                    sink.write(np.ascontiguousarray(piece))
            directory[name] = (parts[0].dtype.str, place, sum(map(len, parts)))
        place = sink.bytes
        sink.write(json.dumps(directory).encode())
        sink.write(place.to_bytes(_TAIL, "little"))
    return File(path, sink.bytes, sink.checksum)


def _in_larger_pieces(parts: Sequence[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """Arrays with small ones put together: each write has its price."""
    waiting: list[NDArray[Any]] = []
    for part in parts:
        if len(part) >= _SMALL or len(waiting) >= _SMALL:
            yield from [np.concatenate(waiting)] if waiting else []
            waiting = []
        if len(part) >= _SMALL:
            yield part
        else:
            waiting.append(part)
    yield from [np.concatenate(waiting)] if waiting else []


def map_segment(store: Store, file: File) -> dict[str, NDArray[Any]]:
    """The arrays where they are; what is changed in them is changed for this process only."""
    data = disk.map_bytes(store.folder, file)
    damaged = StoreError(f"{store.folder / file.path}: damaged; this is no segment of a store")
    if len(data) < len(_MARK) + _TAIL or data[: len(_MARK)].tobytes() != _MARK:
        raise damaged
    try:
        place = int.from_bytes(data[-_TAIL:].tobytes(), "little")
        directory = json.loads(data[place:-_TAIL].tobytes())
        return {name: _map_array(data, *entry) for name, entry in directory.items()}
    except (ValueError, TypeError, AttributeError):
        raise damaged from None


def _map_array(data: NDArray[np.uint8], kind: str, place: int, length: int) -> NDArray[Any]:
    if not place:
        return np.zeros(length, kind)  # takes no memory before somebody writes to it
    return data[place : place + length * np.dtype(kind).itemsize].view(kind)
