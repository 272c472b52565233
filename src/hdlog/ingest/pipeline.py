"""Files into facts and into stores, on Spark: tasks parse splits, Spark's own shuffle brings equal rows together, and nothing comes to the
driver but counts and names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from hdlog.engines.protocol import F
from hdlog.engines.spark.engine import SparkEngine
from hdlog.engines.spark.frames import Frame
from hdlog.engines.spark.relation import Facts, columns, defer
from hdlog.errors import InputError
from hdlog.ingest.intake import Intake
from hdlog.ingest.parsing import (
    FACT,
    FAULT,
    FIGURES,
    PREDICATE,
    SCHEMA,
    SKOLEM_TERM,
    TERM,
    Parser,
    describe_split,
)
from hdlog.program.model import Predicate
from hdlog.reading.chunks import Layout
from hdlog.reading.identifiers import StoreIds
from hdlog.reading.splits import Split, size_of

F_co = TypeVar("F_co", covariant=True)
_PROBLEMS, _BYTES_A_ROW = 10, 30
_ROOMS = 8
"""Rows that all small predicates may have, in multiples of what one may."""


class Parsed:
    """Splits, parsed: rows of facts and of terms, kept by Spark in memory and on disk."""

    def __init__(
        self, engine: SparkEngine, splits: Sequence[Split], intake: Intake, layout: Layout, lenient: bool
    ) -> None:
        self.engine = engine
        spark = engine.spark
        listed = pa.table({"split": [describe_split(s) for s in splits]})
        tasks = spark.createDataFrame(listed, schema="split STRING").repartition(max(1, len(splits)))
        parser = Parser.of(layout, lenient, engine.dictionary.clashes)
        self.data: DataFrame = tasks.mapInArrow(parser, SCHEMA).persist()
        self.frame: Frame = engine.keeper.frame(self.data, size_of(splits) // _BYTES_A_ROW)
        told = engine.keeper.collect(
            self.frame.where(f"kind >= {PREDICATE}").distinct("kind", "p", "c0", "c1", "text"),
            f"parsing {len(splits):,} parts of files",
        )
        figures = [
            f"sum(if(kind = {FIGURES}, {c}, 0L)) AS {name}"
            for c, name in (("c0", "rows"), ("c1", "skipped"), ("rest[0]", "dropped"))
        ]
        sums = engine.keeper.collect(
            self.frame.totals(["kind", "p"], "count(1) AS n", *figures), "counting facts"
        ).to_pylist()
        self.rows: dict[int, int] = {row["p"]: row["n"] for row in sums if row["kind"] == FACT}
        """of facts, by predicate; equal ones are not counted as one yet"""
        engine.make_room(self.facts)
        self.frame = engine.keeper.frame(self.data, 2 * self.facts)  # about as many are of terms
        self.predicates: dict[Predicate, int] = {}
        problems: list[str] = []
        for row in told.to_pylist():
            if row["kind"] == FAULT:
                self.release()
                raise InputError(row["text"])
            if row["kind"] == PREDICATE:
                self.predicates[Predicate(row["text"], row["c0"])] = row["p"]
            elif row["text"]:
                problems += row["text"].split("\n")
        for predicate in self.predicates:
            intake.add(predicate, 0)
        intake.rows += sum(row["rows"] for row in sums)
        intake.skipped += sum(row["skipped"] for row in sums)
        intake.dropped += sum(row["dropped"] for row in sums)
        intake.problems += problems[:_PROBLEMS]

    @property
    def facts(self) -> int:
        """How many rows of facts there are."""
        return sum(self.rows.values())

    def release(self) -> None:
        self.data.unpersist()

    def note_terms(self) -> None:
        """Have the dictionary know the texts of all ids."""
        dictionary, keeper = self.engine.dictionary, self.engine.keeper
        terms = self.frame.where(f"kind = {TERM}").select("c0 AS id", "text").distinct("id", "text")
        typed = "count_if(startswith(text, '\"') AND NOT endswith(text, '\"'))"
        kept, figures = keeper.keep(terms, {"typed": typed}, "distinct terms")
        if figures["rows"]:
            dictionary.add(kept, figures["rows"], figures["typed"] > 0)
        skolems = self.frame.where(f"kind = {SKOLEM_TERM}").select("c0 AS id", "text AS name", "rest AS args")
        kept, figures = keeper.keep(skolems, {})
        if figures["rows"]:
            dictionary.add_skolems(kept)

    def collect(self, predicates: Sequence[Predicate]) -> Iterator[tuple[Predicate, list[StoreIds]]]:
        """Columns of all rows of small predicates, brought to the driver by one job."""
        if not predicates:
            return
        numbers = pa.table({"p": pa.array([self.predicates[p] for p in predicates], pa.int64())})
        wanted = self.engine.keeper.frame(self.engine.spark.createDataFrame(numbers, schema="p BIGINT"))
        rows = self.frame.where(f"kind = {FACT}").join(wanted.with_hint("BROADCAST"), ["p"], "left_semi")
        found = self.engine.keeper.collect(
            rows.select("p", "c0", "c1", "rest"), "small predicates into the process"
        ).sort_by("p")
        lengths = [self.rows.get(number, 0) for number in sorted(numbers["p"].to_pylist())]
        by_number = {self.predicates[p]: p for p in predicates}
        starts = np.cumsum([0, *lengths]).tolist()
        for number, start, length in zip(sorted(by_number), starts, lengths, strict=False):
            predicate = by_number[number]
            yield predicate, _columns_of(found.slice(start, length), predicate.arity)

    def facts_of(self, predicate: Predicate) -> Facts:
        chosen = self.frame.where(f"kind = {FACT} AND p = {self.predicates[predicate]}L")
        own = [
            *("c0", "c1")[: predicate.arity],
            *(f"rest[{i}] AS c{i + 2}" for i in range(predicate.arity - 2)),
        ]
        names = columns(predicate.arity)
        frame = chosen.select(*(own or ["0L AS c0"])).totals(names, "1L AS m")
        return defer(predicate.arity, frame, summed=True)


def _columns_of(rows: pa.Table, arity: int) -> list[StoreIds]:
    first = [rows[name].to_numpy() for name in ("c0", "c1")[:arity]]
    if arity < 3:
        return first
    rest = np.concatenate([chunk.flatten().to_numpy() for chunk in rows["rest"].chunks])
    return [*first, *(np.ascontiguousarray(c) for c in rest.reshape(-1, arity - 2).T)]


class OnSpark(Protocol[F_co]):
    """An engine that has facts on Spark, or some of them."""

    @property
    def far(self) -> SparkEngine: ...

    def facts_of_store_ids(self, columns: Sequence[StoreIds], rows: int) -> F_co:
        """Facts in the process, each once."""

    def take_far(self, facts: Facts) -> F_co: ...

    @property
    def room(self) -> int:
        """Up to how many rows facts are better in the process; 0 if never."""


def ingest(
    engine: OnSpark[F], splits: Sequence[Split], intake: Intake, layout: Layout, lenient: bool
) -> dict[Predicate, F]:
    """The facts of files, for an engine on Spark, which knows their terms from now on."""
    parsed = Parsed(engine.far, splits, intake, layout, lenient)
    parsed.note_terms()
    engine.far.keeper.until_commit(parsed.release)
    small = _choose_small(parsed, engine.room)
    facts = {
        predicate: engine.facts_of_store_ids(columns, parsed.rows.get(parsed.predicates[predicate], 0))
        for predicate, columns in parsed.collect(small)
    }
    return {p: facts[p] if p in facts else engine.take_far(parsed.facts_of(p)) for p in parsed.predicates}


def _choose_small(parsed: Parsed, room: int) -> list[Predicate]:
    """The smallest predicates, as long as none has more rows than there is room for, and all together a few times as many."""
    chosen, total = [], 0
    for predicate, number in sorted(parsed.predicates.items(), key=lambda item: parsed.rows.get(item[1], 0)):
        rows = parsed.rows.get(number, 0)
        total += rows
        if rows > room or total > _ROOMS * room:
            break
        chosen.append(predicate)
    return chosen
