"""Sets of facts with multiplicities: sorted unique keys, and counts where they are not all one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.kernels import Ids, Keys
from hdlog.engines.columnar.kernels.halves import (
    Occurrences,
    count_distinct_halves,
    count_halves,
    count_uppers,
    largest_half,
    pack,
    unpack,
)
from hdlog.engines.columnar.kernels.merging import count_keys, merge_add, merge_order
from hdlog.engines.columnar.kernels.searching import locate
from hdlog.engines.columnar.kernels.sorting import sort, sort_with
from hdlog.engines.columnar.keys import PairTable, part, part_columns
from hdlog.errors import TooManyDerivations

Counts = NDArray[np.int64]
Order = tuple[tuple[int, ...], tuple[int, ...]]
"""Columns in the left and in the right part of a key."""


CHECKED = "HDLOG_CHECKED" in os.environ
"""Whether it is checked that keys are sorted, as all tests do."""
_SPARSE = 16
"""Ids up to so many times as many as there are rows are marked in an array."""
_PLAIN: tuple[Order, Order] = (((0,), (1,)), ((0,), ()))
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@cache
def primary_order(arity: int) -> Order:
    columns = tuple(range(arity))
    return (columns[:1], ()) if arity <= 1 else (columns[:-1], columns[-1:])


def keys_of(pairs: PairTable, columns: Sequence[Ids], order: Order, rows: int, grow: bool = True) -> Keys:
    if order in _PLAIN and len(columns) < 3:
        # Small updates are many calls of this: the usual orders without detours.
        return pack(columns[0], columns[1]) if len(columns) == 2 else columns[0].astype(np.uint64) << _HALF
    left, right = order
    return pack(
        part(pairs, [columns[c] for c in left], rows, grow),
        part(pairs, [columns[c] for c in right], rows, grow),
    )


def columns_of(pairs: PairTable, keys: Keys, order: Order) -> list[Ids]:
    """Columns 0, 1, ... of the rows that keys of this order stand for."""
    if order == _PLAIN[0]:
        return list(unpack(keys))
    if order == _PLAIN[1]:
        return [(keys >> _HALF).astype(np.uint32)]
    left, right = order
    upper, lower = unpack(keys)
    by_column = dict(zip(left, part_columns(pairs, upper, len(left)), strict=True))
    by_column |= dict(zip(right, part_columns(pairs, lower, len(right)), strict=True))
    return [by_column[c] for c in range(len(by_column))]


_MOST = float(2**62)
_MOSTLY = 4
"""Keys that count once are sorted by themselves where no more than one in so many counts otherwise."""


def find_largest(counts: Counts | None) -> float:
    """The largest multiplicity, signs aside."""
    return 1.0 if counts is None or not len(counts) else max(float(counts.max()), -float(counts.min()))


def multiply(a: Counts | None, b: Counts | None) -> Counts | None:
    """Products of multiplicities, None standing for ones."""
    if a is None or b is None:
        return b if a is None else a
    if find_largest(a) * find_largest(b) >= _MOST:
        raise TooManyDerivations
    return a * b


def check_sums(size: float) -> None:
    """Before adding up: as large as this at most."""
    if size >= _MOST:
        raise TooManyDerivations


@dataclass(eq=False)
class Facts:
    """Facts of one arity, each with a multiplicity other than zero."""

    pairs: PairTable
    arity: int
    keys: Keys
    counts: Counts | None = None
    indexes: dict[Order, tuple[Keys, Counts | None]] = field(default_factory=dict, repr=False)
    """in other orders, as far as somebody has asked for them"""
    counted: dict[tuple[int, ...], int] = field(default_factory=dict, repr=False)
    """how many values columns have together, likewise"""

    def __post_init__(self) -> None:
        if CHECKED:
            assert (self.keys[1:] > self.keys[:-1]).all(), "keys of facts are sorted, each once"
            assert self.counts is None or (self.counts != 0).all(), "no fact has the multiplicity 0"

    def __len__(self) -> int:
        return len(self.keys)

    def columns(self) -> list[Ids]:
        return columns_of(self.pairs, self.keys, primary_order(self.arity))

    def index(self, order: Order) -> tuple[Keys, Counts | None]:
        """Keys in another order, with their counts; made once."""
        if order == primary_order(self.arity):
            return self.keys, self.counts
        if order not in self.indexes:
            keys = keys_of(self.pairs, self.columns(), order, len(self))
            self.indexes[order] = sort_keys(keys, self.counts)
        return self.indexes[order]

    def has_index(self, order: Order) -> bool:
        return order == primary_order(self.arity) or order in self.indexes

    def distinct(self, bound: tuple[int, ...]) -> int:
        """How many values the bound columns have together."""
        if bound not in self.counted:
            self.counted[bound] = self._count_distinct(bound)
        return self.counted[bound]

    def _count_distinct(self, bound: tuple[int, ...]) -> int:
        order = (bound, tuple(i for i in range(self.arity) if i not in bound))
        if len(bound) == 1 and not self.has_index(order):
            counted = self.count_values(bound[0])
            if counted is not None:
                return counted
        return count_uppers(self.index(order)[0])

    def count_values(self, column: int) -> int | None:
        """How many different ids a column has, if marking each is faster than sorting them."""
        shift = _shift_of(self.arity, column)
        keys = self.keys if shift is not None else self.columns()[column].astype(np.uint64)
        ids = largest_half(keys, shift or 0) + 1
        return count_distinct_halves(keys, shift or 0, ids) if ids <= _SPARSE * len(self) else None

    def count_occurrences(self, column: int, most: int) -> Occurrences | None:
        """How often each id occurs in a column, if there are no more than so many."""
        shift = _shift_of(self.arity, column)
        keys = self.keys if shift is not None else self.columns()[column].astype(np.uint64)
        ids = largest_half(keys, shift or 0) + 1
        return count_halves(keys, shift or 0, ids) if ids <= most else None

    def forget_indexes(self) -> None:
        self.indexes, self.counted = {}, {}

    @property
    def nbytes(self) -> int:
        arrays = [(self.keys, self.counts), *self.indexes.values()]
        return sum(array.nbytes for pair in arrays for array in pair if array is not None)

    def weights(self) -> Counts:
        return np.ones(len(self), np.int64) if self.counts is None else self.counts

    def take(self, mask: NDArray[np.bool_]) -> Facts:
        if mask.all():
            return self
        return Facts(
            self.pairs, self.arity, self.keys[mask], None if self.counts is None else self.counts[mask]
        )

    def once(self) -> Facts:
        """Each fact with multiplicity one."""
        return self if self.counts is None else Facts(self.pairs, self.arity, self.keys)

    def negate(self) -> Facts:
        return Facts(self.pairs, self.arity, self.keys, -self.weights())

    def contains(self, probes: Keys) -> NDArray[np.bool_]:
        """Which of the sorted probes are here."""
        return np.asarray(locate(self.keys, probes) >= 0)

    def minus(self, other: Facts) -> Facts:
        """Facts of this that are not in the other, multiplicities aside."""
        if not len(self) or not len(other):
            return self
        return self.take(~other.contains(self.keys))


def _shift_of(arity: int, column: int) -> int | None:
    """By how many bits the keys of facts have a column as it is, if they do."""
    if arity > 1 and column == arity - 1:
        return 0
    return 32 if arity <= 2 else None


def sort_keys(keys: Keys, counts: Counts | None) -> tuple[Keys, Counts | None]:
    if (keys[1:] >= keys[:-1]).all():
        return keys, counts
    return (sort(keys), None) if counts is None else sort_with(keys, counts)


def empty_facts(pairs: PairTable, arity: int) -> Facts:
    return Facts(pairs, arity, np.empty(0, np.uint64))


def gather(pairs: PairTable, arity: int, keys: Keys, counts: Counts | None) -> Facts:
    """Keys in any order, which may be sorted in place, with repetitions, as facts; multiplicities add up, zeros vanish."""
    if not len(keys):
        return empty_facts(pairs, arity)
    if counts is None:
        if not (keys[1:] >= keys[:-1]).all():
            keys = sort(keys)  # the keys were made for this call
        keys, occurrences = count_keys(keys)
        return Facts(pairs, arity, keys, occurrences if len(occurrences) else None)
    if (counts == -1).all():
        return gather(pairs, arity, keys, None).negate()
    ones = counts == 1
    single = int(np.count_nonzero(ones))
    if _MOSTLY * (len(keys) - single) < len(keys):
        # Sorted without their counts they are half the bytes to move.
        plain = gather(pairs, arity, keys[ones] if single < len(keys) else keys, None)
        return sum_facts([plain, gather(pairs, arity, keys[~ones], counts[~ones])], pairs, arity)
    if not (keys[1:] >= keys[:-1]).all():
        keys, counts = sort_with(keys, counts)
    first = np.empty(len(keys), np.bool_)
    first[0] = True
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    if find_largest(counts) * len(counts) >= _MOST:
        check_sums(float(np.abs(np.add.reduceat(counts.astype(np.float64), starts)).max()))
    totals = np.add.reduceat(counts, starts)
    kept = totals != 0
    return Facts(pairs, arity, keys[starts][kept], None if (totals[kept] == 1).all() else totals[kept])


_SORTED_TOGETHER = 16
"""Parts from which on they are sorted together."""


def sum_facts(parts: Sequence[Facts], pairs: PairTable, arity: int) -> Facts:
    """The sum of multiplicities."""
    parts = [p for p in parts if len(p)]
    if len(parts) < 2:
        return parts[0] if parts else empty_facts(pairs, arity)
    parts.sort(key=len)
    if len(parts) > _SORTED_TOGETHER:
        # All but the largest, which is merged once.
        small, largest = parts[:-1], parts[-1]
        keys = np.concatenate([p.keys for p in small])
        counted = any(p.counts is not None for p in small)
        parts = [
            gather(pairs, arity, keys, np.concatenate([p.weights() for p in small]) if counted else None),
            largest,
        ]
    while len(parts) > 1:
        # The two smallest first, so that no fact is moved more often than it must be.
        a, b = parts[:2]
        check_sums(find_largest(a.counts) + find_largest(b.counts))
        keys, counts = merge_add(a.keys, _counts_of(a), b.keys, _counts_of(b))
        merged = Facts(pairs, arity, keys, None if (counts == 1).all() else counts)
        parts = sorted([merged, *parts[2:]], key=len)
    return parts[0] if parts and len(parts[0]) else empty_facts(pairs, arity)


_NO_COUNTS = np.empty(0, np.int64)


def _counts_of(facts: Facts) -> Counts:
    return _NO_COUNTS if facts.counts is None else facts.counts


def union(a: Facts, b: Facts) -> Facts:
    """Facts of either, each once."""
    if not len(a) or not len(b):
        return (b if len(b) else a).once()
    keys = np.concatenate([a.keys, b.keys])[merge_order(a.keys, b.keys)]
    first = np.empty(len(keys), np.bool_)
    first[0] = True
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return Facts(a.pairs, a.arity, keys[first])
