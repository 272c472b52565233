"""The Python interface: a reasoner that keeps the materialisation of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any, Literal, TypeVar

from hdlog import interrupts
from hdlog.engines.columnar.budget import Budget, parse_size
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.decode import FactTable
from hdlog.engines.protocol import Engine, RunAgain
from hdlog.errors import ProgramError, UsageError, did_you_mean
from hdlog.maintenance.driver import Driver
from hdlog.maintenance.moments import NetChange, net_change
from hdlog.maintenance.trace import Event, Limits, Trace
from hdlog.program.checks import check
from hdlog.program.model import Predicate, Program, Rule, is_ground
from hdlog.program.normalise import DERIVED_TRIPLES, DERIVED_TYPES, is_auxiliary, normalise
from hdlog.program.renaming import without_names
from hdlog.program.terms import RDF_TYPE, Constant, Iri, Term, Variable
from hdlog.program.types import attribute_layout
from hdlog.reading.chunks import Chunk
from hdlog.reading.files import find_splits, read_split
from hdlog.reading.objects import Collector, FactInput
from hdlog.report.explain import describe
from hdlog.text import ENDINGS, Dialect, parse, read
from hdlog.tuning import Method, Tuning

AnyEngine = Engine[Any, Any, Any]
"""Which engine it is, only whoever made it knows."""
FactSet = Any
Table = Any
Row = tuple[Constant, ...]
Fact = tuple[Predicate, Row]
T = TypeVar("T")
_PATIENCE = 0.05
"""Seconds between looks at whether somebody who waits for another thread has been interrupted."""


class ByPredicate(dict[Predicate, FactTable]):
    """Facts by predicate, which may also be asked for by its name: `change.added["path"]`."""

    def __missing__(self, key: object) -> FactTable:
        named = [p for p in self if p.name == key]
        if len(named) == 1:
            return self[named[0]]
        raise KeyError(key)

    def get(self, key: Any, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or any(p.name == key for p in self)


@dataclass(frozen=True)
class Update:
    """The exact net change of an update: facts that came and facts that went, asserted and derived."""

    added: ByPredicate
    removed: ByPredicate

    def __str__(self) -> str:
        came, went = (sum(len(t) for t in side.values()) for side in (self.added, self.removed))
        return f"{came:,} facts added, {went:,} facts removed"


class Reasoner:
    """A program and facts, materialised, and kept so while both change.

    An update is all or nothing: after an error or an interrupt everything is as it was before. Threads may share a
    reasoner: changes come one after the other, and whoever reads waits for the one that is under way.
    """

    def __init__(
        self,
        program: Program | str | Path | None = None,
        *,
        dialect: Dialect | None = None,
        memory: int | str | None = None,
        max_rounds: int | None = None,
        max_facts: int | None = None,
        threads: int | None = None,
        progress: Callable[[Event], None] | None = None,
        method: Method = "combined",
        tuning: Tuning | None = None,
        engine: AnyEngine | Literal["columnar", "spark"] | None = None,
    ) -> None:
        """`engine` is the embedded one unless given; `memory`, in bytes or as in "8GB", and `threads` are for that."""
        tuning = tuning or Tuning(method)
        self.engine: AnyEngine = _engine(engine, memory, threads, tuning)
        self.trace = Trace(Limits(_limit("max_rounds", max_rounds), _limit("max_facts", max_facts)), progress)
        self._driver = Driver(self.engine, self.trace, tuning)
        self._program = Program()
        self._stored: dict[Predicate, None] = {}
        self._lock = RLock()
        self._changing = False
        self.add_rules(Program() if program is None else program, dialect)

    @property
    def program(self) -> Program:
        return self._program

    # Rules.

    @interrupts.held_within
    def add_rules(self, program: Program | str | Path, dialect: Dialect | None = None) -> Update:
        """Add rules, and the facts among them, to the living materialisation."""
        more = _program(program, dialect)
        with self._alone():
            present = set(self._program.rules)
            new = tuple(dict.fromkeys(r for r in more.rules if r not in present))
            # A fact that the program has already may have been deleted since.
            return self._change_rules(self._program + _with_rules(more, new), _facts_of(more.rules), [])

    @interrupts.held_within
    def remove_rules(self, program: Program | str | Path, dialect: Dialect | None = None) -> Update:
        """Remove rules, and the facts among them; all of them must be there."""
        given = {without_names(r): r for r in _program(program, dialect).rules}
        with self._alone():
            present = [(without_names(r), r) for r in self._program.rules]
            known = dict(present)
            missing = [r for same, r in given.items() if same not in known]
            if missing:
                names = ", ".join(sorted({h.name for r in missing for h in r.heads}))
                raise UsageError(f"cannot remove rules that are not in the program: {names}")
            kept = tuple(r for same, r in present if same not in given)
            stated = set(_facts_of(kept))
            retracted = [fact for fact in _facts_of(given.values()) if fact not in stated]
            return self._change_rules(_with_rules(self._program, kept), [], retracted)

    def _checked(self, program: Program) -> Program:
        problems = [p for p in check(program) if p.severity == "error"]
        if problems:
            raise ProgramError(problems)
        return program

    def _change_rules(self, program: Program, asserted: list[Fact], retracted: list[Fact]) -> Update:
        self._checked(program)

        def run() -> list[dict[Predicate, NetChange[FactSet]]]:
            self._program = program
            ruled = self._driver.change_rules(normalise(program, self._stored))
            come, go = (self._encoded(facts) for facts in (asserted, retracted))
            return [*self._followed([ruled]), *self._update(come, go)]

        return self._whole(lambda: self._told(run()))

    # Facts.

    @interrupts.held_within
    def update(self, add: FactInput = (), delete: FactInput = ()) -> Update:
        """Assert and retract facts; what that changed, exactly.

        Adding a fact twice, or one that is derived, asserts it. Deleting takes the assertion back: the fact goes
        unless rules still derive it. Deleting a fact that is not asserted changes nothing. A fact both added and
        deleted is added.
        """
        with self._alone():
            come, go = (self._encoded(given) for given in (add, delete))
            change = self._whole(lambda: self._told(self._update(come, go)))
            self._driver.kept.tidy()
            return change

    def _encoded(self, given: FactInput) -> dict[Predicate, FactSet]:
        """Facts in any form, as facts of the engine."""
        collector = Collector(self._program, self._read_files)
        own = {}
        if isinstance(given, Mapping):
            own = {name: table for name, table in given.items() if self.engine.owns(table)}
            given = {name: table for name, table in given.items() if name not in own}
        collector.take(given)
        found = self.engine.encode_chunks(collector.chunks())
        for name, table in own.items():
            predicate = name if isinstance(name, Predicate) else Predicate(name, len(table.columns))
            arranged, types = collector.arranged(predicate, table.columns)
            facts = self.engine.encode_table(table.select(arranged), types)
            known = found.get(predicate)
            found[predicate] = facts if known is None else self.engine.union(known, facts)
        return found

    def _read_files(self, paths: Sequence[str | Path], name: str) -> list[Chunk]:
        with interrupts.let_through():
            splits = find_splits(paths, name=name)
            return [read_split(split, attribute_layout(self._program)) for split in splits]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One change at a time."""
        while not self._lock.acquire(timeout=_PATIENCE):
            interrupts.check()
        try:
            if self._changing:
                raise UsageError(
                    "the reasoner is being changed; what listens to an update cannot change it as well"
                )
            self._changing = True
            try:
                yield
            finally:
                self._changing = False
        finally:
            self._lock.release()

    def _whole(self, run: Callable[[], T]) -> T:
        """All or nothing, the program and what is known of predicates included."""
        program, stored = self._program, dict(self._stored)

        def restore() -> None:
            self._program, self._stored = program, stored

        def noted() -> T:
            self.engine.note(restore)
            return run()

        try:
            return self._driver.whole(noted)
        except RunAgain:
            return self._whole(run)

    def _update(
        self, come: Mapping[Predicate, FactSet], go: Mapping[Predicate, FactSet]
    ) -> list[dict[Predicate, NetChange[FactSet]]]:
        """The net changes, one after another."""
        known = self._followed([self._make_known(come)])
        return [*known, *self._followed([self._driver.update(come, go)])]

    def _followed(
        self, changes: list[dict[Predicate, NetChange[FactSet]]]
    ) -> list[dict[Predicate, NetChange[FactSet]]]:
        """A change, and those that follow where heads with a variable predicate have derived predicates."""
        while more := self._make_known(self._predicates_derived(changes[-1])):
            changes.append(more)
        return changes

    def _predicates_derived(self, net: Mapping[Predicate, NetChange[FactSet]]) -> list[Predicate]:
        """Predicates that heads with a variable in their place have derived facts for."""
        found: list[Predicate] = []
        triples, types = Predicate(DERIVED_TRIPLES, 3), Predicate(DERIVED_TYPES, 2)
        subject, property_, value = (Variable(n) for n in "spo")
        if triples in net:
            added = net[triples].added
            properties = self._names(added, (subject, property_, value), property_)
            found += [Predicate(name, 2) for name in properties if name != RDF_TYPE]
            found += [
                Predicate(name, 1) for name in self._names(added, (subject, Iri(RDF_TYPE), value), value)
            ]
        if types in net:
            found += [Predicate(n, 1) for n in self._names(net[types].added, (subject, value), value)]
        return found

    def _names(self, facts: FactSet, terms: tuple[Term, ...], wanted: Variable) -> list[str]:
        """The IRIs that a variable stands for."""
        engine = self.engine
        values = engine.keep(engine.distinct(engine.project(engine.scan(facts, terms), (wanted,))))
        (texts,) = engine.decode(values).texts()
        return sorted(text[1:-1] for text in texts if text[0] == "<")

    def _make_known(self, predicates: Iterable[Predicate]) -> dict[Predicate, NetChange[FactSet]]:
        """Let the views of triples see predicates that facts bring along."""
        new = [p for p in predicates if p not in self._stored]
        self._stored |= dict.fromkeys(new)
        if new and self._program.has_triples:
            return self._driver.change_rules(normalise(self._program, self._stored))
        return {}

    def _told(self, changes: list[dict[Predicate, NetChange[FactSet]]]) -> Update:
        """Changes one after another as one net change, in the words of the user."""
        total: dict[Predicate, NetChange[FactSet]] = {}
        for net in (n for change in changes for n in change.items()):
            predicate, change = net
            if predicate in total:
                before = total[predicate]
                minus, union = self.engine.minus, self.engine.union
                change = net_change(
                    self.engine,
                    union(minus(before.added, change.removed), minus(change.added, before.removed)),
                    union(minus(before.removed, change.added), minus(change.removed, before.added)),
                )
            total[predicate] = change
        shown = [(p, c) for p, c in total.items() if not is_auxiliary(p.name)]
        added = {p: self._decoded(p, c.added) for p, c in shown if self.engine.count(c.added)}
        removed = {p: self._decoded(p, c.removed) for p, c in shown if self.engine.count(c.removed)}
        return Update(ByPredicate(added), ByPredicate(removed))

    def _decoded(self, predicate: Predicate, facts: FactSet) -> FactTable:
        return self.engine.decode(facts).named(self._names_of(predicate))

    def materialise_encoded(self, facts: Mapping[Predicate, FactSet]) -> None:
        """Assert facts that the engine has encoded already, without telling what changed."""
        self.update_encoded(facts, {})

    @interrupts.held_within
    def update_encoded(self, add: Mapping[Predicate, FactSet], delete: Mapping[Predicate, FactSet]) -> None:
        with self._alone():
            self._whole(lambda: self._update(add, delete))

    @interrupts.held_within
    def update_in_turn(
        self, updates: Iterable[tuple[Mapping[Predicate, FactSet], Mapping[Predicate, FactSet]]]
    ) -> Update:
        """Several updates of encoded facts, one after the other but all or none; the net change of all of them."""
        given = list(updates)

        def run() -> list[dict[Predicate, NetChange[FactSet]]]:
            return [change for add, delete in given for change in self._update(add, delete)]

        with self._alone():
            return self._whole(lambda: self._told(run()))

    def restore(self, program: Program, predicates: Iterable[Predicate]) -> dict[Predicate, Table]:
        """Take a program over tables that the caller fills with its materialisation, and nothing is evaluated."""
        assert not self._stored, "only a new reasoner is restored"
        tables = {p: self._driver.kept.table(p) for p in predicates}
        self._stored = {p: None for p in tables if not is_auxiliary(p.name)}
        self._program = program
        self._driver.adopt(normalise(program, self._stored))
        return tables

    def stored_tables(self) -> Mapping[Predicate, Table]:
        """The tables of all predicates, those that rules were rewritten with among them; not those of nodes."""
        nodes = self._driver.planning.nodes
        return {p: t for p, t in self._driver.kept.tables.items() if p not in nodes}

    # Reading.

    def facts(self, name: str | Predicate, arity: int | None = None) -> Any:
        """All facts of a predicate, asserted and derived: a `FactTable`, or on Spark a DataFrame."""
        with self._lock:
            predicate = name if isinstance(name, Predicate) else self.find(name, arity)
            tables = self._driver.kept.tables
            found = (
                self.engine.facts(tables[predicate])
                if predicate in tables
                else self.engine.no_facts(predicate.arity)
            )
            return self.engine.show(found, self._names_of(predicate))

    def _names_of(self, predicate: Predicate) -> tuple[str, ...]:
        """The declared names of the arguments."""
        declared = self._program.declared.get(predicate.name)
        return tuple(a.name for a in declared.attributes) if declared is not None else ()

    def counts(self) -> dict[Predicate, int]:
        """How many facts each predicate has."""
        with self._lock:
            sizes = {p: self.engine.size(t) for p, t in self._driver.kept.tables.items()}
        return {p: n for p, n in sizes.items() if n and not is_auxiliary(p.name)}

    def __len__(self) -> int:
        return sum(self.counts().values())

    def find(self, name: str, arity: int | None = None) -> Predicate:
        """The predicate with a name; `arity` says which, where there are several."""
        known = [
            p
            for p in dict.fromkeys((*self._program.predicates, *self._driver.kept.tables))
            if not is_auxiliary(p.name)
        ]
        named = [p for p in known if p.name == name]
        found = [p for p in named if arity in (None, p.arity)]
        if len(found) == 1:
            return found[0]
        arities = ", ".join(str(p.arity) for p in named)
        if found:
            raise UsageError(f"{name} has several arities: {arities}; name one")
        if named:
            raise UsageError(f"{name} has {arities} arguments, not {arity}")
        hint = did_you_mean(name, [p.name for p in known])
        raise UsageError(f"unknown predicate {name}; {hint or 'no rule and no fact has it'}")

    def tables(self) -> dict[Predicate, list[tuple[Row, bool, int]]]:
        """Every stored fact with whether it is asserted and how many derivations it has; for tests and reports."""
        with self._lock:
            return {p: self.engine.supports(table) for p, table in self._driver.kept.tables.items()}

    def nodes(self) -> dict[Predicate, tuple[Rule, dict[Row, int]]]:
        """What the nodes of decompositions keep: definition, and rows with how many matches each has; for tests."""
        found = {}
        for predicate, node in self._driver.planning.nodes.items():
            if node.counted:
                runs = self._driver.kept.views[predicate].runs
                rows = self.engine.weights(self.engine.plus(runs, predicate.arity))
            else:
                stored = self.engine.supports(self._driver.kept.tables[predicate])
                rows = {row: support for row, _, support in stored if support}
            found[predicate] = (node.plan.definition, rows)
        return found

    def explain(self) -> dict[str, Any]:
        """Components, rules, methods and trees, with what they keep and took, as plain data."""
        with self._lock:
            return {
                **describe(self._driver),
                "facts": {str(p): n for p, n in self.counts().items()},
                "bytes": self._driver.kept.bytes(),
            }


def _engine(
    given: AnyEngine | str | None, memory: int | str | None, threads: int | None, tuning: Tuning
) -> AnyEngine:
    if given is None or given == "columnar":
        budget = Budget() if memory is None else Budget(parse_size(memory))
        return ColumnarEngine(budget, _limit("threads", threads), tuning.numbers)
    if given == "spark":
        from hdlog.engines.spark.engine import SparkEngine

        return SparkEngine(numbers=tuning.numbers)
    if isinstance(given, str) or not hasattr(given, "begin"):
        raise UsageError(f"an engine is 'columnar', 'spark' or an engine of hdlog, not {given!r}")
    return given


def _limit(name: str, value: int | None) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise UsageError(f"{name} is a number from 1 on, not {value!r}")
    return value


def _program(program: Program | str | Path, dialect: Dialect | None) -> Program:
    if isinstance(program, Program):
        return program
    if isinstance(program, Path):
        return read(program, dialect)
    if not isinstance(program, str):
        raise UsageError(f"a program is a text, a Path or a Program, not {type(program).__name__}")
    if "\n" not in program and program.strip().endswith(tuple(ENDINGS)):
        raise UsageError(f"{program!r} looks like the name of a file; a file is given as Path({program!r})")
    return parse(program, dialect or "rdfox")


def _with_rules(program: Program, rules: tuple[Rule, ...]) -> Program:
    return Program(rules, program.declarations, program.types, program.directives, program.prefixes)


def _facts_of(rules: Iterable[Rule]) -> list[Fact]:
    heads = (h for r in rules if r.is_fact for h in r.heads)
    return [(h.predicate, h.terms) for h in heads if is_ground(h)]  # type: ignore[misc]
