"""The distributed engine: the algebra over DataFrames.

Relations and facts are plans until something asks for them to be kept. Each operation that changes a table keeps its result, so
a round costs one job for each head predicate, whatever the number of rules that derive it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from hdlog.engines.spark.aggregates import Aggregator
from hdlog.engines.spark.fact_sets import SparkHints
from hdlog.engines.spark.in_and_out import InAndOut
from hdlog.engines.spark.relation import Facts
from hdlog.engines.spark.table import Table
from hdlog.engines.spark.tables import Tables
from hdlog.program.model import AggregateCall
from hdlog.program.terms import Term, Variable
from hdlog.reading.identifiers import StoreIds
from hdlog.tuning import Numbers


class SparkEngine(Tables, InAndOut):
    def __init__(
        self,
        spark: SparkSession | None = None,
        partitions: int | None = None,
        numbers: Numbers | None = None,
    ) -> None:
        """`partitions` of all shuffles: one for each core by default; more for more than some millions of facts a core."""
        super().__init__(spark, partitions, numbers)
        self.hints = SparkHints(self)

    def aggregator(self, call: AggregateCall, group: Sequence[Variable], terms: Sequence[Term]) -> Aggregator:
        return Aggregator(self, call, group, terms)

    # As part of another engine, and by itself.

    @property
    def far(self) -> SparkEngine:
        return self

    @property
    def room(self) -> int:
        return 0

    def take_far(self, facts: Facts) -> Facts:
        return facts

    def facts_of_store_ids(self, columns: Sequence[StoreIds], rows: int) -> Facts:
        return self.facts_from_columns(columns, rows)

    # Updates.

    def tidy(self, tables: Sequence[Table], facts: Sequence[Facts]) -> None:
        pass  # texts are in files and frames, and frames go with what uses them

    def begin(self) -> None:
        self.journal.begin()
        self.dictionary.finish()
        self.journal.note(self.dictionary.roll_back)

    def note(self, restore: Callable[[], None]) -> None:
        self.journal.note(restore)

    def commit(self) -> None:
        self.dictionary.finish()
        self.dictionary.check_if_many()
        self.keeper.finish()
        self.journal.commit()

    def roll_back(self) -> None:
        self.journal.roll_back()
