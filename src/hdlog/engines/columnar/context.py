"""What the groups of operations of the embedded engine share: terms, pairs, the journal, the budget, threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import current_thread
from typing import TypeVar

import numpy as np

from hdlog.engines.columnar.budget import Budget
from hdlog.engines.columnar.dictionary import Dictionary
from hdlog.engines.columnar.facts import Counts, Facts, Order
from hdlog.engines.columnar.kernels import Flags, Keys, Rows
from hdlog.engines.columnar.keys import PairTable
from hdlog.engines.columnar.table import Table
from hdlog.engines.protocol import Version
from hdlog.journal import Journal
from hdlog.program.terms import Constant
from hdlog.tuning import Numbers

Source = Table | Facts
ColumnarVersion = Version[Facts, Table]
NO_FLAGS = np.empty(0, np.uint8)
_POOL = "hdlog-pool"
Item = TypeVar("Item")
Result = TypeVar("Result")


class Context:
    def __init__(
        self, budget: Budget | None = None, threads: int | None = None, numbers: Numbers | None = None
    ) -> None:
        self.numbers = numbers or Numbers()
        self.threads = threads or os.cpu_count() or 1
        self.dictionary = Dictionary(self.numbers.dense_integers)
        self.pairs = PairTable()
        self.journal = Journal()
        self.budget = self.dictionary.budget = budget or Budget()
        self._pool: ThreadPoolExecutor | None = None

    def encode(self, term: Constant) -> np.uint32:
        return self.dictionary.constant(term)

    def table(self, arity: int, name: str = "") -> Table:
        return Table(self.pairs, arity, self.journal, self.budget, self.numbers)

    def halve(self, work: Callable[[Rows], Result], rows: Rows, groups: Rows | None = None) -> list[Result]:
        """Work on rows, on both cores if there are many; no group is cut in two."""
        # Not from within the pool: waiting for others there, all could wait for each other.
        if (
            self.threads < 2
            or len(rows) < self.numbers.worth_halves
            or current_thread().name.startswith(_POOL)
        ):
            return [work(rows)]
        middle = len(rows) // 2
        if groups is not None:
            ordered = groups[rows]
            middle = int(np.searchsorted(ordered, ordered[middle]))
        return self._apply_at_once(work, [rows[:middle], rows[middle:]])

    def _apply_at_once(self, apply: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """`apply` to each item on all cores; waits for all, whatever happens."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads, _POOL)
        futures = [self._pool.submit(apply, item) for item in items]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
            wait(futures)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


def sources_of(version: ColumnarVersion) -> tuple[Source, ...]:
    """What a version is made of, without what is taken from it."""
    return (version.table, *version.plus)


def runs_of(source: Source, order: Order) -> list[tuple[Keys, Flags, Counts | None]]:
    """Sorted keys in an order of columns, with marks on the dead, and counts where they are not all one."""
    if isinstance(source, Table):
        return [(run.keys, run.dead, None) for run in source.index(order)]
    keys, counts = source.index(order)
    return [(keys, NO_FLAGS, counts)]
