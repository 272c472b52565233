"""Facts in and out of the mixed engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from pyspark.sql import DataFrame

from hdlog.engines.decode import FactTable
from hdlog.engines.encoding import Ids, encode_chunks
from hdlog.engines.mixed.sides import Facts, FarFacts, Relation, Table
from hdlog.engines.mixed.tables import Tables
from hdlog.program.model import Predicate
from hdlog.program.terms import Constant
from hdlog.reading.chunks import Chunk
from hdlog.reading.identifiers import StoreIds
from hdlog.reading.shared_terms import SharedTerms


class InAndOut(Tables):
    def share_terms(self) -> SharedTerms:
        return self.dictionary.share()

    def encode_chunks(self, chunks: Iterable[Chunk]) -> dict[Predicate, Facts]:
        return encode_chunks(self, chunks)

    def owns(self, table: object) -> bool:
        """DataFrames stay on Spark, unless they are small."""
        return self.far.owns(table)

    def encode_table(self, table: DataFrame, types: Sequence[str]) -> Facts:
        return self.bring_facts_home(self.take_far(self.far.encode_table(table, types)))

    def facts_of_store_ids(self, columns: Sequence[StoreIds], rows: int) -> Facts:
        near = self.near_facts_of(columns, np.ones(rows, np.int64))
        return Facts(near.arity, near.once())

    def take_far(self, facts: FarFacts) -> Facts:
        """Facts that came up on Spark, such as those of files that tasks have read; many, as far as anybody knows."""
        return Facts(facts.arity, far=facts)

    def decode(self, facts: Facts) -> FactTable:
        rows = self.count(facts)

        def fetch() -> list[Ids]:
            return self.find_near_facts(facts).columns()

        if facts.near is not None and rows:
            self.dictionary.expect(facts.near.columns())
        return FactTable(self.dictionary, facts.arity, rows, fetch)

    def collect(self, relation: Relation, names: Sequence[str]) -> tuple[list[Ids], Ids]:
        return self.near.collect(self.find_near(relation), names)

    def show(self, facts: Facts, names: Sequence[str]) -> DataFrame:
        return self.far.show(self.find_far_facts(facts), names)

    def supports(self, table: Table) -> list[tuple[tuple[Constant, ...], bool, int]]:
        if table.near is not None:
            return self.near.supports(table.near)
        self.flush(table)
        assert table.far is not None
        return self.far.supports(table.far)

    def weights(self, facts: Facts) -> dict[tuple[Constant, ...], int]:
        return self.near.weights(self.find_near_facts(facts))
