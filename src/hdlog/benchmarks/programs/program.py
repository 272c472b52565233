"""A program of the corpus: rules, and facts of a realistic shape in any size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.int64]
Tables = Mapping[str, list[Column]]
"""By predicate the columns of its facts: integers, whatever they stand for."""


@dataclass(frozen=True)
class Program:
    name: str
    rules: str
    """of a Soufflé program, without declarations"""
    generate: Callable[[float, Chance], Tables]
    """facts in proportion to a size; 1 makes about 100,000"""
    sizes: tuple[float, float] = (1.0, 8.0)


class Chance:
    """Random choices as programs and graphs have them: a few are chosen often, most seldom."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)

    def uniform(self, size: int, below: int) -> Column:
        return self.draw.integers(0, max(1, below), size, dtype=np.int64)

    def skewed(self, size: int, below: int, exponent: float = 0.7) -> Column:
        """Numbers of which the n-th smallest has weight n ** -exponent."""
        shares = np.cumsum(np.arange(1, max(1, below) + 1, dtype=np.float64) ** -exponent)
        return np.asarray(np.searchsorted(shares, self.draw.random(size) * shares[-1]), np.int64)

    def near(self, places: Column, below: int, spread: float) -> Column:
        """Numbers in the neighbourhood of others; at the ends they turn back, so that nothing piles up there."""
        moved = np.abs(places + np.rint(self.draw.normal(0.0, spread, len(places))).astype(np.int64))
        last = max(0, below - 1)
        return np.asarray(np.clip(last - np.abs(last - moved), 0, last))

    def happens(self, size: int, share: float) -> NDArray[np.bool_]:
        return np.asarray(self.draw.random(size) < share)

    def shuffle(self, column: Column) -> Column:
        return np.asarray(self.draw.permutation(column))


def facts(*columns: Any) -> list[Column]:
    """Columns as a table, each fact once."""
    stacked = np.unique(np.stack([np.asarray(c, np.int64) for c in np.broadcast_arrays(*columns)]), axis=1)
    return list(stacked)
