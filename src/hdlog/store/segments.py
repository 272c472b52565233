"""Arrays in a file that is mapped into memory, each under its name."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.errors import StoreError
from hdlog.store import disk
from hdlog.store.disk import File
from hdlog.store.store import Store

_MARK = b"hdlog-segment-2\n"
_ALIGNED = 64
_SMALL = 4096
"""Elements of an array that is written by itself."""
_BLOCKS = "#blocks"
"""The name of the checksums of blocks in the directory."""
_SOME = 32
"""Blocks of a large file that are checked when it is opened."""
_SUM, _TAIL = 4, 8
"""Bytes at the end: the checksum of the directory, and where that begins."""
Arrays = Mapping[str, NDArray[Any]]
Parts = Mapping[str, Sequence[NDArray[Any]]]
"""Arrays, each as parts that stand one behind the other."""


def write_segment(store: Store, arrays: Parts) -> File:
    """Arrays one behind the other, then a directory of them. One that has nothing but zeros is not written."""
    directory: dict[str, Any] = {}
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
        directory[_BLOCKS] = list(sink.blocks)
        text = json.dumps(directory).encode()
        sink.write(text)
        sink.write(zlib.crc32(text).to_bytes(_SUM, "little"))
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
        text, checksum = data[place : -_TAIL - _SUM].tobytes(), data[-_TAIL - _SUM : -_TAIL].tobytes()
        if zlib.crc32(text) != int.from_bytes(checksum, "little"):
            raise damaged
        directory = json.loads(text)
        if file.bytes > disk.CHECKED and not _are_as_written(data[:place], directory.get(_BLOCKS, ())):
            raise damaged
        directory.pop(_BLOCKS, None)
        return {name: _map_array(data, *entry) for name, entry in directory.items()}
    except (ValueError, TypeError, AttributeError):
        raise damaged from None


def _are_as_written(data: NDArray[np.uint8], blocks: Sequence[int]) -> bool:
    """Whether some blocks are: the first, the last, and others by chance, which is soon done and finds what is spoilt at large."""
    some = {0, len(blocks) - 1, *random.sample(range(len(blocks)), min(_SOME, len(blocks)))} if blocks else ()
    parts = ((number, data[number * disk.BLOCK : (number + 1) * disk.BLOCK]) for number in some)
    return all(zlib.crc32(part.data) == blocks[number] for number, part in parts)


def _map_array(data: NDArray[np.uint8], kind: str, place: int, length: int) -> NDArray[Any]:
    if not place:
        return np.zeros(length, kind)  # takes no memory before somebody writes to it
    return data[place : place + length * np.dtype(kind).itemsize].view(kind)
