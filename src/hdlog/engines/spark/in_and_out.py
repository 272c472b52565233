"""Facts in and out of the engine on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from hdlog.engines.decode import FactTable
from hdlog.engines.encoding import encode_chunks
from hdlog.engines.spark import show
from hdlog.engines.spark.fact_sets import FactSets
from hdlog.engines.spark.intake import encode_frame
from hdlog.engines.spark.relation import Facts, Relation, column, columns
from hdlog.engines.spark.table import Table
from hdlog.program.model import Predicate
from hdlog.program.ntriples import parse_term
from hdlog.program.terms import Constant
from hdlog.reading.chunks import Chunk
from hdlog.reading.identifiers import StoreIds

_FEW = 1000
"""Rows that any partition may have of what is few."""
_PLACE = "monotonically_increasing_id() & 8589934591L"
"""The number of a row within its partition, as Spark writes it into the lower 33 bits."""


class InAndOut(FactSets):
    def share_terms(self) -> None:
        """An id follows from its text here, so chunks are independent of each other."""

    def encode_chunks(self, chunks: Iterable[Chunk]) -> dict[Predicate, Facts]:
        return encode_chunks(self, chunks)

    def owns(self, table: object) -> bool:
        """DataFrames stay on Spark."""
        return isinstance(table, DataFrame)

    def encode_table(self, table: DataFrame, types: Sequence[str]) -> Facts:
        return encode_frame(self.dictionary, self.keeper, self.session.adopt(table), types)

    def decode(self, facts: Facts) -> FactTable:
        rows = self.count(facts)

        def fetch() -> list[StoreIds]:
            if facts.frame is None:
                return [np.empty(0, np.int64)] * facts.arity
            table = self.keeper.collect(facts.sums().select(*facts.keys), "facts to the driver")
            return [table[c].to_numpy() for c in columns(facts.arity)[: facts.arity]]

        return FactTable(self.dictionary, facts.arity, rows, fetch)

    def collect(self, relation: Relation, names: Sequence[str]) -> tuple[list[StoreIds], StoreIds]:
        if relation.frame is None:
            return [np.empty(0, np.int64) for _ in names], np.empty(0, np.int64)
        chosen = list(map(column, names))
        table = self.keeper.collect(relation.frame.select(*chosen, "m"), "few rows to the driver")
        return [table[c].to_numpy() for c in chosen], table["m"].to_numpy()

    def collect_few(
        self, relation: Relation, names: Sequence[str], most: int
    ) -> tuple[list[StoreIds], StoreIds] | None:
        """Likewise, if there are not more than `most` rows; not many more come to the driver, whatever was expected."""
        if relation.frame is None:
            return self.collect(relation, names)
        chosen = list(map(column, names))
        last = 4 * most // self.partitions + _FEW
        numbered = relation.frame.select(*chosen, "m", f"{_PLACE} AS place").where(f"place <= {last}L")
        table = self.keeper.collect(numbered, "few rows to the driver")
        if len(table) > most or (len(table) and pc.max(table["place"]).as_py() >= last):
            return None
        return [table[c].to_numpy() for c in chosen], table["m"].to_numpy()

    def show(self, facts: Facts, names: Sequence[str]) -> DataFrame:
        """A DataFrame of plain values: numbers where a column has nothing else, texts otherwise."""
        shown = show.plain_values(self.dictionary, self.keeper, facts)
        return self.session.hand_over(shown.toDF(*names) if names else shown)

    def supports(self, table: Table) -> list[tuple[tuple[Constant, ...], bool, int]]:
        whole = table.add_up_runs()
        if whole is None:
            return []
        live_states = self.keeper.collect(whole.where("l = 1"))
        rows = self._decode_rows(live_states, table.arity)
        supports = (live_states["n"].to_numpy() + live_states["r"].to_numpy()).tolist()
        return [(r, bool(a), n) for r, a, n in zip(rows, live_states["a"].to_pylist(), supports, strict=True)]

    def weights(self, facts: Facts) -> dict[tuple[Constant, ...], int]:
        if facts.frame is None:
            return {}
        sums = self.keeper.collect(facts.sums())
        return dict(zip(self._decode_rows(sums, facts.arity), sums["m"].to_pylist(), strict=True))

    def _decode_rows(self, table: pa.Table, arity: int) -> list[tuple[Constant, ...]]:
        texts = [self.dictionary.texts(table[c].to_numpy()) for c in columns(arity)[:arity]]
        terms = [[parse_term(t) for t in c] for c in texts]
        return list(zip(*terms, strict=True)) if terms else [()] * table.num_rows
