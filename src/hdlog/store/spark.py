"""A store in the engine on Spark: the same ids, frames over the store's own files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from hdlog.engines.spark.engine import SparkEngine
from hdlog.engines.spark.frames import Frame
from hdlog.engines.spark.progress import watch_jobs
from hdlog.engines.spark.relation import Facts as SparkFacts
from hdlog.engines.spark.relation import columns
from hdlog.engines.spark.table import Content, Run, Table
from hdlog.program.model import Predicate
from hdlog.store.files import write_new_terms
from hdlog.store.store import Facts, File, Store
from hdlog.store.written import Written

_FACTS_OF_A_PARTITION = 4_000_000


class SparkGate:
    def __init__(self, store: Store, engine: SparkEngine) -> None:
        self.store = store
        self.engine = engine
        self.keeper = engine.keeper
        self._terms = 0
        self._skolem_files: list[File] = []
        self._written = Written()

    # In.

    def read_terms(self, files: Sequence[File], skolem_files: Sequence[File]) -> None:
        """Make terms known to the engine; ids go on from those that are."""
        dictionary = self.engine.dictionary
        if files:
            dictionary.extend(self._frame(files), sum(f.rows for f in files), self.store.manifest.typed)
        self._terms = len(dictionary)
        assert self._terms == self.store.manifest.terms, "ids go on without a gap"
        if skolem_files:
            self._skolem_files += skolem_files
            dictionary.add_skolems(self._frame(self._skolem_files))

    def _frame(self, files: Sequence[File]) -> Frame:
        data = self.engine.spark.read.parquet(*self.store.paths(files))
        return self.keeper.frame(data, sum(f.rows for f in files))

    def read_facts(self, facts: Iterable[Facts]) -> dict[Predicate, SparkFacts]:
        """Facts in files, each of them once."""
        spark_facts = {}
        for stored in facts:
            frame = self._frame(stored.files).select(*self._keys(stored), "1L AS m")
            spark_facts[stored.predicate] = SparkFacts(
                stored.arity, frame, stored.rows, stored.rows, distinct=stored.distinct
            )
        return spark_facts

    def _keys(self, stored: Facts) -> list[str]:
        return columns(stored.arity) if stored.arity else ["0L AS c0"]

    def fill(self, tables: Mapping[Predicate, Table]) -> None:
        """Tables of the engine over the files of the store's snapshot."""
        rows = sum(f.rows for f in self.store.manifest.facts)
        self.engine.spread(-(-rows // _FACTS_OF_A_PARTITION))
        for stored in self.store.manifest.facts:
            frame = self._frame(stored.files).select(
                *self._keys(stored), "asserted AS a", "nonrecursive AS n", "recursive AS r", "1L AS l"
            )
            table = tables[stored.predicate]
            table.content = Content((Run(frame, stored.rows, stored.rows),), stored.rows, stored.distinct)
        self._written.note(tables)

    # Out.

    def save(self, tables: Mapping[Predicate, Table]) -> dict[str, Any]:
        """Write what has changed since `fill`; what a commit of the store is to say."""
        manifest = self.store.manifest
        facts = self._written.facts(self.store, tables, self._write)
        buckets = manifest.buckets or 1
        term_files = self._write_terms(buckets)
        return {
            "facts": facts,
            "terms": len(self.engine.dictionary),
            "term_files": (*manifest.term_files, *term_files),
            "skolem_files": self._write_skolems(),
            "buckets": buckets,
            "typed": self.engine.dictionary.typed,
        }

    def _write(self, predicate: Predicate, number: int, table: Table) -> Facts:
        whole = table.add_up_runs()
        assert whole is not None, "the table has facts"
        keys = columns(predicate.arity)[: predicate.arity]
        live = whole.where("l = 1").select(*keys, "a AS asserted", "n AS nonrecursive", "r AS recursive")
        files = self._write_frame(live, f"facts/{number}", f"writing {predicate.name}")
        asserted = sum(
            int(pq.read_table(self.store.path(f), columns=["asserted"])["asserted"].to_numpy().sum())
            for f in files
        )
        distinct = table.content.distinct or ((float(len(table)),) if predicate.arity == 1 else ())
        return Facts(predicate.name, predicate.arity, number, files, asserted, distinct)

    def _write_frame(self, frame: Frame, kind: str, what: str) -> tuple[File, ...]:
        """A frame as files of the store; Spark writes a folder, whose files move to where they belong."""
        folder = self.store.make_staging_folder()
        context = self.engine.spark.sparkContext
        with watch_jobs(context, what, self.engine.say):
            self.keeper.run(lambda: self.keeper.data(frame).write.mode("overwrite").parquet(str(folder)))
        files = []
        for part in sorted(folder.glob("*.parquet")):
            rows = pq.read_metadata(part).num_rows
            if rows:
                path = self.store.new_file(kind)
                part.replace(Path(self.store.folder) / path)
                files.append(self.store.describe_file(path, rows))
        return tuple(files)

    def _write_terms(self, buckets: int) -> list[File]:
        new = self.engine.dictionary.since(self._terms)
        self._terms = len(self.engine.dictionary)
        if new is None:
            return []
        table = self.keeper.collect(new)
        texts, ids = table["text"].combine_chunks(), table["id"].to_numpy()
        return write_new_terms(self.store, ids, texts, buckets)

    def _write_skolems(self) -> tuple[File, ...]:
        skolems = self.engine.dictionary.new_skolems()
        if skolems is None:
            return tuple(self._skolem_files)
        self._skolem_files = list(self._write_frame(skolems, "skolems", "writing Skolem terms"))
        return tuple(self._skolem_files)
