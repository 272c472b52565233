"""A store in the engine on Spark: the same ids, frames over the store's own files, read when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import pyarrow as pa

from hdlog.engines.spark.engine import SparkEngine
from hdlog.engines.spark.frames import Frame, union
from hdlog.engines.spark.relation import Facts
from hdlog.engines.spark.table import Content, Run, Table
from hdlog.errors import ClashingTerms
from hdlog.ingest.parsing import FACT
from hdlog.ingest.pipeline import Parsed
from hdlog.maintenance.materialisation import View
from hdlog.plan.nodes import is_node
from hdlog.plan.written import WrittenPlans
from hdlog.program.model import Predicate
from hdlog.store.catalogue import Catalogue, Line
from hdlog.store.disk import File
from hdlog.store.facts import SUPPORTS
from hdlog.store.folder import Mirrored
from hdlog.store.gate import stored_plans
from hdlog.store.parts import FILES, PartReader, PartWriter
from hdlog.store.store import Store
from hdlog.store.term_ids import SKOLEM_TERMS, TERMS

_FACTS_OF_A_PARTITION = 4_000_000
_STATE = dict(zip(SUPPORTS, "anrl", strict=True))
"""The columns of a file, and those of a run."""
_ASSERTED = tuple((name, int(name in ("asserted", "live"))) for name in SUPPORTS)
"""The supports of a fact that nothing derives."""
_TYPES = {
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.string(): "STRING",
    pa.list_(pa.int64()): "ARRAY<BIGINT>",
}


def _facts_schema(width: int) -> pa.Schema:
    """Of files of facts, as far as some columns."""
    columns = [*(f"c{i}" for i in range(width)), *SUPPORTS]
    return pa.schema([("p", pa.int32()), *((name, pa.int64()) for name in columns)])


class SparkGate:
    def __init__(self, store: Store, engine: SparkEngine) -> None:
        self.store = store
        self.engine = engine
        self.keeper = engine.keeper
        self.catalogue = Catalogue(store)
        manifest = store.manifest
        engine.make_room(manifest.counts.get("facts", 0))
        engine.dictionary.rest_on(
            self._frame(manifest.terms, TERMS),
            self._frame(manifest.skolems, SKOLEM_TERMS),
            manifest.clashes,
            manifest.typed,
        )
        plans = stored_plans(store)
        self._nodes = frozenset(plans.nodes) if plans is not None else frozenset()
        """what the embedded engine keeps for trees of rules, which this one makes for itself"""
        self._found: dict[Predicate, Table] = {}
        self._settle: Callable[[], None] = lambda: None

    def _frame(self, files: Sequence[File], schema: pa.Schema, number: int | None = None) -> Frame | None:
        """The rows of files; if a number is given, at least those of this predicate."""
        if not files:
            return None
        # Spark would start a job to find out what the columns are.
        spelt = ", ".join(f"{field.name} {_TYPES[field.type]}" for field in schema)
        spark, paths = self.engine.spark, self.store.paths(files)
        if isinstance(self.store.folder, Mirrored):
            names = spark.createDataFrame(pa.table({"path": paths}), schema="path STRING")
            data = names.repartition(len(paths)).mapInArrow(PartReader(schema, number), spelt)
        else:
            data = spark.read.schema(spelt).parquet(*paths)
        return self.keeper.frame(data, sum(f.rows for f in files))

    # In.

    def sizes(self) -> dict[Predicate, int]:
        return {p: rows for p, rows in self.catalogue.sizes().items() if p not in self._nodes}

    def holds(self, predicate: Predicate) -> bool:
        return predicate not in self._nodes and self.catalogue.holds(predicate)

    def find(self, predicate: Predicate) -> Table | None:
        line = self.find_line(predicate)
        return None if line is None else self.restore(line)

    def find_line(self, predicate: Predicate) -> Line | None:
        return self.catalogue.find(predicate) if predicate not in self._nodes else None

    def restore(self, line: Line) -> Table:
        table = self.engine.table(line.arity, line.name)
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
        frame = self._frame(files, _facts_schema(line.arity), line.number)
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
        terms = self._write_terms(dictionary.new_terms())
        skolems = self._write_skolems(dictionary.new_skolems())
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
            self.note_clashes()

    def note_clashes(self) -> NoReturn:
        """Have the store know which texts share a hash; what has used it must be done again."""
        self.store.commit(clashes=self.engine.dictionary.clashes)
        raise ClashingTerms

    def load(self, parsed: Parsed) -> dict[str, Any]:
        """Write facts that have been parsed as asserted ones, without a table for each predicate."""
        self._check_terms()
        lines = {parsed.predicates[p]: self.catalogue.number(p) for p in parsed.predicates}
        width = max((line.arity for line in lines.values()), default=0)
        names = ["p", *(f"c{i}" for i in range(width))]
        rows = self._number_facts(parsed, lines, width)
        writer = PartWriter(*self._place("facts"), _facts_schema(width), _ASSERTED, True)
        files = self._write(rows, names, parsed.facts, writer)
        self._count(files, lines.values(), width)
        terms = self._write_terms(self.engine.dictionary.new_terms(), parsed.facts)
        skolems = self._write_skolems(self.engine.dictionary.new_skolems())
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

    def _count(self, files: Sequence[File], lines: Iterable[Line], width: int) -> None:
        """How many facts each predicate has, and how many values its columns have, about."""
        frame = self._frame(files, _facts_schema(width))
        if frame is None:
            return
        values = [f"approx_count_distinct(c{i}) AS d{i}" for i in range(width)]
        counted = self.keeper.collect(
            frame.totals(["p"], "count(1) AS rows", *values), "counting facts"
        ).to_pylist()
        by_number = {row["p"]: row for row in counted}
        for line in lines:
            row = by_number[line.number]
            distinct = tuple(max(1.0, float(row[f"d{i}"])) for i in range(line.arity))
            self.catalogue.set(replace(line, rows=row["rows"], asserted=row["rows"], distinct=distinct))

    def compact(self) -> dict[str, Any]:
        self._drop_nodes()
        manifest = self.store.manifest
        lines = list(self.catalogue.lines())
        width = max((line.arity for line in lines), default=0)
        facts = self._frame(manifest.facts, _facts_schema(width))
        files: list[File] = []
        if facts is not None:
            known = pa.table({"p": pa.array([line.number for line in lines], pa.int32())})
            numbers = self.keeper.frame(self.engine.spark.createDataFrame(known, schema="p INT"))
            keys = ["p", *(f"c{i}" for i in range(width))]
            summed = facts.join(numbers.with_hint("BROADCAST"), ["p"], "left_semi")
            summed = summed.totals(keys, *(f"sum({name}) AS {name}" for name in SUPPORTS))
            held = summed.where(" OR ".join(f"{name} <> 0" for name in SUPPORTS))
            writer = PartWriter(*self._place("facts"), _facts_schema(width))
            files = self._write(held, keys, sum(f.rows for f in manifest.facts), writer)
        terms = self._frame(manifest.terms, TERMS) if len(manifest.terms) > 1 else None
        term_rows = sum(f.rows for f in manifest.terms)
        self._settle = lambda: self._note_saved(())
        return {
            "facts": tuple(files),
            "terms": manifest.terms if terms is None else tuple(self._write_terms(terms, term_rows)),
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
        self.engine.dictionary.settle(
            self._frame(manifest.terms, TERMS), self._frame(manifest.skolems, SKOLEM_TERMS)
        )
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
        kept, figures = self.keeper.keep(union(parts), {}, "what has changed since the store was written")
        keys = ["p", *(f"c{i}" for i in range(width))]
        writer = PartWriter(*self._place("facts"), _facts_schema(width))
        files = self._write(kept, keys, figures["rows"], writer)
        sums = self.keeper.collect(kept.totals(["p"], "sum(live) AS live", "sum(asserted) AS asserted"))
        rows = zip(*(sums[n].to_pylist() for n in ("p", "live", "asserted")), strict=True)
        return files, {number: (live, asserted) for number, live, asserted in rows}

    def _write_terms(self, terms: Frame | None, rows: int | None = None) -> list[File]:
        return self._write(
            terms, ["id"], rows, PartWriter(*self._place("terms"), TERMS, plain=("id", "text"))
        )

    def _write_skolems(self, skolems: Frame | None) -> list[File]:
        return self._write(skolems, ["id"], None, PartWriter(*self._place("skolems"), SKOLEM_TERMS))

    def _place(self, kind: str) -> tuple[str, str]:
        """Where files of a kind go: the folder of the store, and what their names begin with."""
        if not isinstance(self.store.folder, Mirrored):
            (self.store.folder.path / kind).mkdir(exist_ok=True)
        return str(self.store.folder), f"{kind}/{self.store.manifest.version + 1:06d}"

    def _write(
        self, frame: Frame | None, keys: Sequence[str], rows: int | None, writer: PartWriter
    ) -> list[File]:
        """A frame as files of the store, sorted, which its tasks write; all that comes to the driver is what they are called."""
        if frame is None or rows == 0:
            return []
        kind = writer.prefix.partition("/")[0]
        self.engine.say(f"writing {kind}")
        parts = 1 if rows is None else max(1, -(-rows // _FACTS_OF_A_PARTITION))

        def run() -> pa.Table:
            data = self.keeper.data(frame)
            spread = data.coalesce(1) if parts == 1 else data.repartitionByRange(parts, *keys)
            return spread.sortWithinPartitions(*keys).mapInArrow(writer, FILES).toArrow()

        files = [File(**entry) for entry in self.keeper.run(run, f"writing {kind}").to_pylist()]
        return sorted(files, key=lambda file: (file.first, file.last))
