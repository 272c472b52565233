"""What has changed in a table since it was last written: supports that facts had before the first change of each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.facts import Counts
from hdlog.engines.columnar.kernels import Keys
from hdlog.engines.columnar.kernels.sorting import order_of

Supports = tuple[Counts, Counts, Counts]
"""Asserted, non-recursive, recursive."""


class Tracking:
    """A change that is taken back leaves its notes here: what they say stays true, and nothing has changed by it."""

    def __init__(self) -> None:
        self._notes: list[tuple[Keys, Supports]] = []

    @property
    def has_notes(self) -> bool:
        return bool(self._notes)

    def note(self, keys: Keys, supports: Supports) -> None:
        """Before a change of some facts: the supports they have."""
        self._notes.append((keys, supports))

    def collect(self) -> tuple[Keys, Supports]:
        """The facts that may have changed, each once, sorted, with the supports they had."""
        if not self._notes:
            nothing = np.empty(0, np.int64)
            return np.empty(0, np.uint64), (nothing, nothing, nothing)
        keys = np.concatenate([keys for keys, _ in self._notes])
        # The first note of a fact is the one that counts.
        order = order_of(keys)
        ordered = keys[order]
        new = np.append(True, ordered[1:] != ordered[:-1])
        unique, first = ordered[new], order[new]
        a, n, r = (
            np.concatenate(s)[first] for s in zip(*(supports for _, supports in self._notes), strict=True)
        )
        return unique, (a, n, r)

    def forget(self) -> None:
        self._notes = []


def have_support(supports: Supports) -> NDArray[np.bool_]:
    a, n, r = supports
    return np.asarray((a != 0) | (n != 0) | (r != 0))
