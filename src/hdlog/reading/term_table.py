"""Distinct texts of terms, each with a number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdlog.program.terms import XSD_DOUBLE
from hdlog.reading import kernels
from hdlog.reading.kernels import Bytes, Places

_DOUBLE_MARK = f'"^^<{XSD_DOUBLE}>'
MOST_BYTES = (1 << 31) - 1
"""How long the texts of a chunk can be; Arrow's strings have offsets of 32 bits."""


class TermTable:
    """Distinct terms, each with a number, in the order in which they came."""

    def __init__(self) -> None:
        self._slots = np.zeros(1 << 10, np.uint64)
        self._texts = np.empty(1 << 12, np.uint8)
        self._starts = np.zeros(1 << 10, np.int64)
        self._size = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return int(self._size[0])

    @property
    def bytes(self) -> int:
        return int(self._starts[len(self)])

    def add(self, data: Bytes, begins: Places, ends: Places, bare: bool = False) -> Places:
        """The ids of the terms at these places: numbers of this table, or those of integers.

        Bare ones are strings, without quotes and escapes.
        """
        ids = np.empty(len(begins), np.int64)
        done = 0
        while True:
            table = (self._slots, self._texts, self._starts, self._size)
            done = kernels.intern(data, begins, ends, bare, done, *table, ids)
            if done == len(begins):
                return ids
            self._grow(2 * int(ends[done] - begins[done]) + 2)

    def add_texts(self, texts: pa.Array | Sequence[str]) -> Places:
        data, offsets = string_bytes(texts) if isinstance(texts, pa.Array) else list_bytes(texts)
        return self.add(data, offsets[:-1].copy(), offsets[1:].copy())

    def add_strings(self, strings: pa.Array) -> Places:
        """The ids of strings, as they are, without quotes and escapes."""
        data, offsets = string_bytes(strings)
        return self.add(data, offsets[:-1].copy(), offsets[1:].copy(), bare=True)

    def text(self, number: int) -> str:
        return self._texts[self._starts[number] : self._starts[number + 1]].tobytes().decode()

    def array(self, first: int = 0) -> pa.Array:
        """The texts from a number on, as they are in memory."""
        offsets = self._starts[first : len(self) + 1]
        return pa.LargeStringArray.from_buffers(
            len(self) - first, pa.py_buffer(offsets), pa.py_buffer(self._texts[: self.bytes])
        )

    def texts(self) -> pa.Array:
        offsets = self._starts[: len(self) + 1]
        assert offsets[-1] <= MOST_BYTES, "whoever asks for them has looked at `bytes`"
        data = self._texts[: offsets[-1]]
        return pa.StringArray.from_buffers(
            len(self), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)
        )

    def _grow(self, room: int) -> None:
        """Twice the room for whatever has too little of it, and for a text of so many bytes."""
        if 2 * len(self) >= len(self._slots):
            slots = np.zeros(4 * len(self._slots), np.uint64)
            kernels.move(self._slots, slots)
            self._slots = slots
        if len(self) + 1 >= len(self._starts):
            self._starts = np.concatenate([self._starts, np.zeros_like(self._starts)])
        used = self.bytes
        if used + room > len(self._texts):
            texts = np.empty(2 * len(self._texts) + room, np.uint8)
            texts[:used] = self._texts[:used]
            self._texts = texts


def list_bytes(texts: Sequence[str]) -> tuple[Bytes, Places]:
    """The bytes of some texts, and where each begins. Arrow would look whether they are of pandas, and import it for that."""
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


def string_bytes(array: pa.Array) -> tuple[Bytes, Places]:
    """The bytes of an array of strings, and where each begins and the last ends."""
    kind = (
        np.int64 if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type) else np.int32
    )
    _, offsets, data = array.buffers()
    if not len(array) or offsets is None:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    places = np.frombuffer(offsets, kind)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data or b"", np.uint8), places.astype(np.int64)


def classify(
    texts: pa.Array,
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """The kind of each term, its value as an integer and as a double, and whether it is an integer in its shortest form."""
    data, starts = string_bytes(texts)
    kinds, shortest = np.empty(len(texts), np.uint8), np.empty(len(texts), np.bool_)
    integers = np.zeros(len(texts), np.int64)
    kernels.classify(data, starts, kinds, integers, shortest)
    doubles = integers.astype(np.float64)
    at = np.flatnonzero(kinds == kernels.DOUBLE)
    if len(at):
        lexical = pc.utf8_slice_codeunits(texts.take(pa.array(at)), 1, -len(_DOUBLE_MARK))
        doubles[at] = [float(text) for text in lexical.to_pylist()]
    return kinds, integers, doubles, shortest
