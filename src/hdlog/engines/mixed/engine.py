"""The mixed engine: the algebra in the process and on Spark, each where it is the better of the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from hdlog.engines.columnar.budget import Budget
from hdlog.engines.mixed.aggregates import Aggregator
from hdlog.engines.mixed.in_and_out import InAndOut
from hdlog.engines.mixed.sides import Facts, Table
from hdlog.engines.mixed.statistics import MixedHints
from hdlog.program.model import AggregateCall
from hdlog.program.terms import Term, Variable
from hdlog.tuning import Numbers


class MixedEngine(InAndOut):
    def __init__(
        self,
        spark: SparkSession | None = None,
        partitions: int | None = None,
        numbers: Numbers | None = None,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(spark, partitions, numbers, budget)
        self.hints = MixedHints(self)

    def aggregator(self, call: AggregateCall, group: Sequence[Variable], terms: Sequence[Term]) -> Aggregator:
        return Aggregator(self, call, group, terms)

    # Updates.

    def tidy(self, tables: Sequence[Table], facts: Sequence[Facts]) -> None:
        """What has become small comes home."""
        for table in tables:
            self.merge_recent(table)
            if table.far is not None and self.numbers.near_share * len(table) < self.numbers.near_rows:
                self.move_in(table)

    def begin(self) -> None:
        self.near.begin()
        self.far.begin()

    def note(self, restore: Callable[[], None]) -> None:
        self.near.note(restore)

    def commit(self) -> None:
        self.far.commit()
        self.near.commit()

    def roll_back(self) -> None:
        self.near.roll_back()
        self.far.roll_back()
