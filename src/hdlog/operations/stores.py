"""What the commands on stores do: load, materialise, update, export, info, stream."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hdlog import interrupts
from hdlog.dialects import Dialect
from hdlog.errors import Source, StoreError, UsageError
from hdlog.ingest.ingest import Loaded, ingest
from hdlog.ingest.jobs import InProcess, Jobs, OnSpark
from hdlog.operations.run import input_splits, read_rules, unknown_predicates
from hdlog.operations.work import AnyWork, Settings, begin_work
from hdlog.program.model import Program
from hdlog.program.types import attribute_layout
from hdlog.reading.objects import arities_in, check_arities, find_misspelt
from hdlog.reading.splits import Split, find_splits, size_of
from hdlog.reasoning import Update
from hdlog.store.export import export, list_visible_facts, make_sheets
from hdlog.store.store import (
    RuleFile,
    Store,
    check_place,
    create_store,
    lock_folder,
    open_for_reading,
    open_store,
)
from hdlog.text import RuleText, read_texts
from hdlog.tuning import Tuning
from hdlog.writing.files import fact_lines, is_triple

_TABLE = "table:"
_SMALL_INPUT = 48 << 20
"""Bytes of files that are read in process: they are there before a Spark session has started."""


def jobs_for(splits: Sequence[Split], settings: Settings) -> tuple[Jobs, int]:
    """Where files are read, and in how many parts at least."""
    if size_of(splits) <= _SMALL_INPUT and settings.spark is None:
        return InProcess(settings.say), 1
    session = settings.session()
    return OnSpark(session, settings.say), session.sparkContext.defaultParallelism


def read_into(store: Store, splits: Sequence[Split], program: Program, settings: Settings) -> Loaded:
    """Facts of files with ids of the store, which has their terms from now on."""
    jobs, parallel = jobs_for(splits, settings)
    loaded = ingest(store, splits, jobs, attribute_layout(program), settings.lenient, parallel)
    check_arities(arities_in(program), (f.predicate for f in loaded.facts))
    manifest = store.manifest
    store.admit(
        terms=loaded.terms,
        typed=loaded.typed,
        buckets=loaded.buckets,
        term_files=(*manifest.term_files, *loaded.term_files),
        skolem_files=(*manifest.skolem_files, *loaded.skolem_files),
    )
    return loaded


def splits_of(
    store: Store, data: Sequence[str | Path | Mapping[str, Any]], settings: Settings
) -> list[Split]:
    """What is to be read: files, tables of Spark (`table:NAME`), and DataFrames by the name of their predicate."""
    files = [d for d in data if not isinstance(d, Mapping) and not str(d).startswith(_TABLE)]
    splits = find_splits(files) if files else []
    frames = {n: f for d in data if isinstance(d, Mapping) for n, f in d.items()}
    for name in (str(d).removeprefix(_TABLE) for d in data if str(d).startswith(_TABLE)):
        frames[name.split(".")[-1]] = _table(settings.session(), name)
    for name, frame in frames.items():
        settings.say(f"reading {name} from Spark")
        folder = store.make_staging_folder() / "table"
        frame.write.parquet(str(folder))
        splits += [replace(split, name=name) for split in find_splits([folder])]
    return splits


def _table(spark: Any, name: str) -> Any:
    parts = name.split(".")
    if not all(parts) or len(parts) > 3 or not spark.catalog.tableExists(name):
        raise UsageError(f"{_TABLE}{name}: Spark's catalog has no such table or view")
    return spark.table(name)


def load(
    folder: Path,
    data: Sequence[str | Path | Mapping[str, Any]],
    settings: Settings,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Files, tables of Spark and DataFrames into a new store, without reasoning."""
    started = time.perf_counter()
    with build_store(folder, overwrite) as store:
        loaded = read_into(store, splits_of(store, data, settings), Program(), settings)
        with interrupts.Guard():
            store.commit(facts=loaded.facts)
    seconds = time.perf_counter() - started
    return {
        "read": loaded.read,
        "facts": loaded.rows,
        "terms": loaded.terms,
        "skipped": loaded.skipped,
        "problems": list(loaded.problems),
        "seconds": {"load": seconds},
        "lines": [
            f"{loaded.rows:,} facts and {loaded.terms:,} terms in {folder}, {seconds:.1f} s",
            *_skips(loaded),
        ],
    }


def _skips(loaded: Loaded) -> list[str]:
    if not loaded.skipped:
        return []
    more = [f"  {problem}" for problem in loaded.problems]
    return [f"warning: {loaded.skipped:,} malformed lines were skipped; the first of them:", *more]


@contextmanager
def build_store(folder: Path, overwrite: bool) -> Iterator[Store]:
    """A new store that is there in the end, or not at all; one that it takes the place of stays until then."""
    check_place(folder)
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(folder):
        store = create_store(folder, overwrite)
        (folder / "staging").mkdir(exist_ok=True)
        try:
            yield store
        except BaseException:
            if (folder / "manifest.json").exists():
                with suppress(StoreError):  # damaged, and so it stays
                    open_store(folder).clean()
            elif is_new:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        store.clean()


def materialise(
    rules: Sequence[Path],
    data: Sequence[str | Path | Mapping[str, Any]],
    folder: Path,
    settings: Settings,
    fact_folder: Path = Path(),
    dialect: Dialect | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Rules and files into a new store with everything that follows."""
    started = time.perf_counter()
    texts = read_rules(list(rules), dialect)
    program = read_texts(texts)
    named = input_splits(program, fact_folder)
    with build_store(folder, overwrite) as store:
        loaded = read_into(store, [*named, *splits_of(store, data, settings)], program, settings)
        read_ = time.perf_counter()
        work = begin_work(store, program, settings, loaded.rows)
        reasoner = work.start(restore=False)
        reasoner.materialise(work.gate.read_facts(loaded.facts))
        done = time.perf_counter()
        kept = tuple(RuleFile(t.source.name, t.dialect, t.source.text) for t in texts)
        work.commit(rules=kept, materialised=True, tuning=settings.tuning.as_dict())
    end = time.perf_counter()
    lines = [
        f"engine: {work.engine_name} ({work.why})",
        f"{loaded.rows:,} facts read in {read_ - started:.1f} s, {len(reasoner):,} after materialisation in "
        f"{done - read_:.1f} s, written to {folder} in {end - done:.1f} s",
        *_skips(loaded),
        *find_misspelt(program, (f.predicate for f in loaded.facts)),
        *unknown_predicates(program, reasoner),
    ]
    return {
        "engine": work.engine_name,
        "why": work.why,
        "read": loaded.read,
        "given": loaded.rows,
        "facts": len(reasoner),
        "skipped": loaded.skipped,
        "seconds": {"load": read_ - started, "materialise": done - read_, "write": end - done},
        "lines": lines,
    }


def read_program(store: Store) -> Program:
    """The program of a store."""
    rules = store.manifest.rules
    return read_texts([RuleText(Source(r.name, r.text), r.dialect) for r in rules])  # type: ignore[arg-type]


@dataclass
class Living:
    """An open store that takes updates."""

    work: AnyWork
    program: Program

    def update(self, changes: Sequence[tuple[Sequence[str], Sequence[str]]]) -> tuple[Update, list[Loaded]]:
        """Files to add and to delete, in turn; the net change of all of them, not committed yet."""
        store, settings = self.work.store, self.work.settings
        loaded, updates = [], []
        for pair in changes:
            both = []
            for files in pair:
                before = store.manifest
                ingested = read_into(store, find_splits(files), self.program, settings) if files else None
                if ingested is not None:
                    after = store.manifest
                    self.work.gate.read_terms(
                        after.term_files[len(before.term_files) :],
                        after.skolem_files[len(before.skolem_files) :],
                    )
                    loaded.append(ingested)
                both.append(self.work.gate.read_facts(ingested.facts) if ingested is not None else {})
            updates.append((both[0], both[1]))
        return self.work.reasoner.update_in_turn(updates), loaded


@contextmanager
def open_for_update(folder: Path, settings: Settings) -> Iterator[Living]:
    """A store to update; its rules are those it was made with."""
    open_store(folder)
    with lock_folder(folder):
        store = open_store(folder)
        store.clean()
        program = read_program(store)
        if store.manifest.tuning:
            tuning = Tuning(**store.manifest.tuning, numbers=settings.tuning.numbers)
            settings = replace(settings, tuning=tuning)
        rows = sum(f.rows for f in store.manifest.facts)
        work = begin_work(store, program, settings, rows)
        work.start(restore=True)
        yield Living(work, program)
        store.clean()


def update(folder: Path, add: Sequence[str], delete: Sequence[str], settings: Settings) -> dict[str, Any]:
    """Add and delete the facts of files; the exact change of what holds."""
    started = time.perf_counter()
    find_splits([*add, *delete])
    with open_for_update(folder, settings) as living:
        ready = time.perf_counter()
        change, loaded = living.update([(add, delete)])
        for table in (*change.added.values(), *change.removed.values()):
            table.hold()
        done = time.perf_counter()
        living.work.commit()
    end = time.perf_counter()
    lines = [
        f"engine: {living.work.engine_name} ({living.work.why})",
        f"{change} in {done - ready:.2f} s; the store was read in {ready - started:.1f} s and written in {end - done:.1f} s",
        *(line for part in loaded for line in _skips(part)),
        *find_misspelt(living.program, (f.predicate for part in loaded for f in part.facts)),
    ]
    return {
        "engine": living.work.engine_name,
        "added": {str(p): len(t) for p, t in change.added.items()},
        "removed": {str(p): len(t) for p, t in change.removed.items()},
        "change": change,
        "seconds": {"open": ready - started, "update": done - ready, "write": end - done},
        "lines": lines,
    }


def change_lines(change: Update) -> Iterator[str]:
    """Each fact that came, after a plus, and each that went, after a minus."""
    for sign, side in (("+", change.added), ("-", change.removed)):
        for predicate, table in sorted(side.items(), key=lambda item: str(item[0])):
            yield from (f"{sign} {line}" for line in fact_lines(table.sheet(predicate)))


def info(folder: Path) -> dict[str, Any]:
    """What is in a store, from its manifest."""
    store = open_store(folder)
    manifest = store.manifest
    facts = sorted(list_visible_facts(store), key=lambda f: -f.rows)
    return {
        "folder": str(folder),
        "snapshot": manifest.snapshot,
        "created": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(manifest.created)),
        "version": manifest.version,
        "materialised": manifest.materialised,
        "facts": sum(f.rows for f in facts),
        "asserted": sum(f.asserted for f in facts),
        "derived": sum(f.rows - f.asserted for f in facts),
        "terms": manifest.terms,
        "skolems": sum(f.rows for f in manifest.skolem_files),
        "rules": len(read_program(store).rules),
        "rule_files": [r.name for r in manifest.rules],
        "method": manifest.tuning.get("method", ""),
        "bytes": sum(f.bytes for f in manifest.files()),
        "predicates": [
            {
                "name": f.name,
                "arity": f.arity,
                "facts": f.rows,
                "asserted": f.asserted,
                "derived": f.rows - f.asserted,
                "distinct": [round(d) for d in f.distinct],
                "bytes": sum(file.bytes for file in f.files),
                "folder": f"facts/{f.number}",
            }
            for f in facts
        ],
        "streams": manifest.batches,
    }


def export_store(
    folder: Path, format_: str, out: Path | None, settings: Settings, overwrite: bool = False
) -> dict[str, Any]:
    started = time.perf_counter()
    with open_for_reading(folder) as store:
        sheets = make_sheets(store, read_program(store))
        written, left = export(sheets, format_, out, settings.say, overwrite)
    seconds = time.perf_counter() - started
    lines = [f"{written:,} facts written to {out or 'standard output'} in {seconds:.1f} s"]
    lines += [f"warning: left out: {line}" for line in left]
    if format_ != "nt" and (format_ != "parquet" or not all(sheet.is_exact for sheet in sheets)):
        keeps = (
            "--format nt keeps them"
            if any(is_triple(s.predicate) for s in sheets)
            else "--format parquet keeps most"
        )
        lines.append(f"IRIs, languages and datatypes are written as plain text; {keeps}")
    return {"facts": written, "left": left, "lines": lines}
