"""A store in the engine on Spark: the same ids, frames over the store's own files, read when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from hdlog.engines.spark.engine import SparkEngine
from hdlog.engines.spark.frames import Frame, union
from hdlog.engines.spark.relation import Facts
from hdlog.engines.spark.table import Content, Run, Table
from hdlog.errors import ClashingTerms
from hdlog.ingest.parsing import FACT
from hdlog.ingest.pipeline import Deduplicator, Parsed
from hdlog.maintenance.materialisation import View
from hdlog.plan.nodes import is_node
from hdlog.plan.written import WrittenPlans
from hdlog.program.model import Predicate
from hdlog.store import disk
from hdlog.store.catalogue import Catalogue, Line
from hdlog.store.disk import File
from hdlog.store.facts import SUPPORTS
from hdlog.store.gate import stored_plans
from hdlog.store.store import Store

_FACTS_OF_A_PARTITION = 4_000_000
_STATE = dict(zip(SUPPORTS, "anrl", strict=True))
"""The columns of a file, and those of a run."""
_SCHEMA = "path STRING, bytes BIGINT, checksum BIGINT, rows BIGINT, first BIGINT, last BIGINT"


class SparkGate:
    def __init__(self, store: Store, engine: SparkEngine) -> None:
        self.store = store
        self.engine = engine
        self.keeper = engine.keeper
        self.catalogue = Catalogue(store)
        manifest = store.manifest
        engine.spread(-(-manifest.counts.get("facts", 0) // _FACTS_OF_A_PARTITION))
        engine.dictionary.rest_on(
            self._frame(manifest.terms), self._frame(manifest.skolems), manifest.clashes, manifest.typed
        )
        plans = stored_plans(store)
        self._nodes = frozenset(plans.nodes) if plans is not None else frozenset()
        """what the embedded engine keeps for trees of rules, which this one makes for itself"""
        self._found: dict[Predicate, Table] = {}
        self._settle: Callable[[], None] = lambda: None

    def _frame(self, files: Sequence[File]) -> Frame | None:
        if not files:
            return None
        data = self.engine.spark.read.parquet(*self.store.paths(files))
        return self.keeper.frame(data, sum(f.rows for f in files))

    # In.

    def sizes(self) -> dict[Predicate, int]:
        return {p: rows for p, rows in self.catalogue.sizes().items() if p not in self._nodes}

    def holds(self, predicate: Predicate) -> bool:
        return predicate not in self._nodes and self.catalogue.holds(predicate)

    def find(self, predicate: Predicate) -> Table | None:
        line = self.catalogue.find(predicate) if predicate not in self._nodes else None
        return None if line is None else self._table(line)

    def _table(self, line: Line) -> Table:
        table = self.engine.table(line.arity)
        run = self._run(line, table.keys)
        if run is not None:
            distinct = line.distinct if line.arity > 1 else ()
            table.content = Content((run,), line.rows, distinct)
        table.persist()
        return table

    def _run(self, line: Line, keys: Sequence[str]) -> Run | None:
        """What the store has of a predicate, each fact once."""
        files = [f for f in self.store.manifest.facts if f.first <= line.number <= f.last]
        if not files:
            return None
        frame = self._frame(files)
        assert frame is not None
        own = [*keys[: line.arity], *(["0L AS c0"] if not line.arity else [])]
        state = [f"{name} AS {short}" for name, short in _STATE.items()]
        chosen = frame.where(f"p = {line.number}").select(*own, *state)
        if len(files) > 1:
            chosen = chosen.totals(keys, *(f"sum({s}) AS {s}" for s in _STATE.values()))
            chosen = chosen.where(" OR ".join(f"{s} <> 0" for s in _STATE.values()))
        return Run(chosen, line.rows, line.rows)

    def plans(self) -> None:
        """Rules are planned anew: what pays in process need not pay here."""

    def find_runs(self, predicate: Predicate) -> tuple[Facts, ...]:
        raise AssertionError("without plans there are no views")

    # Out.

    def save(
        self,
        tables: Mapping[Predicate, Table],
        views: Mapping[Predicate, View[Facts, Table]],
        plans: WrittenPlans | None,
    ) -> dict[str, Any]:
        self.catalogue.forget_new()  # of a commit that failed
        self._drop_nodes()
        tables = {p: t for p, t in tables.items() if not is_node(p.name)}
        self._check_terms()
        changed = {p: t for p, t in tables.items() if t.has_changed}
        lines = {p: self.catalogue.number(p) for p in changed}
        frames = {p: self._change(lines[p], table) for p, table in changed.items()}
        files, figures = self._write_facts({lines[p].number: frame for p, frame in frames.items()}, lines)
        for predicate, line in lines.items():
            live, asserted = figures.get(line.number, (0, 0))
            table = changed[predicate]
            distinct = table.content.distinct if line.arity > 1 else (float(len(table)),) * line.arity
            self.catalogue.set(
                replace(
                    line, rows=line.rows + live, asserted=line.asserted + asserted, distinct=tuple(distinct)
                )
            )
        manifest, dictionary = self.store.manifest, self.engine.dictionary
        terms = self._write(dictionary.new_terms(), "terms", ["id"])
        skolems = self._write(dictionary.new_skolems(), "skolems", ["id"])
        counts = manifest.counts
        changes = {
            "facts": (*manifest.facts, *files),
            "terms": (*manifest.terms, *terms),
            "skolems": (*manifest.skolems, *skolems),
            "catalogue": self.catalogue.write(),
            "clashes": dictionary.clashes,
            "typed": dictionary.typed,
            "plans": None,
            "counts": {
                "facts": counts.get("facts", 0) + sum(live for live, _ in figures.values()),
                "asserted": counts.get("asserted", 0) + sum(asserted for _, asserted in figures.values()),
                "terms": counts.get("terms", 0) + sum(f.rows for f in terms),
                "skolems": counts.get("skolems", 0) + sum(f.rows for f in skolems),
                "predicates": len(self.catalogue),
            },
        }
        self._settle = lambda: self._note_saved(changed.values())
        return changes

    def _drop_nodes(self) -> None:
        """They would be out of date."""
        for predicate in self._nodes:
            self.catalogue.drop(predicate)

    def _check_terms(self) -> None:
        try:
            self.engine.dictionary.check()
        except ClashingTerms:
            self.store.commit(clashes=self.engine.dictionary.clashes)
            raise

    def load(self, parsed: Parsed) -> dict[str, Any]:
        """Write facts that have been parsed as asserted ones, without a table for each predicate."""
        self._check_terms()
        lines = {parsed.predicates[p]: self.catalogue.number(p) for p in parsed.predicates}
        width = max((line.arity for line in lines.values()), default=0)
        names = ["p", *(f"c{i}" for i in range(width))]
        rows = self._number_facts(parsed, lines, width)
        supports = ", ".join(
            f"1L AS {name}" if name in ("asserted", "live") else f"0L AS {name}" for name in SUPPORTS
        )
        schema = ", ".join(["p INT", *(f"{name} BIGINT" for name in names[1:])])
        parts = max(1, -(-parsed.facts // _FACTS_OF_A_PARTITION))

        def prepare(data: DataFrame) -> DataFrame:
            spread = data.coalesce(1) if parts == 1 else data.repartitionByRange(parts, *names)
            single = spread.sortWithinPartitions(*names).mapInArrow(Deduplicator(names), schema)
            return single.selectExpr(*names, *supports.split(", "))

        files = self._write(rows, "facts", names, parsed.facts, prepare)
        self._count(files, lines.values())
        terms = self._write(self.engine.dictionary.new_terms(), "terms", ["id"], parsed.facts)
        skolems = self._write(self.engine.dictionary.new_skolems(), "skolems", ["id"])
        total = sum(f.rows for f in files)
        counts = {
            "facts": total,
            "asserted": total,
            "terms": sum(f.rows for f in terms),
            "skolems": sum(f.rows for f in skolems),
            "predicates": len(self.catalogue),
        }
        dictionary = self.engine.dictionary
        return {
            "facts": tuple(files),
            "terms": tuple(terms),
            "skolems": tuple(skolems),
            "catalogue": self.catalogue.write(),
            "clashes": dictionary.clashes,
            "typed": dictionary.typed,
            "counts": counts,
        }

    def _number_facts(self, parsed: Parsed, lines: Mapping[int, Line], width: int) -> Frame:
        """Facts with the numbers of their predicates in the store."""
        table = pa.table(
            {
                "p": pa.array(list(lines), pa.int64()),
                "number": pa.array([line.number for line in lines.values()], pa.int32()),
            }
        )
        numbers = self.keeper.frame(self.engine.spark.createDataFrame(table, schema="p BIGINT, number INT"))
        joined = parsed.frame.where(f"kind = {FACT}").join(numbers.with_hint("BROADCAST"), ["p"])
        rest = [f"rest[{i}] AS c{i + 2}" for i in range(width - 2)]
        return joined.select("number AS p", *("c0", "c1")[:width], *rest)

    def _count(self, files: Sequence[File], lines: Iterable[Line]) -> None:
        """How many facts each predicate has, and how many values its columns have, about."""
        frame = self._frame(files)
        if frame is None:
            return
        width = sum(name.startswith("c") for name in frame.names)
        values = [f"approx_count_distinct(c{i}) AS d{i}" for i in range(width)]
        counted = self.keeper.collect(frame.totals(["p"], "count(1) AS rows", *values)).to_pylist()
        by_number = {row["p"]: row for row in counted}
        for line in lines:
            row = by_number[line.number]
            distinct = tuple(max(1.0, float(row[f"d{i}"])) for i in range(line.arity))
            self.catalogue.set(replace(line, rows=row["rows"], asserted=row["rows"], distinct=distinct))

    def compact(self) -> dict[str, Any]:
        self._drop_nodes()
        lines = {line.predicate: line for line in self.catalogue.lines() if line.rows}
        frames = {}
        for line in lines.values():
            run = self._run(line, self.engine.table(line.arity).keys)
            assert run is not None, "it has facts"
            frames[line.number] = run.frame
        files, _ = self._write_facts(frames, lines)
        terms = self._frame(self.store.manifest.terms)
        several = len(self.store.manifest.terms) > 1 and terms is not None
        self._settle = lambda: self._note_saved(())
        return {
            "facts": files,
            "terms": self._write(terms, "terms", ["id"]) if several else self.store.manifest.terms,
            "catalogue": self.catalogue.write_all(),
            "plans": None,
            "image": None,
        }

    def settle(self) -> None:
        self._settle()

    def _note_saved(self, tables: Any) -> None:
        for table in tables:
            table.persist()
        manifest = self.store.manifest
        self.engine.dictionary.settle(self._frame(manifest.terms), self._frame(manifest.skolems))
        self.catalogue.renew()

    def _change(self, line: Line, table: Table) -> Frame:
        """What has changed of a table since it was found or saved: keys, and differences."""
        runs = table.unsaved_runs()
        frames = [r.frame for r in runs] if runs is not None else self._compare(line, table)
        totals = union(frames).totals(table.keys, *(f"sum({s}) AS {s}" for s in _STATE.values()))
        return totals.where(" OR ".join(f"{s} <> 0" for s in _STATE.values()))

    def _compare(self, line: Line, table: Table) -> list[Frame]:
        """All of a table, and the opposite of what the store has of it."""
        frames = [r.frame for r in table.content.runs]
        before = self._run(line, table.keys)
        if before is not None:
            opposite = [f"-{s} AS {s}" for s in _STATE.values()]
            frames.append(before.frame.select(*table.keys, *opposite))
        return frames

    def _write_facts(
        self, frames: Mapping[int, Frame], lines: Mapping[Predicate, Line]
    ) -> tuple[list[File], dict[int, tuple[int, int]]]:
        """Facts of predicates, by their numbers, as files; and how many more facts hold, and are asserted, of each."""
        if not frames:
            return [], {}
        arities = {line.number: line.arity for line in lines.values()}
        width = max(arities[number] for number in frames)
        parts = []
        for number, frame in frames.items():
            own = [f"c{i}" if i < arities[number] else f"CAST(NULL AS BIGINT) AS c{i}" for i in range(width)]
            state = [f"{short} AS {name}" for name, short in _STATE.items()]
            parts.append(frame.select(f"{number} AS p", *own, *state))
        kept, figures = self.keeper.keep(union(parts), {})
        keys = ["p", *(f"c{i}" for i in range(width))]
        files = self._write(kept, "facts", keys, figures["rows"])
        sums = self.keeper.collect(kept.totals(["p"], "sum(live) AS live", "sum(asserted) AS asserted"))
        rows = zip(*(sums[n].to_pylist() for n in ("p", "live", "asserted")), strict=True)
        return files, {number: (live, asserted) for number, live, asserted in rows}

    def _write(
        self,
        frame: Frame | None,
        kind: str,
        keys: Sequence[str],
        rows: int | None = None,
        prepare: Callable[[DataFrame], DataFrame] | None = None,
    ) -> list[File]:
        """A frame as files of the store, sorted; Spark writes a folder, whose files move to where they belong."""
        if frame is None or rows == 0:
            return []
        folder = self.store.make_staging_folder()
        self.engine.say(f"writing {kind}")
        parts = 1 if rows is None else max(1, -(-rows // _FACTS_OF_A_PARTITION))

        def run() -> None:
            data = self.keeper.data(frame)
            if prepare is not None:
                ready = prepare(data)
            else:
                spread = data.coalesce(1) if parts == 1 else data.repartitionByRange(parts, *keys)
                ready = spread.sortWithinPartitions(*keys)
            ready.write.mode("overwrite").option("compression", "zstd").parquet(str(folder))

        self.keeper.run(run)
        return list(self._take_over(folder, kind))

    def _take_over(self, folder: Path, kind: str) -> Iterator[File]:
        """Files that Spark has written, as files of the store; tasks look at them, as many as there are cores."""
        paths = sorted(str(p) for p in folder.glob("*.parquet"))
        moved = {}
        for path in paths:
            target = self.store.new_path(kind, "parquet")
            (self.store.folder / target).parent.mkdir(exist_ok=True)
            Path(path).replace(self.store.folder / target)
            moved[str(self.store.folder / target)] = target
        if not moved:
            return
        listed = self.engine.spark.createDataFrame(pa.table({"path": list(moved)}), schema="path STRING")
        described = self.keeper.run(listed.mapInArrow(_describe_files, _SCHEMA).toArrow)
        for entry in described.to_pylist():
            path = moved[entry.pop("path")]
            if entry["rows"]:
                yield File(path, **entry)
            else:
                disk.remove(self.store.folder / path)
        disk.sync_folder(self.store.folder / kind)


def _describe_files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sizes and checksums of files, and which predicates are in them."""
    for batch in batches:
        entries = [_describe(Path(path)) for path in batch.column("path").to_pylist()]
        if entries:
            yield pa.RecordBatch.from_pylist(entries)


def _describe(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        disk.sync_descriptor(stream.fileno())
    size, checksum = disk.measure(path)
    metadata = pq.read_metadata(path)
    first = last = 0
    if metadata.num_rows and metadata.schema.names[0] == "p":
        numbers = pq.read_table(path, columns=["p"])["p"]
        first, last = numbers[0].as_py(), numbers[-1].as_py()
    return {
        "path": str(path),
        "bytes": size,
        "checksum": checksum,
        "rows": metadata.num_rows,
        "first": first,
        "last": last,
    }
