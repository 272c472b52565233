"""What the groups of operations of the mixed engine share: the two engines, terms with both ids, and crossing over from one to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from hdlog.engines.columnar.budget import Budget
from hdlog.engines.columnar.dictionary import Dictionary
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.columnar.facts import gather, keys_of, primary_order
from hdlog.engines.columnar.kernels import Ids
from hdlog.engines.mixed.dictionary import MixedDictionary
from hdlog.engines.mixed.sides import Facts, FarFacts, FarRelation, NearFacts, NearRelation, Relation
from hdlog.engines.spark.engine import SparkEngine
from hdlog.engines.spark.frames import Frame
from hdlog.engines.spark.relation import column, columns
from hdlog.tuning import Numbers

_PLENTY = 0.5
"""The share of the memory for what is near that is plenty."""


class Context:
    def __init__(
        self,
        spark: SparkSession | None = None,
        partitions: int | None = None,
        numbers: Numbers | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.numbers = numbers or Numbers()
        self.far = SparkEngine(spark, partitions, self.numbers)
        self.spark = self.far.spark
        self.near = ColumnarEngine(budget, numbers=self.numbers)
        self.dictionary = MixedDictionary(self.far.dictionary)
        self.dictionary.budget = self.near.budget
        # It does all that the embedded engine asks of its own.
        self.near.dictionary = cast(Dictionary, self.dictionary)
        self.far.dictionary.before_reading = lambda: self.tell_terms(*self.take_new_terms())

    @property
    def room(self) -> int:
        """Rows up to which a table is better in the process: fewer and fewer as the memory for it fills up."""
        left = 1.0 - self.near.budget.used_share()
        full = self.numbers.near_rows
        return full if left > _PLENTY else int(full * max(0.0, left / _PLENTY) ** 2)

    def take_new_terms(self) -> tuple[pa.Table, pa.Table]:
        """Terms that came up here and Spark does not know, ids and texts; and Skolem terms: ids, names, and lists of arguments."""
        ids, texts = self.dictionary.take_new_texts()
        terms = pa.table({"id": pa.array(ids), "text": texts})
        groups = self.dictionary.take_new_skolems()
        skolems = {
            "id": pa.array(np.concatenate([own for _, own, _ in groups]) if groups else [], pa.int64()),
            "name": pa.array([name for name, own, _ in groups for _ in range(len(own))], pa.string()),
            "args": pa.chunked_array(
                [_list_rows(arguments, len(own)) for _, own, arguments in groups], pa.list_(pa.int64())
            ),
        }
        return terms, pa.table(skolems)

    def tell_terms(self, terms: pa.Table, skolems: pa.Table) -> None:
        """Have Spark know them."""
        if len(terms):
            self.far.dictionary.add_table(terms)
        if len(skolems):
            self.far.dictionary.add_skolem_table(skolems)

    # Home, where it is small.

    def find_near(self, relation: Relation) -> NearRelation:
        """A relation in the process, whatever its size."""
        if relation.near is None:
            assert relation.far is not None
            relation.near = self._fetch_relation(relation.far)
        return relation.near

    def find_near_facts(self, facts: Facts) -> NearFacts:
        if facts.near is None:
            assert facts.far is not None
            facts.near = self._fetch_facts(facts.far)
        return facts.near

    def bring_home(self, relation: Relation) -> Relation:
        """In the process, if it is small; what is small by an estimate only comes as far as it is."""
        far = relation.far
        if relation.is_near or far is None:
            return relation
        if far.frame is None:
            return Relation(self._fetch_relation(far))
        if far.bound is not None and far.bound <= self.numbers.near_result:
            return Relation(self._fetch_relation(far))
        if far.estimate > self.numbers.near_result:
            return relation
        if not far.kept and not self.far.keeper.careful:
            return self._fetch_few(far)
        kept = self.far.keep(far)
        return Relation(
            self._fetch_relation(kept) if kept.estimate <= self.numbers.near_result else None, kept
        )

    def bring_facts_home(self, facts: Facts, most: int = 0) -> Facts:
        """Likewise, or if there are not more than `most`; facts that are not counted yet are."""
        far = facts.far
        if facts.is_near or far is None:
            return facts
        if far.frame is not None and self.far.count(far) > max(most, self.numbers.near_result):
            return facts
        facts.near = self._fetch_facts(far)
        return facts

    def _fetch_relation(self, far: FarRelation) -> NearRelation:
        return self._near_relation(far, *self.far.collect(far, far.names))

    def _near_relation(
        self, far: FarRelation, ids: Sequence[NDArray[np.int64]], counts: NDArray[np.int64]
    ) -> NearRelation:
        columns = dict(zip(far.names, self._near_columns(ids), strict=True))
        return NearRelation(columns, len(counts), _ones(counts))

    def _fetch_few(self, far: FarRelation) -> Relation:
        most = self.numbers.near_result
        found = self.far.collect_few(far, far.names, most)
        if found is None:
            return Relation(far=self.far.keep(far))  # counted: what it is joined with depends on its size
        return Relation(self._near_relation(far, *found))

    def _fetch_facts(self, far: FarFacts) -> NearFacts:
        near = self.near
        if far.frame is None:
            return near.no_facts(far.arity)
        names = columns(far.arity)
        table = self.far.keeper.collect(far.sums().select(*names, "m"), "few facts into the process")
        ids = [table[name].to_numpy() for name in names[: far.arity]]
        return self.near_facts_of(ids, table["m"].to_numpy())

    def near_facts_of(self, ids: Sequence[NDArray[np.int64]], counts: NDArray[np.int64]) -> NearFacts:
        """Facts of ids of the store, each once, with multiplicities."""
        arity = len(ids)
        keys = keys_of(self.near.pairs, self._near_columns(ids), primary_order(arity), len(counts))
        return gather(self.near.pairs, arity, keys, _ones(counts))

    def _near_columns(self, ids: Sequence[NDArray[np.int64]]) -> list[Ids]:
        return [self.dictionary.near_ids(c) for c in ids]

    # Away, to where the rest is.

    def find_far(self, relation: Relation) -> FarRelation:
        if relation.far is None:
            assert relation.near is not None
            relation.far = self._send_relation(relation.near)
        return relation.far

    def find_far_facts(self, facts: Facts) -> FarFacts:
        if facts.far is None:
            assert facts.near is not None
            facts.far = self.send_facts(facts.near)
            facts.far.origin = facts.origin
        return facts.far

    def _send_relation(self, near: NearRelation) -> FarRelation:
        names = tuple(near.columns)
        if not len(near):
            return FarRelation(names, None, 0.0, 0)
        arrays = {column(n): self.dictionary.store_ids(c) for n, c in near.columns.items()}
        frame = self.make_frame({**arrays, "m": near.weights()}, len(near))
        return FarRelation(names, frame, float(len(near)), len(near), kept=True)

    def send_facts(self, near: NearFacts) -> FarFacts:
        if not len(near):
            return FarFacts(near.arity)
        ids = [self.dictionary.store_ids(c) for c in near.columns()] or [np.zeros(len(near), np.int64)]
        weights = near.weights()
        frame = self.make_frame({**dict(zip(columns(near.arity), ids, strict=True)), "m": weights}, len(near))
        distinct = [float(near.distinct((i,))) for i in range(near.arity)] if near.arity > 1 else []
        return FarFacts(
            near.arity, frame, len(near), int(np.count_nonzero(weights > 0)), distinct=tuple(distinct)
        )

    def make_frame(self, arrays: Mapping[str, NDArray[np.int64]], rows: int) -> Frame:
        """Columns of numbers, for Spark."""
        schema = ", ".join(f"{name} BIGINT" for name in arrays)
        table = pa.table({name: pa.array(array) for name, array in arrays.items()})
        return self.far.keeper.frame(self.far.spark.createDataFrame(table, schema=schema), rows)

    def close(self) -> None:
        self.far.close()
        self.near.close()


def _ones(counts: NDArray[np.int64]) -> NDArray[np.int64] | None:
    return None if (counts == 1).all() else counts


def _list_rows(arguments: Sequence[NDArray[np.int64]], rows: int) -> pa.Array:
    width = len(arguments)
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * width)
    flat = np.stack(arguments, axis=1).ravel() if width else np.empty(0, np.int64)
    return pa.ListArray.from_arrays(offsets, pa.array(flat))
