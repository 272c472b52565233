"""Rows of ids as single 64-bit keys, whatever their width.

A row is cut in two: the left part, by which rows are looked up, and the right part. Each part is one
32-bit id: nothing is 0, one column is itself, more columns are the id of a pair in the `PairTable`,
from the left. So every index of every table is one sorted array of `left << 32 | right`.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.kernels import Ids, Keys, Rows
from hdlog.engines.columnar.kernels.halves import pack, unpack
from hdlog.engines.columnar.kernels.hashing import intern, rehash

UNKNOWN = np.uint32(0xFFFFFFFF)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_BATCH = 1 << 20


Frozen = tuple[Keys, Ids]
"""Keys by position, and a hash table of their positions: as a `KeyTable` has them, and they are never changed."""


class KeyTable:
    """64-bit keys with dense positions, in the order they came; never forgets one.

    The first of them may be kept elsewhere, and never change.
    """

    def __init__(self, frozen: Frozen | None = None) -> None:
        self._base, self._base_slots = frozen or (np.empty(0, np.uint64), np.zeros(64, np.uint32))
        self._own = 0
        self._stored = np.empty(16, np.uint64)
        self._slots = np.zeros(64, np.uint32)
        self._lock = Lock()

    @property
    def size(self) -> int:
        return len(self._base) + self._own

    @property
    def frozen(self) -> int:
        """How many keys are kept elsewhere."""
        return len(self._base)

    def positions(self, keys: Keys, grow: bool = True) -> Ids:
        """The position of each key; a new one's is the next, or UNKNOWN without `grow`."""
        if not len(self._base):
            return self._find_own(keys, grow)
        positions = np.empty(len(keys), np.uint32)
        intern(keys, self._base_slots, self._base, len(self._base), positions, False)
        unknown = positions == UNKNOWN
        if unknown.any():
            own = self._find_own(keys[unknown], grow)
            own[own != UNKNOWN] += np.uint32(len(self._base))
            positions[unknown] = own
        return positions

    def _find_own(self, keys: Keys, grow: bool) -> Ids:
        positions = np.empty(len(keys), np.uint32)
        with self._lock:
            for start in range(0, len(keys), _BATCH):
                batch = keys[start : start + _BATCH]
                if grow:
                    self._reserve(self._own + len(batch))
                self._own = intern(
                    batch, self._slots, self._stored, self._own, positions[start : start + _BATCH], grow
                )
        return positions

    def keys(self, start: int) -> Keys:
        """The keys from a position on."""
        if start >= len(self._base):
            return self._stored[start - len(self._base) : self._own]
        return np.concatenate([self._base[start:], self._stored[: self._own]])

    def take(self, positions: Ids | Rows) -> Keys:
        if not len(self._base):
            return self._stored[positions]
        there = positions < len(self._base)
        if there.all():
            return self._base[positions]
        keys = np.empty(len(positions), np.uint64)
        keys[there] = self._base[positions[there]]
        keys[~there] = self._stored[positions[~there] - positions.dtype.type(len(self._base))]
        return keys

    def freeze(self) -> Frozen:
        """All keys, and a hash table of them."""
        if not len(self._base):
            return self._stored[: self._own], self._slots
        stored = self.keys(0)
        slots = np.zeros(1 << max(6, (2 * len(stored)).bit_length()), np.uint32)
        rehash(stored, len(stored), slots)
        return stored, slots

    def _reserve(self, size: int) -> None:
        if size > len(self._stored):
            stored = np.empty(max(size, 2 * len(self._stored)), np.uint64)
            stored[: self._own] = self._stored[: self._own]
            self._stored = stored
        if 2 * size > len(self._slots):
            self._slots = np.zeros(1 << (2 * len(self._stored)).bit_length(), np.uint32)
            rehash(self._stored, self._own, self._slots)

    @property
    def nbytes(self) -> int:
        return self._stored.nbytes + self._slots.nbytes


class PairTable(KeyTable):
    """Pairs of ids with dense ids of their own."""

    def ids(self, left: Ids, right: Ids, grow: bool = True) -> Ids:
        return self.positions(pack(left, right), grow)

    def pairs(self, ids: Ids) -> tuple[Ids, Ids]:
        return unpack(self.take(ids))


def part(pairs: PairTable, columns: Sequence[Ids], rows: int, grow: bool = True) -> Ids:
    """One id per row for several columns."""
    if not columns:
        return np.zeros(rows, np.uint32)
    ids = columns[0]
    for column in columns[1:]:
        known = ids
        ids = pairs.ids(known, column, grow)
        if not grow:
            ids[known == UNKNOWN] = UNKNOWN
    return ids


def part_columns(pairs: PairTable, ids: Ids, width: int) -> list[Ids]:
    """The columns that `part` made into one id."""
    columns: list[Ids] = []
    for _ in range(width - 1):
        ids, last = pairs.pairs(ids)
        columns.insert(0, last)
    return [ids, *columns] if width else []


def extend_array(array: NDArray[Any], used: int, more: NDArray[Any]) -> NDArray[Any]:
    """The array with more behind its used part, in room that grows by doubling."""
    if used + len(more) > len(array):
        room = np.zeros(max(used + len(more), 2 * len(array)), array.dtype)
        room[:used] = array[:used]
        array = room
    array[used : used + len(more)] = more
    return array
