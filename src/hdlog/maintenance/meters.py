"""How many rows the joins of a rule or a node make, and what happens when they become too many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf


class TooManyRows(Exception):
    """A rule or a node is better evaluated in another way. Nothing has changed yet."""


@dataclass(eq=False)
class Meter:
    rows: int = 0
    """made since it was reset"""
    most: float = inf
    ask: Callable[[int], float] | None = None
    """what is asked when they become more: it says how many may be made then, or raises TooManyRows"""

    def allow(self, rows: int) -> None:
        """Rows are about to be made."""
        if self.rows + rows > self.most:
            if self.ask is None:
                raise TooManyRows
            self.most = self.ask(self.rows + rows)
        self.rows += rows

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is counted and nobody asked."""
        rows, most, ask = self.rows, self.most, self.ask
        self.reset()
        try:
            yield
        finally:
            self.rows, self.most, self.ask = rows, most, ask

    def reset(self, most: float = inf, ask: Callable[[int], float] | None = None) -> None:
        self.rows, self.most, self.ask = 0, most, ask
