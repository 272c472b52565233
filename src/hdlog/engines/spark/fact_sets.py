"""Sets of facts, as the engine on Spark combines them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from hdlog.engines.protocol import Hints
from hdlog.engines.spark.frames import Frame, union
from hdlog.engines.spark.relation import Facts, Relation, columns, defer
from hdlog.engines.spark.relations import Relations
from hdlog.engines.spark.table import Table
from hdlog.reading.identifiers import StoreIds


class FactSets(Relations):
    def no_facts(self, arity: int) -> Facts:
        return Facts(arity)

    def facts_from_columns(self, ids: Sequence[StoreIds], rows: int) -> Facts:
        arity = len(ids)
        if not rows:
            return Facts(arity)
        if not arity:
            return Facts(0, Frame("SELECT 0L AS c0, 1L AS m", ("c0", "m")), 1, 1)
        unique = np.unique(np.stack([c.astype(np.int64) for c in ids]), axis=1)
        schema = ", ".join(f"{c} BIGINT" for c in columns(arity))
        made = self.spark.createDataFrame(
            pa.table({c: pa.array(unique[i]) for i, c in enumerate(columns(arity))}), schema=schema
        )
        distinct = [float(len(np.unique(c))) for c in unique]
        count = unique.shape[1]
        return Facts(
            arity, self.keeper.frame(made.selectExpr("*", "1L AS m"), count), count, count, distinct=distinct
        )

    def plus(self, parts: Iterable[Facts], arity: int) -> Facts:
        filled = [p for p in parts if p.frame is not None]
        if len(filled) < 2:
            return filled[0] if filled else Facts(arity)
        for facts in filled:
            self.cut_facts(facts)
        filled = [p for p in filled if p.frame is not None]
        if not filled:
            return Facts(arity)
        return defer(arity, union([p.frame for p in filled if p.frame is not None]), summed=False)

    def minus(self, a: Facts, b: Facts) -> Facts:
        if a.frame is None or b.frame is None:
            return a
        left, right = a.sums(), b.sums().select(*b.keys)
        there = right.with_hint(
            "BROADCAST" if self.estimate_facts(b) <= self.numbers.broadcast else "SHUFFLE_HASH"
        )
        return defer(a.arity, left.join(there, a.keys, "left_anti"), summed=True)

    def union(self, a: Facts, b: Facts) -> Facts:
        if a.frame is None or b.frame is None:
            return self.distinct(b if a.frame is None else a)
        both = union([f.sums().select(*f.keys) for f in (a, b)])
        return defer(a.arity, both.totals(a.keys, "1L AS m"), summed=True)

    def positive(self, facts: Facts) -> Facts:
        if facts.frame is None or facts.positive == 0:
            return Facts(facts.arity)
        if facts.positive is not None and facts.positive == facts.rows:
            return facts
        positive_facts = defer(facts.arity, facts.sums().where("m > 0"), summed=True, rows=facts.positive)
        if facts.positive is not None:
            positive_facts.positive, positive_facts.kept = facts.positive, facts.kept
        return positive_facts

    def negate(self, facts: Facts) -> Facts:
        if facts.frame is None:
            return facts
        positive = None if facts.positive is None or facts.rows is None else facts.rows - facts.positive
        frame = facts.frame.select(*facts.keys, "-m AS m")
        return Facts(facts.arity, frame, facts.rows, positive, facts.summed, facts.kept, facts.distinct)

    def distinct(self, facts: Facts) -> Facts:
        if facts.frame is None:
            return facts
        frame = facts.sums().select(*facts.keys, "1L AS m")
        rows = facts.rows
        kept = facts.kept and facts.summed
        return Facts(facts.arity, frame, rows, rows, True, kept, facts.distinct, facts.origin)

    def disjoint_union(self, parts: Sequence[Facts], arity: int) -> Facts:
        filled = [self.distinct(p) for p in parts if p.frame is not None]
        if len(filled) < 2:
            return filled[0] if filled else Facts(arity)
        rows = None if any(p.rows is None for p in filled) else sum(p.rows or 0 for p in filled)
        all_facts = defer(arity, union([p.frame for p in filled if p.frame is not None]), True, rows)
        all_facts.positive, all_facts.kept = rows, all(p.kept for p in filled)
        if all(p.origin for p in filled):
            all_facts.origin = tuple(o for p in filled for o in p.origin)
        return all_facts


class SparkHints(Hints[Relation, Facts, Table]):
    """Spark joins a union as well as one frame, and a core would take as many jobs as the join itself."""

    def __init__(self, engine: FactSets) -> None:
        self.engine = engine

    def merge_parts(self, parts: list[Facts], arity: int) -> list[Facts]:
        """The frames of many rounds as one, so that theirs can go."""
        if len(parts) <= self.engine.numbers.most_parts:
            return parts
        whole = self.engine.disjoint_union(parts, arity)
        whole.kept = False
        return [self.engine.keep(whole)]

    def announce(self, work: str) -> None:
        self.engine.keeper.phase = work

    def take_care(self) -> None:
        self.engine.keeper.careful = True

    def was_empty(self, table: Table, added: Facts, removed: Facts) -> bool:
        came, went = (0 if f.frame is None else f.rows for f in (added, removed))
        return came is not None and went is not None and len(table) + went == came
