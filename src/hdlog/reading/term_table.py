"""Distinct texts of terms, each with a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdlog.program.terms import XSD_DOUBLE
from hdlog.reading import kernels
from hdlog.reading.arrays import list_bytes, string_bytes
from hdlog.reading.kernels import Bytes, Places

_DOUBLE_MARK = f'"^^<{XSD_DOUBLE}>'
MOST_BYTES = (1 << 31) - 1
"""How long the texts of a chunk can be; Arrow's strings have offsets of 32 bits."""


@dataclass(frozen=True)
class FrozenTexts:
    """Texts as a `TermTable` has them, kept elsewhere, and never changed."""

    slots: NDArray[np.uint64]
    texts: Bytes
    starts: Places

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True)
class MarkedTerms:
    """Terms at some places, and what is known of each before it is looked up."""

    data: Bytes
    begins: Places
    ends: Places
    bare: bool
    marks: NDArray[np.uint64]
    ids: Places
    """of integers in their shortest form"""


def mark(data: Bytes, begins: Places, ends: Places, bare: bool) -> MarkedTerms:
    """What can be done without a table."""
    marks, ids = np.empty(len(begins), np.uint64), np.empty(len(begins), np.int64)
    kernels.mark_terms(data, begins, ends, bare, marks, ids)
    return MarkedTerms(data, begins, ends, bare, marks, ids)


_NOTHING = FrozenTexts(np.zeros(1, np.uint64), np.empty(0, np.uint8), np.zeros(1, np.int64))


class TermTable:
    """Distinct terms, each with a number, in the order in which they came. The first of them may be kept elsewhere."""

    def __init__(self, base: FrozenTexts = _NOTHING) -> None:
        self.base = base
        self._slots = np.zeros(1 << 10, np.uint64)
        self._texts = np.empty(1 << 12, np.uint8)
        self._starts = np.zeros(1 << 10, np.int64)
        self._size = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return len(self.base) + self._own

    @property
    def _own(self) -> int:
        return int(self._size[0])

    @property
    def bytes(self) -> int:
        """Of the texts that are not kept elsewhere."""
        return int(self._starts[self._own])

    def add(self, data: Bytes, begins: Places, ends: Places, bare: bool = False) -> Places:
        """The ids of the terms at these places: numbers of this table, or those of integers.

        Bare ones are strings, without quotes and escapes.
        """
        return self.add_marked(mark(data, begins, ends, bare))

    def add_marked(self, terms: MarkedTerms) -> Places:
        if not len(self.base):
            return self._add_own(terms)
        ids = self.find(terms.data, terms.begins, terms.ends, terms.bare)
        unknown = np.flatnonzero(ids == -1)
        if len(unknown):
            rest = mark(terms.data, terms.begins[unknown], terms.ends[unknown], terms.bare)
            ids[unknown] = self._add_own(rest) + len(self.base)
        return ids

    def find(self, data: Bytes, begins: Places, ends: Places, bare: bool = False) -> Places:
        """Likewise of those that are kept elsewhere; -1 for others."""
        ids = np.empty(len(begins), np.int64)
        longest = int((ends - begins).max(initial=0))
        scratch = np.empty(2 * longest + 2, np.uint8)
        base = self.base
        kernels.look_up(data, begins, ends, bare, base.slots, base.texts, base.starts, ids, scratch)
        return ids

    def _add_own(self, terms: MarkedTerms) -> Places:
        done = 0
        while True:
            table = (self._slots, self._texts, self._starts, self._size)
            done = kernels.intern(
                terms.data, terms.begins, terms.ends, terms.bare, terms.marks, done, *table, terms.ids
            )
            if done == len(terms.begins):
                return terms.ids
            self._grow(2 * int(terms.ends[done] - terms.begins[done]) + 2)

    def reserve(self, room: int) -> None:
        """Have room for texts of so many bytes, as far as there is any; what is not written takes no memory."""
        used = self.bytes
        if used + room > len(self._texts):
            try:
                texts = np.empty(used + room, np.uint8)
            except MemoryError:
                return
            texts[:used] = self._texts[:used]
            self._texts = texts

    def add_texts(self, texts: pa.Array | Sequence[str]) -> Places:
        data, offsets = string_bytes(texts) if isinstance(texts, pa.Array) else list_bytes(texts)
        return self.add(data, offsets[:-1], offsets[1:])

    def add_strings(self, strings: pa.Array) -> Places:
        """The ids of strings, as they are, without quotes and escapes."""
        data, offsets = string_bytes(strings)
        return self.add(data, offsets[:-1], offsets[1:], bare=True)

    def text(self, number: int) -> str:
        texts, starts, own = (
            (self.base.texts, self.base.starts, number)
            if number < len(self.base)
            else (self._texts, self._starts, number - len(self.base))
        )
        return texts[starts[own] : starts[own + 1]].tobytes().decode()

    def array(self, first: int = 0) -> pa.Array:
        """The texts from a number on, as they are in memory; not those that are kept elsewhere."""
        assert first >= len(self.base), "only what came here is here"
        offsets = self._starts[first - len(self.base) : self._own + 1]
        return pa.LargeStringArray.from_buffers(
            len(self) - first, pa.py_buffer(offsets), pa.py_buffer(self._texts[: self.bytes])
        )

    def take(self, numbers: Places) -> pa.Array:
        """The texts with some numbers."""
        if not len(self.base):
            return self.array().take(pa.array(numbers))
        there = numbers < len(self.base)
        base = pa.LargeStringArray.from_buffers(
            len(self.base), pa.py_buffer(self.base.starts), pa.py_buffer(self.base.texts)
        )
        if there.all():
            return base.take(pa.array(numbers))
        own = self.array(len(self.base)).take(pa.array(numbers[~there] - len(self.base)))
        both = pa.concat_arrays([base.take(pa.array(numbers[there])), own])
        order = np.empty(len(numbers), np.int64)
        order[np.flatnonzero(there)] = np.arange(int(there.sum()))
        order[np.flatnonzero(~there)] = np.arange(int(there.sum()), len(numbers))
        return both.take(pa.array(order))

    def texts(self) -> pa.Array:
        assert not len(self.base), "chunks have all their texts"
        offsets = self._starts[: self._own + 1]
        assert offsets[-1] <= MOST_BYTES, "whoever asks for them has looked at `bytes`"
        data = self._texts[: offsets[-1]]
        return pa.StringArray.from_buffers(
            self._own, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)
        )

    def freeze(self) -> FrozenTexts:
        """All texts, and a hash table of them."""
        starts = self._starts[: self._own + 1]
        if not len(self.base):
            return FrozenTexts(self._slots, self._texts[: starts[-1]], starts)
        shift = np.uint64(len(self.base))
        slots = np.zeros(1 << (2 * len(self)).bit_length(), np.uint64)
        kernels.move(self.base.slots, slots)
        # A slot has the number of its text, plus one, in its lower half.
        kernels.move(np.where(self._slots != 0, self._slots + shift, 0).astype(np.uint64), slots)
        return FrozenTexts(
            slots,
            np.concatenate([self.base.texts, self._texts[: starts[-1]]]),
            np.concatenate([self.base.starts, starts[1:] + self.base.starts[-1]]),
        )

    def _grow(self, room: int) -> None:
        """Twice the room for whatever has too little of it, and for a text of so many bytes."""
        if 2 * self._own >= len(self._slots):
            slots = np.zeros(4 * len(self._slots), np.uint64)
            kernels.move(self._slots, slots)
            self._slots = slots
        if self._own + 1 >= len(self._starts):
            self._starts = np.concatenate([self._starts, np.zeros_like(self._starts)])
        used = self.bytes
        if used + room > len(self._texts):
            texts = np.empty(2 * len(self._texts) + room, np.uint8)
            texts[:used] = self._texts[:used]
            self._texts = texts


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
