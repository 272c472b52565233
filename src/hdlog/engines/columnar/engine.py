"""The embedded engine: the algebra over sorted columns in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakSet

from numpy.typing import NDArray

from hdlog.engines.columnar.aggregates import Aggregator
from hdlog.engines.columnar.budget import Budget
from hdlog.engines.columnar.dictionary import Dictionary
from hdlog.engines.columnar.facts import Facts
from hdlog.engines.columnar.in_and_out import InAndOut
from hdlog.engines.columnar.keys import Frozen, PairTable
from hdlog.engines.columnar.relations import Relations
from hdlog.engines.columnar.statistics import ColumnarHints
from hdlog.engines.columnar.table import Table
from hdlog.engines.columnar.tables import Tables
from hdlog.engines.columnar.tidying import tidy
from hdlog.program.model import AggregateCall
from hdlog.program.terms import Term, Variable
from hdlog.tuning import Numbers


class ColumnarEngine(Relations, Tables, InAndOut):
    def __init__(
        self, budget: Budget | None = None, threads: int | None = None, numbers: Numbers | None = None
    ) -> None:
        super().__init__(budget, threads, numbers)
        self.hints = ColumnarHints(self)
        self._tidied = 0  # terms and pairs when they were last looked through
        self.keeps_ids = False
        """whether somebody else knows terms by their ids, so that these must not change"""
        self._aggregators: WeakSet[Aggregator] = WeakSet()

    def start_from(self, terms: Mapping[str, NDArray[Any]], pairs: Frozen) -> None:
        """Take over terms and pairs that are kept elsewhere, before anything has come in."""
        assert not len(self.dictionary), "the first ids are those of what is kept"
        self.dictionary = Dictionary(self.numbers.dense_integers, terms)
        self.dictionary.budget = self.budget
        self.pairs = PairTable(pairs)

    def aggregator(self, call: AggregateCall, group: Sequence[Variable], terms: Sequence[Term]) -> Aggregator:
        aggregator = Aggregator(self, call, group, terms)
        self._aggregators.add(aggregator)
        return aggregator

    # Updates.

    def tidy(self, tables: Sequence[Table], facts: Sequence[Facts]) -> None:
        size = len(self.dictionary) + self.pairs.size
        few = size < 2 * self._tidied + self.numbers.worth_tidying
        if few or self.keeps_ids or self.dictionary.leans:
            return
        tidied = tidy(self.dictionary, self.pairs, tables, facts)
        if tidied is not None:
            self.dictionary, self.pairs = tidied.dictionary, tidied.pairs
            for aggregator in self._aggregators:
                aggregator.forget()
        self._tidied = len(self.dictionary) + self.pairs.size

    def begin(self) -> None:
        self.journal.begin()

    def note(self, restore: Callable[[], None]) -> None:
        self.journal.note(restore)

    def commit(self) -> None:
        self.journal.commit()

    def roll_back(self) -> None:
        self.journal.roll_back()
