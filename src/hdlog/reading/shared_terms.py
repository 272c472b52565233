"""One table of terms for all splits that are read at once: each adds its terms when those before it have, so that numbers do not depend on who is faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Condition, RLock
from typing import Protocol

import numpy as np
import pyarrow as pa

from hdlog.reading.arrays import Fields, list_bytes, string_bytes
from hdlog.reading.kernels import Bytes, Places
from hdlog.reading.term_table import MarkedTerms, TermTable, mark

_UNDERSCORE = ord("_")
Rename = Callable[[pa.Array], pa.Array]
"""Blank nodes of a file as nodes of that file."""


class Terms(Protocol):
    """Where the terms of a split go."""

    def add(self, data: Bytes, begins: Places, ends: Places, bare: bool = False) -> Places:
        """The ids of the terms at these places: numbers, or those of integers. Bare ones are strings, without quotes and escapes."""

    def add_texts(self, texts: pa.Array | Sequence[str]) -> Places: ...

    def add_strings(self, strings: pa.Array) -> Places:
        """The ids of strings, as they are, without quotes and escapes."""

    def text(self, number: int) -> str: ...


class SharedTerms:
    """A table of terms that somebody else reads, too, under a lock."""

    def __init__(self, table: TermTable, lock: RLock) -> None:
        self.table = table
        self.lock = lock
        self._done: set[int] = set()
        self._next = 0
        self._changed = Condition()

    def reserve(self, room: int) -> None:
        """Have room for texts of so many bytes."""
        with self.lock:
            self.table.reserve(room)

    def wait_for(self, number: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._next >= number)

    def finish(self, number: int) -> None:
        """A split adds nothing more."""
        with self._changed:
            self._done.add(number)
            while self._next in self._done:
                self._done.remove(self._next)
                self._next += 1
            self._changed.notify_all()


class TermsInTurn:
    """The shared table, as one split sees it."""

    def __init__(self, shared: SharedTerms, number: int, rename: Rename | None) -> None:
        self._shared = shared
        self._number = number
        self._rename = rename
        self.known = 0
        """how many terms there are with those of this split"""

    @contextmanager
    def _turn(self) -> Iterator[TermTable]:
        self._shared.wait_for(self._number)
        with self._shared.lock:
            yield self._shared.table
            self.known = len(self._shared.table)

    def add(self, data: Bytes, begins: Places, ends: Places, bare: bool = False) -> Places:
        if self._rename is None or bare:
            return self._add_marked(mark(data, begins, ends, bare))
        # No term of RDF is empty.
        is_blank = data[begins] == _UNDERSCORE
        blank, others = np.flatnonzero(is_blank), np.flatnonzero(~is_blank)
        if not len(blank):
            return self._add_marked(mark(data, begins, ends, bare))
        labels = (
            Fields(data, begins[blank], ends[blank], True).array().cast(pa.large_string()).cast(pa.string())
        )
        distinct = labels.dictionary_encode()
        ids = np.empty(len(begins), np.int64)
        ids[others] = self._add_marked(mark(data, begins[others], ends[others], bare))
        renamed, offsets = string_bytes(self._rename(distinct.dictionary))
        nodes = self._add_marked(mark(renamed, offsets[:-1], offsets[1:], bare))
        ids[blank] = nodes[distinct.indices.to_numpy()]
        return ids

    def _add_marked(self, terms: MarkedTerms) -> Places:
        with self._turn() as table:
            return table.add_marked(terms)

    def add_texts(self, texts: pa.Array | Sequence[str]) -> Places:
        data, offsets = string_bytes(texts) if isinstance(texts, pa.Array) else list_bytes(texts)
        return self.add(data, offsets[:-1], offsets[1:])

    def add_strings(self, strings: pa.Array) -> Places:
        data, offsets = string_bytes(strings)
        return self.add(data, offsets[:-1], offsets[1:], bare=True)

    def text(self, number: int) -> str:
        with self._turn() as table:
            return table.text(number)
