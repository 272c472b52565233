"""Ids of integers that have no text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.kernels import Ids
from hdlog.engines.columnar.keys import UNKNOWN, Frozen, KeyTable
from hdlog.engines.columnar.layers import Column

Integers = NDArray[np.int64]
_SPARSE = 8
"""Numbers up to so many times as large as there are of them are looked up by place."""


class IntegerIds:
    """Small numbers that came in masses, such as ids of another system, are found by their place in an array, all others by hash."""

    def __init__(
        self, enough: int, append: Callable[[Integers], Ids], frozen: tuple[Frozen, Ids] | None = None
    ) -> None:
        """`enough` is how many make a mass; `append` gives new ones their ids; `frozen` are kept elsewhere."""
        self._enough = enough
        self._append = append
        self._hashed = KeyTable(frozen[0] if frozen else None)
        self._hashed_ids = Column(np.uint32, frozen[1] if frozen else None)  # by position in `_hashed`
        self._known = self._hashed.size  # how many of these have an id
        self._dense = np.empty(0, np.uint32)  # by value

    def encode(self, values: Integers) -> Ids:
        """The id of each; new ones get the next ids."""
        is_mass = len(values) >= self._enough and values.min() >= 0 and values.max() < _SPARSE * len(values)
        if is_mass:
            return self._encode_dense(values)
        if not len(self._dense):
            return self._encode_hashed(values)
        ids = np.full(len(values), UNKNOWN, np.uint32)
        small = (values >= 0) & (values < len(self._dense))
        ids[small] = self._dense[values[small]]
        others = np.flatnonzero(ids == UNKNOWN)
        if len(others):
            ids[others] = self._encode_hashed(values[others])
        return ids

    def _encode_dense(self, values: Integers) -> Ids:
        room = int(values.max()) + 1 - len(self._dense)
        if room > 0:
            self._dense = np.concatenate([self._dense, np.full(room, UNKNOWN, np.uint32)])
        ids = self._dense[values]
        if (ids == UNKNOWN).any():
            wanted = np.zeros(len(self._dense), np.bool_)
            wanted[values] = True
            self._learn(np.flatnonzero(wanted & (self._dense == UNKNOWN)))
            ids = self._dense[values]
        return ids

    def _learn(self, values: Integers) -> None:
        """Have small numbers in their places; some may have been hashed before."""
        if self._known:
            positions = self._hashed.positions(values.view(np.uint64), grow=False)
            hashed = positions != UNKNOWN
            self._dense[values[hashed]] = self._hashed_ids[positions[hashed]]
            values = values[~hashed]
        self._dense[values] = self._append(values)

    def _encode_hashed(self, values: Integers) -> Ids:
        positions = self._hashed.positions(np.array(values, np.int64).view(np.uint64))
        if self._hashed.size > self._known:
            ids = self._append(self._hashed.keys(self._known).view(np.int64))
            self._hashed_ids.write(self._known, ids)
            self._known = self._hashed.size
        return self._hashed_ids[positions]

    def add(self, values: Integers, ids: Ids) -> None:
        """Numbers that are not known yet, each once, with the ids that they have."""
        self._hashed.positions(values.view(np.uint64))
        self._hashed_ids.write(self._known, ids)
        self._known = self._hashed.size

    def freeze(self) -> tuple[Frozen, Ids]:
        """All of them by hash, with their ids, to be kept elsewhere."""
        values = np.flatnonzero(self._dense != UNKNOWN)
        if self._known:
            values = values[self._hashed.positions(values.view(np.uint64), grow=False) == UNKNOWN]
        self.add(values, self._dense[values])
        return self._hashed.freeze(), self._hashed_ids.since(0, self._known)
