"""Files into facts and into stores, on Spark: tasks parse splits, Spark's own shuffle brings equal rows together, and nothing comes to the
driver but counts and names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

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
from hdlog.reading.splits import Split

_PROBLEMS = 10


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
        self.frame: Frame = engine.keeper.frame(self.data)
        told = engine.keeper.collect(
            self.frame.where(f"kind >= {PREDICATE}").distinct("kind", "p", "c0", "c1", "text")
        )
        figures = engine.keeper.collect(
            self.frame.totals(
                [],
                f"sum(if(kind = {FIGURES}, c0, 0L)) AS rows",
                f"sum(if(kind = {FIGURES}, c1, 0L)) AS skipped",
                f"count_if(kind = {FACT}) AS facts",
            )
        ).to_pylist()[0]
        self.facts: int = figures["facts"] or 0
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
        intake.rows += figures["rows"] or 0
        intake.skipped += figures["skipped"] or 0
        intake.problems += problems[:_PROBLEMS]

    def release(self) -> None:
        self.data.unpersist()

    def note_terms(self) -> None:
        """Have the dictionary know the texts of all ids."""
        dictionary, keeper = self.engine.dictionary, self.engine.keeper
        terms = self.frame.where(f"kind = {TERM}").select("c0 AS id", "text").distinct("id", "text")
        typed = "count_if(startswith(text, '\"') AND NOT endswith(text, '\"'))"
        kept, figures = keeper.keep(terms, {"typed": typed})
        if figures["rows"]:
            dictionary.add(kept, figures["rows"], figures["typed"] > 0)
        skolems = self.frame.where(f"kind = {SKOLEM_TERM}").select("c0 AS id", "text AS name", "rest AS args")
        kept, figures = keeper.keep(skolems, {})
        if figures["rows"]:
            dictionary.add_skolems(kept)

    def facts_of(self, predicate: Predicate) -> Facts:
        chosen = self.frame.where(f"kind = {FACT} AND p = {self.predicates[predicate]}L")
        own = [
            *("c0", "c1")[: predicate.arity],
            *(f"rest[{i}] AS c{i + 2}" for i in range(predicate.arity - 2)),
        ]
        names = columns(predicate.arity)
        frame = chosen.select(*(own or ["0L AS c0"])).totals(names, "1L AS m")
        return defer(predicate.arity, frame, summed=True)


def ingest(
    engine: Any, splits: Sequence[Split], intake: Intake, layout: Layout, lenient: bool
) -> dict[Predicate, Facts]:
    """The facts of files, for the engine on Spark, which knows their terms from now on."""
    assert isinstance(engine, SparkEngine)
    parsed = Parsed(engine, splits, intake, layout, lenient)
    parsed.note_terms()
    engine.keeper.until_commit(parsed.release)
    return {predicate: parsed.facts_of(predicate) for predicate in parsed.predicates}


class Deduplicator:
    """What a task does with sorted rows: of equal ones it leaves the first."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        before: list[Any] | None = None
        for batch in batches:
            if not batch.num_rows:
                continue
            kept = np.zeros(batch.num_rows, np.bool_)
            arrays = [batch.column(n).fill_null(0).to_numpy(zero_copy_only=False) for n in self.names]
            for array in arrays:
                kept[1:] |= array[1:] != array[:-1]
            first = [array[0] for array in arrays]
            kept[0] = before is None or any(a != b for a, b in zip(first, before, strict=True))
            before = [array[-1] for array in arrays]
            yield batch.filter(pa.array(kept))
