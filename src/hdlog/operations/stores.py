"""What the commands on stores do: load, materialise, update, rules, export, info, and the history of a store."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hdlog.dialects import Dialect
from hdlog.errors import Source, StoreError, UsageError
from hdlog.ingest.intake import Intake
from hdlog.maintenance.moments import Moments
from hdlog.maintenance.nodes import Node
from hdlog.operations.run import describe_left_out, input_splits, read_rules, unknown_predicates
from hdlog.operations.stepwise import Stepwise, choose_rules
from hdlog.operations.work import AnyWork, Settings, begin_work, choose_engine
from hdlog.places import Place
from hdlog.plan.nodes import is_node
from hdlog.program.model import Predicate, Program, Rule
from hdlog.program.normalise import is_auxiliary
from hdlog.program.renaming import without_names
from hdlog.query.queries import Queries
from hdlog.reading.changes import read_changes
from hdlog.reading.mapping import Mapped, find_mapped_splits
from hdlog.reading.objects import find_misspelt
from hdlog.reading.splits import Split, find_splits, size_of
from hdlog.reasoning import Reasoning, Row, Update
from hdlog.report.explain import describe
from hdlog.store import disk
from hdlog.store.catalogue import Catalogue, Line
from hdlog.store.export import RDF_FORMATS, export
from hdlog.store.store import (
    MANIFEST,
    UNFINISHED,
    Store,
    check_place,
    create_store,
    lock_folder,
    open_for_reading,
    open_store,
    open_unfinished,
)
from hdlog.text import RuleText, read_texts
from hdlog.tuning import Tuning
from hdlog.writing.files import fact_lines, file_names, is_triple, name_lines
from hdlog.writing.sheets import Sheet

_TABLE = "table:"
_FROM_FILE = "@"
_BYTES_A_FACT = 60
"""Of text files, about."""
AnyNode = Node[Any, Any, Any]
Data = Sequence[str | Place | Mapped | Mapping[str, Any]]
"""Files, folders and patterns, tables of Spark (`table:NAME`), and DataFrames by the name of their predicate."""


@dataclass(frozen=True)
class Given:
    """What is to be read: splits of files, and DataFrames by predicate."""

    splits: list[Split]
    frames: list[tuple[str, Any]]
    dropped: int = 0
    """rows of tables of Spark that lack a value"""

    def estimate_facts(self) -> int:
        return size_of(self.splits) // _BYTES_A_FACT


def read_text(text: str) -> str:
    """A text as it is given: `@FILE` is that of a file, `-` that of standard input."""
    if text == "-":
        return sys.stdin.read()
    if not text.startswith(_FROM_FILE):
        return text
    path = Path(text.removeprefix(_FROM_FILE))
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8 text") from None


def find_data(data: Data, settings: Settings) -> Given:
    given = Given([], [])
    files = []
    for entry in data:
        if isinstance(entry, Mapping):
            given.frames.extend(entry.items())
        elif isinstance(entry, Mapped):
            given = _add_mapped(given, entry, settings)
        elif str(entry).startswith(_TABLE):
            name = str(entry).removeprefix(_TABLE)
            given.frames.append((name.split(".")[-1], _table(settings.session(), name)))
        else:
            files.append(entry)
    found = find_splits(files, memory=settings.budget.memory) if files else []
    return replace(given, splits=[*given.splits, *found])


def check_files(data: Sequence[str]) -> None:
    """Refuse files that are not there, before anything else is done."""
    files = [entry for entry in data if not entry.startswith(_TABLE)]
    if files:
        find_splits(files)


def _add_mapped(given: Given, mapped: Mapped, settings: Settings) -> Given:
    if not mapped.source.startswith(_TABLE):
        more = find_mapped_splits(mapped, settings.budget.memory)
        return replace(given, splits=[*given.splits, *more])
    table = _table(settings.session(), mapped.source.removeprefix(_TABLE))
    missing = [column for column in mapped.columns if column not in table.columns]
    if missing:
        raise UsageError(
            f"{mapped.source}: there is no column {missing[0]}; there are {', '.join(table.columns)}"
        )
    chosen = table.select(*mapped.columns)
    whole = chosen.dropna()
    frames = [*given.frames, (mapped.predicate, whole)]
    return replace(given, frames=frames, dropped=given.dropped + chosen.count() - whole.count())


def _table(spark: Any, name: str) -> Any:
    parts = name.split(".")
    if not all(parts) or len(parts) > 3 or not spark.catalog.tableExists(name):
        raise UsageError(f"{_TABLE}{name}: Spark's catalog has no such table or view")
    return spark.table(name)


# Making.


def load(folder: Place, data: Data, settings: Settings, overwrite: bool = False) -> dict[str, Any]:
    """Files, tables of Spark and DataFrames into a new store, without reasoning."""
    started = time.perf_counter()
    with build_store(folder, overwrite) as store:
        given = find_data(data, settings)
        work = begin_work(store, Program(), settings, given.estimate_facts(), bool(given.frames))
        intake = work.load(given.splits, given.frames)
        intake.dropped += given.dropped
    seconds = time.perf_counter() - started
    counts = store.manifest.counts
    return {
        "engine": work.engine_name,
        "read": intake.rows,
        "facts": counts["facts"],
        "terms": counts["terms"],
        "skipped": intake.skipped,
        "dropped": intake.dropped,
        "problems": intake.problems,
        "seconds": {"load": seconds},
        "lines": [
            f"{counts['facts']:,} facts and {counts['terms']:,} terms in {folder}, {seconds:.1f} s",
            *intake.warnings(),
        ],
    }


@contextmanager
def build_store(folder: Place, overwrite: bool, resume: bool = False) -> Iterator[Store]:
    """A new store that is there in the end, or not at all; one that it takes the place of stays until then. Or one to go on with."""
    check_place(folder)
    is_new = isinstance(folder, Path) and not folder.exists()
    if isinstance(folder, Path) and not resume:
        folder.mkdir(parents=True, exist_ok=True)
    if resume:
        open_unfinished(folder)
    with lock_folder(folder):
        store = open_unfinished(folder) if resume else create_store(folder, overwrite)
        if not resume:
            store.forget_unfinished()
        try:
            yield store
        except BaseException:
            if store.folder.has(MANIFEST):
                with suppress(StoreError):  # damaged, and so it stays
                    open_store(folder).clean()
            elif is_new and not store.folder.has(UNFINISHED):
                shutil.rmtree(store.folder.path, ignore_errors=True)
            raise
        store.clean()


def materialise(
    rules: Sequence[Path],
    data: Data,
    folder: Place,
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
    more: dict[str, Any] = {
        "rules": [(t.source.name, t.dialect, t.source.text) for t in texts],
        "materialised": True,
        "tuning": settings.tuning.as_dict(),
    }
    with build_store(folder, overwrite) as store:
        given = find_data(data, settings)
        given = replace(given, splits=[*named, *given.splits])
        begun = time.perf_counter()
        estimate, with_frames = given.estimate_facts(), bool(given.frames)
        in_steps = choose_engine(settings, estimate, with_frames)[0] != "columnar"
        first = replace(program, rules=()) if in_steps else program
        work = begin_work(store, first, settings, estimate, with_frames)
        own = time.perf_counter() - begun  # what follows from the facts in the program
        facts, intake = work.read(given.splits, program, given.frames)
        intake.dropped += given.dropped
        read_ = time.perf_counter()
        if in_steps:
            steps = Stepwise(work, program, (), settings.note_every, **more)
            steps.begin(facts)
            steps.run()
            done = steps.completed
        else:
            with committing(work, **more) as completed:
                work.reasoner.materialise(facts)
            done = completed[-1]
    end = time.perf_counter()
    seconds = {"load": read_ - started - own, "materialise": done - read_ + own, "write": end - done}
    summary = _sum_up(work, program, texts, seconds, folder)
    summary["lines"] += [
        *intake.warnings(),
        *find_misspelt(program, intake.predicates),
        *unknown_predicates(program, work.reasoner),
    ]
    return {**summary, "read": intake.rows, "skipped": intake.skipped}


def resume(folder: Place, settings: Settings) -> dict[str, Any]:
    """Go on with a materialisation that was killed, from what was finished."""
    started = time.perf_counter()
    with build_store(folder, overwrite=True, resume=True) as store:
        texts = rule_texts_of(store)
        program = read_texts(texts)
        manifest = store.manifest
        finished = manifest.unfinished or ()
        settings = _as_it_began(store, settings)
        work = begin_work(store, choose_rules(program, finished), settings, manifest.counts.get("facts", 0))
        opened = time.perf_counter()
        steps = Stepwise(work, program, finished, settings.note_every, materialised=True)
        steps.run()
    end = time.perf_counter()
    seconds = {
        "load": opened - started,
        "materialise": steps.completed - opened,
        "write": end - steps.completed,
    }
    summary = _sum_up(work, program, texts, seconds, folder)
    note = f"gone on after {len(finished):,} of {len(program.rules):,} rules"
    return {**summary, "lines": [note, *summary["lines"]]}


def _sum_up(
    work: AnyWork, program: Program, texts: Sequence[RuleText], seconds: Mapping[str, float], folder: Place
) -> dict[str, Any]:
    asserted = work.store.manifest.counts["asserted"]
    return {
        "engine": work.engine_name,
        "why": work.why,
        "given": asserted,
        "facts": len(work.reasoner),
        "seconds": seconds,
        "lines": [
            f"engine: {work.engine_name} ({work.why})",
            f"{asserted:,} facts read in {seconds['load']:.1f} s, {len(work.reasoner):,} after materialisation in "
            f"{seconds['materialise']:.1f} s, written to {folder} in {seconds['write']:.1f} s",
            *describe_left_out(texts),
        ],
    }


# Changing.


def read_program(store: Store) -> Program:
    """The program of a store."""
    return read_texts(rule_texts_of(store))


def rule_texts_of(store: Store) -> list[RuleText]:
    return [RuleText(Source(r.name, text), r.dialect) for r, text in store.read_rules()]  # type: ignore[arg-type]


@dataclass
class Living:
    """An open store that takes updates."""

    work: AnyWork
    program: Program

    def update(
        self,
        changes: Sequence[tuple[Data, Data]],
        tell: Callable[[Update], None] = lambda _: None,
        **more: Any,
    ) -> tuple[Update, list[Intake]]:
        """Data to add and to delete, in turn; the net change of all of them, which is in the store then, and was told before."""
        intakes: list[Intake] = []
        updates = []
        for pair in changes:
            both = []
            for data in pair:
                given = find_data(data, self.work.settings)
                facts, intake = self.work.read(given.splits, self.program, given.frames)
                intake.dropped += given.dropped
                intakes.append(intake)
                both.append(facts)
            updates.append((both[0], both[1]))
        return self.apply(updates, tell, **more), intakes

    def apply(
        self,
        updates: Sequence[tuple[Any, Any]],
        tell: Callable[[Update], None] = lambda _: None,
        **more: Any,
    ) -> Update:
        """Facts of the engine, likewise."""
        with committing(self.work, tell, **more):
            return self.work.reasoner.update_in_turn(updates)

    def change_rules(self, program: Program, texts: Sequence[RuleText]) -> Update:
        """Another program, in the words of rule files; what that changed is in the store then."""
        reasoner = self.work.reasoner
        with committing(self.work, **rule_changes(reasoner, texts)):
            change = reasoner.change_program(program)
        self.program = program
        return change


def rule_changes(reasoner: Reasoning[Any, Any, Any], texts: Sequence[RuleText]) -> dict[str, Any]:
    """What a commit says of rules."""
    rules = [(t.source.name, t.dialect, t.source.text) for t in texts]
    return {"rules": rules, "materialised": True, "tuning": reasoner.driver.tuning.as_dict()}


@contextmanager
def committing(
    work: AnyWork, tell: Callable[[Update], None] = lambda _: None, **more: Any
) -> Iterator[list[float]]:
    """A change within this is one of the store, too, or, after any error, none at all. When it was complete is noted."""
    completed: list[float] = []

    def commit(changes: Sequence[Update]) -> None:
        completed.append(time.perf_counter())
        for change in changes:
            tell(change)
        counts = [change.count() for change in changes] or [(len(work.reasoner), 0)]
        came, went = (sum(several) for several in zip(*counts, strict=True))
        work.commit(came, went, **more)

    work.reasoner.before_commit = commit
    try:
        yield completed
    finally:
        work.reasoner.before_commit = None


@contextmanager
def open_for_update(folder: Place, settings: Settings) -> Iterator[Living]:
    """A store to update; its rules are those it was made with."""
    open_store(folder)
    with lock_folder(folder):
        store = open_store(folder)
        store.clean()
        living = begin_living(store, settings)
        yield living
        store.clean()


def _as_it_began(store: Store, settings: Settings) -> Settings:
    """With the method that a store was made with, if that is known."""
    if not store.manifest.tuning:
        return settings
    return replace(settings, tuning=Tuning(**store.manifest.tuning, numbers=settings.tuning.numbers))


def begin_living(store: Store, settings: Settings) -> Living:
    program = read_program(store)
    settings = _as_it_began(store, settings)
    return Living(begin_work(store, program, settings, store.manifest.counts.get("facts", 0)), program)


def update(
    folder: Place,
    add: Sequence[str],
    delete: Sequence[str],
    settings: Settings,
    changes: Sequence[str] = (),
    sparql: str | None = None,
) -> dict[str, Any]:
    """Add and delete the facts of files, what files of `+` and `-` lines say, or SPARQL Update; the exact change of what holds."""
    started = time.perf_counter()
    check_files([*add, *delete])
    with open_for_update(folder, settings) as living:
        ready = time.perf_counter()
        engine = living.work.engine
        listed = []
        for path in changes:
            come, go = read_changes(path, living.program)
            listed.append((engine.encode_chunks(come), engine.encode_chunks(go)))
        intakes: list[Intake] = []
        if sparql is not None:
            with committing(living.work):
                change = Queries(living.work.reasoner).update_sparql(read_text(sparql))
        elif listed:
            change = living.apply(listed)
        else:
            change, intakes = living.update([(add, delete)])
        change.hold()
        done = time.perf_counter()
    lines = [
        f"engine: {living.work.engine_name} ({living.work.why})",
        f"{change} in {done - ready:.2f} s; the store was opened in {ready - started:.2f} s",
        *(line for intake in intakes for line in intake.warnings()),
        *find_misspelt(living.program, (p for intake in intakes for p in intake.predicates)),
    ]
    return {
        "engine": living.work.engine_name,
        "version": living.work.store.manifest.version,
        "added": {str(p): len(t) for p, t in change.added.items()},
        "removed": {str(p): len(t) for p, t in change.removed.items()},
        "change": change,
        "seconds": {"open": ready - started, "update": done - ready},
        "lines": lines,
    }


def change_lines(change: Update) -> Iterator[str]:
    """Each fact that came, after a plus, and each that went, after a minus."""
    for sign, side in (("+", change.added), ("-", change.removed)):
        for predicate, table in sorted(side.items(), key=lambda item: str(item[0])):
            yield from (f"{sign} {line}" for line in fact_lines(table.sheet(predicate)))


# Rules that come and go.


def change_rules(
    folder: Place,
    add: Sequence[Path],
    remove: Sequence[Path],
    settings: Settings,
    dialect: Dialect | None = None,
) -> dict[str, Any]:
    """Add the rules of files to a store, and remove those of others; the exact change of what holds."""
    with open_for_update(folder, settings) as living:
        texts = rule_texts_of(living.work.store)
        texts = without_rules(texts, read_rules(list(remove), dialect)) if remove else texts
        new = read_rules(list(add), dialect) if add else []
        texts += [t for t in new if t not in texts]
        program = read_texts(texts)
        change = living.change_rules(program, texts)
        change.hold()
    return {
        "rules": len(program.rules),
        "version": living.work.store.manifest.version,
        "added": {str(p): len(t) for p, t in change.added.items()},
        "removed": {str(p): len(t) for p, t in change.removed.items()},
        "change": change,
        "lines": [f"{len(program.rules):,} rules; {change}", *describe_left_out(new)],
    }


def without_rules(texts: Sequence[RuleText], gone: Sequence[RuleText]) -> list[RuleText]:
    """Rule files without the rules of others; all of them must be there, whatever their variables are called."""
    from hdlog.text.write import write

    unwanted = {without_names(rule): rule for rule in read_texts(list(gone)).rules}
    missing = dict(unwanted)
    kept: list[RuleText] = []
    for text in texts:
        program = read_texts([text])
        same = [without_names(rule) for rule in program.rules]
        rest: tuple[Rule, ...] = tuple(
            r for r, s in zip(program.rules, same, strict=True) if s not in unwanted
        )
        for s in same:
            missing.pop(s, None)
        if len(rest) == len(program.rules):
            kept.append(text)
        elif rest:
            smaller = replace(program, rules=rest)
            kept.append(RuleText(Source(text.source.name, write(smaller, text.dialect)), text.dialect))
    if missing:
        names = ", ".join(sorted({h.name for r in missing.values() for h in r.heads}))
        raise UsageError(f"cannot remove rules that are not in the store: {names}")
    return kept


def list_rules(folder: Place, version: int | None = None) -> str:
    with open_for_reading(folder, version) as store:
        return "\n".join(f"# {rules.name}\n{text.rstrip()}" for rules, text in store.read_rules())


# Versions.


def log(folder: Place) -> list[dict[str, Any]]:
    """What has happened to a store, the newest first."""
    with open_for_reading(folder) as store:
        kept = store.kept_versions()
        return [
            {
                "version": e.version,
                "created": _moment(e.created),
                "by": e.by,
                "command": e.command,
                "added": e.added,
                "removed": e.removed,
                "facts": e.facts,
                "kept": e.version in kept,
            }
            for e in reversed(store.log())
        ]


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def rollback(folder: Place, version: int) -> dict[str, Any]:
    """Have a store say again what it said in an older version, which is kept; as a new version."""
    with lock_folder(folder):
        store = open_store(folder)
        old = open_store(folder, version).manifest
        newest = store.manifest
        store.manifest = replace(old, entry=newest.entry, history=newest.history, keep=newest.keep)
        facts = old.counts.get("facts", 0) - newest.counts.get("facts", 0)
        store.commit(max(0, facts), max(0, -facts))
        store.clean()
    return {
        "version": store.manifest.version,
        "lines": [f"version {store.manifest.version} says what version {version} said"],
    }


def explain_store(folder: Place) -> dict[str, Any]:
    """How the rules of a store are evaluated, and which nodes it has."""
    with open_for_reading(folder) as store:
        return describe(begin_living(store, Settings("columnar")).work.reasoner.driver)


def compact(folder: Place, settings: Settings, keep: int | None = None) -> dict[str, Any]:
    """Put the files of a store together, so that it has each fact once; older versions go, but for as many as are to be kept."""
    started = time.perf_counter()
    with open_for_update(folder, settings) as living:
        before = sum(f.bytes for f in living.work.store.manifest.files())
        changes = living.work.gate.compact()
        living.work.store.commit(**changes, **({"keep": keep} if keep is not None else {}))
        living.work.gate.settle()
        after = sum(f.bytes for f in living.work.store.manifest.files())
    seconds = time.perf_counter() - started
    return {
        "version": living.work.store.manifest.version,
        "bytes": after,
        "lines": [f"{before / 1e6:,.1f} MB are {after / 1e6:,.1f} MB now, {seconds:.1f} s"],
    }


def verify(
    folder: Place, settings: Settings, deep: bool = False, version: int | None = None
) -> dict[str, Any]:
    """Read every file of a store and compare it with its checksum; if `deep`, also compare all facts and supports with those that follow
    from the asserted ones."""
    with open_for_reading(folder, version) as store:
        files = list({f.path: f for f in store.manifest.files()}.values())
        for file in files:
            settings.say(f"checking {file.path}")
            disk.check(store.folder, file)
        lines = [
            f"{len(files):,} files are as they were written, {sum(f.bytes for f in files) / 1e6:,.1f} MB"
        ]
        if deep:
            lines.append(_compare_with_fresh(store, settings))
    return {"files": len(files), "lines": lines}


def _compare_with_fresh(store: Store, settings: Settings) -> str:
    living = begin_living(store, replace(settings, engine="columnar"))
    kept, engine = living.work.reasoner, living.work.engine
    asserted = {}
    predicates = [p for p in kept.driver.kept.sizes() if not is_node(p.name)]
    for predicate in predicates:
        table = kept.driver.kept.find(predicate)
        assert table is not None, "it has a size"
        facts = engine.select_asserted(table, engine.facts(table))
        if engine.count(facts):
            asserted[predicate] = facts
    fresh = Reasoning(engine, tuning=living.work.settings.tuning)
    fresh.add_program(living.program.without_facts())
    fresh.materialise(asserted)
    different = []
    others = (p for p in fresh.driver.kept.sizes() if not is_node(p.name))
    for predicate in dict.fromkeys((*predicates, *others)):
        tables = [r.driver.kept.find(predicate) for r in (kept, fresh)]
        rows = [set() if t is None else set(engine.supports(t)) for t in tables]
        if rows[0] != rows[1]:
            different.append(f"{predicate} ({len(rows[0] ^ rows[1]):,} facts)")
    different += _compare_nodes(kept)
    if different:
        raise StoreError(
            f"{store.folder}: not what follows from the asserted facts: {', '.join(different[:5])}"
        )
    return f"{len(fresh):,} facts, and their supports, are what follows from the asserted ones"


def _compare_nodes(kept: Reasoning[Any, Any, Any]) -> list[str]:
    """The nodes of trees that are not what the tables, and the nodes below them, say."""
    engine, driver = kept.engine, kept.driver
    moments = Moments(driver.kept, driver.tuning.numbers)

    def evaluate(node: AnyNode) -> dict[Row, int]:
        return engine.weights(node.all_rows({read: moments.find_new(*read) for read in node.reads}))

    nodes = driver.planning.nodes
    return [str(p) for p, (_, rows) in kept.nodes().items() if rows != evaluate(nodes[p])]


# Reading.


def visible_lines(store: Store) -> list[Line]:
    """The predicates that a user knows."""
    return [line for line in Catalogue(store).lines() if line.rows and not is_auxiliary(line.name)]


def info(folder: Place, version: int | None = None) -> dict[str, Any]:
    """What is in a store, from its manifest and its catalogue."""
    with open_for_reading(folder, version) as store:
        manifest = store.manifest
        lines = sorted(visible_lines(store), key=lambda line: -line.rows)
        return {
            "folder": str(folder),
            "version": manifest.version,
            "versions": store.kept_versions(),
            "created": _moment(manifest.entry.created),
            "program_version": manifest.program_version,
            "materialised": manifest.materialised,
            "facts": sum(line.rows for line in lines),
            "asserted": sum(line.asserted for line in lines),
            "derived": sum(line.rows - line.asserted for line in lines),
            "terms": manifest.counts.get("terms", 0),
            "skolems": manifest.counts.get("skolems", 0),
            "rules": len(read_program(store).rules),
            "rule_files": [r.name for r in manifest.rules],
            "method": manifest.tuning.get("method", ""),
            "bytes": sum(f.bytes for f in manifest.files()),
            "image": manifest.image is not None,
            "predicates": [
                {
                    "name": line.name,
                    "arity": line.arity,
                    "facts": line.rows,
                    "asserted": line.asserted,
                    "derived": line.rows - line.asserted,
                    "about_distinct": [round(d) for d in line.distinct],
                    "number": line.number,
                }
                for line in lines
            ],
            "streams": dict(manifest.batches),
        }


def make_sheets(work: AnyWork, store: Store) -> list[Sheet]:
    """The facts of a store, a sheet for each predicate."""
    reasoner = work.reasoner

    def sheet(predicate: Predicate, rows: int) -> Sheet:
        names = reasoner.column_names(predicate)
        decode = lambda: reasoner.decode(predicate, reasoner.facts(predicate)).sheet(predicate).decode()  # noqa: E731
        return Sheet(predicate, rows, decode, names)

    return [sheet(line.predicate, line.rows) for line in visible_lines(store)]


def export_to_catalog(
    folder: Place, database: str, settings: Settings, overwrite: bool = False, version: int | None = None
) -> dict[str, Any]:
    """The facts of a store as tables of Spark's catalog, one for each predicate."""
    if settings.engine == "columnar":
        raise UsageError("tables are written by Spark; leave out --engine columnar")
    settings = replace(settings, engine="spark-only")
    spark = settings.session()
    if not spark.catalog.databaseExists(database):
        raise UsageError(f"Spark's catalog has no schema {database}; CREATE SCHEMA makes one")
    with open_for_reading(folder, version) as store:
        reasoner = begin_living(store, settings).work.reasoner
        lines = visible_lines(store)
        stems = file_names([line.predicate for line in lines])
        names = {line.predicate: f"{database}.{table_name(stems[line.predicate])}" for line in lines}
        there = [name for name in names.values() if spark.catalog.tableExists(name)]
        if there and not overwrite:
            raise UsageError(f"{there[0]} is there already; say --overwrite, or name another schema")
        for line in lines:
            settings.say(f"writing {names[line.predicate]}")
            shown = reasoner.engine.show(
                reasoner.facts(line.predicate), reasoner.column_names(line.predicate)
            )
            shown.write.mode("overwrite" if overwrite else "errorifexists").saveAsTable(names[line.predicate])
    total = sum(line.rows for line in lines)
    return {
        "facts": total,
        "tables": {str(p): name for p, name in names.items()},
        "lines": [
            f"{total:,} facts in {len(names):,} tables of {database}",
            *(f"  {p}: {name}" for p, name in names.items()),
        ],
    }


def table_name(stem: str) -> str:
    """What catalogs take for a name."""
    return re.sub(r"\W+", "_", stem, flags=re.ASCII).lower()


def export_store(
    folder: Place,
    format_: str,
    out: Path | None,
    settings: Settings,
    overwrite: bool = False,
    version: int | None = None,
) -> dict[str, Any]:
    started = time.perf_counter()
    with open_for_reading(folder, version) as store:
        sheets = make_sheets(begin_living(store, settings).work, store)
        written, left = export(sheets, format_, out, settings.say, overwrite)
    seconds = time.perf_counter() - started
    lines = [f"{written:,} facts written to {out or 'standard output'} in {seconds:.1f} s"]
    lines += [f"warning: left out: {line}" for line in left]
    if format_ not in RDF_FORMATS:
        lines += name_lines([s.predicate for s in sheets], format_)
    if format_ not in RDF_FORMATS and (format_ != "parquet" or not all(sheet.is_exact for sheet in sheets)):
        keeps = (
            "--format nq keeps them"
            if any(is_triple(s.predicate) for s in sheets)
            else "--format parquet keeps most"
        )
        lines.append(f"IRIs, languages and datatypes are written as plain text; {keeps}")
    return {"facts": written, "left": left, "lines": lines}
