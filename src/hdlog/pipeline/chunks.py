"""Terms and columns of one split, as they come in, into a chunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdlog.engines.load import InputError
from hdlog.pipeline import kernels
from hdlog.pipeline.kernels import Bytes, Places
from hdlog.pipeline.splits import LineNumbers, Split
from hdlog.program.model import Predicate

PROBLEMS = 10
"""How many skipped lines are told of."""
MOST_BYTES = (1 << 31) - 1
"""How long the texts of a chunk can be; Arrow's strings have offsets of 32 bits."""


@dataclass
class Chunk:
    """The facts of a split.

    `texts` are distinct terms, as canonical N-Triples text. The columns of the facts have places in `texts`, or, below
    zero, ids of integers, which have no text. `skipped` lines were malformed; `problems` tells of the first of them.
    """

    texts: pa.Array
    facts: dict[Predicate, list[NDArray[np.int64]]]
    rows: int
    skipped: int = 0
    problems: list[str] = field(default_factory=list)


class TermTable:
    """Distinct terms, each with a number, in the order in which they came."""

    def __init__(self) -> None:
        self._slots = np.zeros(1 << 10, np.uint64)
        self._texts = np.empty(1 << 16, np.uint8)
        self._starts = np.zeros(1 << 10, np.int64)
        self._size = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return int(self._size[0])

    @property
    def bytes(self) -> int:
        return int(self._starts[len(self)])

    def add(self, data: Bytes, begins: Places, ends: Places) -> Places:
        """The ids of the terms at these places: numbers of this table, or those of integers."""
        ids = np.empty(len(begins), np.int64)
        done = 0
        while True:
            table = (self._slots, self._texts, self._starts, self._size)
            done = kernels.intern(data, begins, ends, done, *table, ids)
            if done == len(begins):
                return ids
            self._grow(2 * int(ends[done] - begins[done]))

    def add_texts(self, texts: pa.Array | Sequence[str]) -> Places:
        data, offsets = string_bytes(texts if isinstance(texts, pa.Array) else pa.array(texts, pa.string()))
        return self.add(data, offsets[:-1].copy(), offsets[1:].copy())

    def text(self, number: int) -> str:
        return self._texts[self._starts[number] : self._starts[number + 1]].tobytes().decode()

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


class Reading:
    """What has been read of a split."""

    def __init__(self, split: Split, types: Mapping[str, Sequence[str]], lenient: bool) -> None:
        self.split, self.types, self.lenient = split, types, lenient
        self.terms = TermTable()
        self.lines = LineNumbers(split)
        self.rows = self.skipped = 0
        self.problems: list[str] = []
        self._parts: dict[Predicate, list[list[Places]]] = {}

    def add(self, predicate: Predicate, columns: list[Places], rows: int) -> None:
        if rows:
            self._parts.setdefault(predicate, []).append(columns)
            self.rows += rows

    def refuse(self, line: Callable[[], int], why: str) -> None:
        """Skip a line, or give up; only then, or for the first few, is its number asked for."""
        if not self.lenient:
            raise InputError(f"{self.split.path}:{line()}: {why}")
        self.skipped += 1
        if len(self.problems) < PROBLEMS:
            self.problems.append(f"{self.split.path}:{line()}: {why}")

    def chunk(self) -> Chunk:
        if self.terms.bytes > MOST_BYTES:
            raise InputError(
                f"{self.split.path}: more than 2 GB of terms in one part; cut it into smaller files"
            )
        facts = {p: _joined(parts) for p, parts in self._parts.items()}
        return Chunk(self.terms.texts(), facts, self.rows, self.skipped, self.problems)


def _joined(parts: list[list[Places]]) -> list[Places]:
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]


def groups(keys: NDArray[Any]) -> list[tuple[int, Places]]:
    """Each key with the rows it is in, rising."""
    small = keys.astype(np.uint16) if len(keys) and keys.min() >= 0 and keys.max() < 1 << 16 else keys
    order = np.argsort(small, kind="stable")  # of small keys by counting
    ordered = keys[order]
    firsts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(keys) else order
    parts = np.split(order, firsts[1:])
    return [(int(ordered[first]), part) for first, part in zip(firsts, parts, strict=False)]
