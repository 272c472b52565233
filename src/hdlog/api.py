"""The Python interface: a reasoner that keeps the materialisation of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hdlog.engines.columnar.budget import Budget
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.decode import FactTable
from hdlog.engines.load import FactInput
from hdlog.engines.protocol import Engine, FactSet, RunAgain, Table
from hdlog.errors import ProgramError, UsageError, did_you_mean
from hdlog.maintenance.driver import Driver
from hdlog.maintenance.state import NetChange, net_change
from hdlog.maintenance.trace import Event, Limits, Trace
from hdlog.pipeline.reading import find_splits, read_split
from hdlog.plan.tuning import Method, Tuning
from hdlog.program.checks import check
from hdlog.program.model import Predicate, Program, Rule, is_ground
from hdlog.program.normalise import DERIVED_TRIPLES, DERIVED_TYPES, is_auxiliary, normalise
from hdlog.program.terms import RDF_TYPE, Constant, Iri, Term, Variable
from hdlog.program.types import attribute_types
from hdlog.report.explain import describe
from hdlog.text import Dialect, parse, read

Row = tuple[Constant, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class Update:
    """The exact net change of an update: facts that came and facts that went, asserted and derived."""

    added: Mapping[Predicate, FactTable]
    removed: Mapping[Predicate, FactTable]

    def __str__(self) -> str:
        came, went = (sum(len(t) for t in side.values()) for side in (self.added, self.removed))
        return f"{came:,} facts added, {went:,} facts removed"


class Reasoner:
    """A program and facts, materialised, and kept so while both change.

    An update is all or nothing: after an error or an interrupt everything is as it was before.
    """

    def __init__(
        self,
        program: Program | str | Path | None = None,
        *,
        dialect: Dialect | None = None,
        memory: int | None = None,
        max_rounds: int | None = None,
        max_facts: int | None = None,
        threads: int | None = None,
        progress: Callable[[Event], None] | None = None,
        method: Method = "combined",
        tuning: Tuning | None = None,
        engine: Engine | None = None,
    ) -> None:
        """`engine` is the embedded one unless given; `memory` and `threads` are for that."""
        self.engine: Engine = engine or ColumnarEngine(Budget(memory) if memory else Budget(), threads)
        self.trace = Trace(Limits(max_rounds, max_facts), progress)
        self._driver = Driver(self.engine, self.trace, tuning or Tuning(method))
        self._program = Program()
        self._stored: dict[Predicate, None] = {}
        self.add_rules(Program() if program is None else program, dialect)

    @property
    def program(self) -> Program:
        return self._program

    # Rules.

    def add_rules(self, program: Program | str | Path, dialect: Dialect | None = None) -> Update:
        """Add rules, and the facts among them, to the living materialisation."""
        more = _program(program, dialect)
        present = set(self._program.rules)
        new = tuple(dict.fromkeys(r for r in more.rules if r not in present))
        return self._change_rules(self._program + _with_rules(more, new), new, ())

    def remove_rules(self, program: Program | str | Path, dialect: Dialect | None = None) -> Update:
        """Remove rules, and the facts among them; all of them must be there."""
        gone = set(_program(program, dialect).rules)
        missing = gone - set(self._program.rules)
        if missing:
            names = ", ".join(sorted({h.name for r in missing for h in r.heads}))
            raise UsageError(f"cannot remove rules that are not in the program: {names}")
        kept = tuple(r for r in self._program.rules if r not in gone)
        return self._change_rules(_with_rules(self._program, kept), (), tuple(gone))

    def _change_rules(self, program: Program, new: tuple[Rule, ...], gone: tuple[Rule, ...]) -> Update:
        problems = [p for p in check(program) if p.severity == "error"]
        if problems:
            raise ProgramError(problems)

        def run() -> list[dict[Predicate, NetChange]]:
            ruled = self._driver.change_rules(normalise(program, self._stored))
            self._program = program
            come, go = (self.engine.read(_facts_of(rules), program) for rules in (new, gone))
            return [ruled, *self._update(come, go)]

        return self._told(self._whole(run))

    # Facts.

    def update(self, add: FactInput = (), delete: FactInput = ()) -> Update:
        """Assert and retract facts; what that changed, exactly.

        Adding a fact twice, or one that is derived, asserts it. Deleting takes the assertion back: the fact goes
        unless rules still derive it. Deleting a fact that is not asserted changes nothing. A fact both added and
        deleted is added.
        """
        come, go = (self.engine.read(self._opened(given), self._program) for given in (add, delete))
        return self._told(self._whole(lambda: self._update(come, go)))

    def _opened(self, given: FactInput) -> FactInput:
        """What is given, with files read."""
        if isinstance(given, str | Path):
            types = attribute_types(self._program)
            return [read_split(split, types) for split in find_splits([given])]
        if isinstance(given, list):
            return [self._opened(item) for item in given]
        return given

    def _whole(self, run: Callable[[], T]) -> T:
        """All or nothing, the program and what is known of predicates included."""
        program, stored = self._program, dict(self._stored)
        try:
            return self._driver.whole(run)
        except RunAgain:
            self._program, self._stored = program, stored
            return self._whole(run)
        except BaseException:
            self._program, self._stored = program, stored
            raise

    def _update(
        self, come: Mapping[Predicate, FactSet], go: Mapping[Predicate, FactSet]
    ) -> list[dict[Predicate, NetChange]]:
        """The net changes, one after another."""
        changes = [self._make_known(come), self._driver.update(come, go)]
        while True:
            more = self._make_known(self._predicates_derived(changes[-1]))
            if not more:
                return changes
            changes.append(more)

    def _predicates_derived(self, net: Mapping[Predicate, NetChange]) -> list[Predicate]:
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

    def _make_known(self, predicates: Iterable[Predicate]) -> dict[Predicate, NetChange]:
        """Let the views of triples see predicates that facts bring along."""
        new = [p for p in predicates if p not in self._stored]
        self._stored |= dict.fromkeys(new)
        rules = self._driver.modules
        if new and any(is_auxiliary(p.name) for r in rules for p in _predicates(r)):
            return self._driver.change_rules(normalise(self._program, self._stored))
        return {}

    def _told(self, changes: list[dict[Predicate, NetChange]]) -> Update:
        """Changes one after another as one net change, in the words of the user."""
        total: dict[Predicate, NetChange] = {}
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
        return Update(
            {p: self.engine.decode(c.added) for p, c in shown if self.engine.count(c.added)},
            {p: self.engine.decode(c.removed) for p, c in shown if self.engine.count(c.removed)},
        )

    def materialise_encoded(self, facts: Mapping[Predicate, FactSet]) -> None:
        """Assert facts that the engine has encoded already, without telling what changed."""
        self.update_encoded(facts, {})

    def update_encoded(self, add: Mapping[Predicate, FactSet], delete: Mapping[Predicate, FactSet]) -> None:
        self._whole(lambda: self._update(add, delete))

    def update_in_turn(
        self, updates: Iterable[tuple[Mapping[Predicate, FactSet], Mapping[Predicate, FactSet]]]
    ) -> Update:
        """Several updates of encoded facts, one after the other but all or none; the net change of all of them."""

        given = list(updates)

        def run() -> list[dict[Predicate, NetChange]]:
            return [change for add, delete in given for change in self._update(add, delete)]

        return self._told(self._whole(run))

    def restore(self, program: Program, predicates: Iterable[Predicate]) -> dict[Predicate, Table]:
        """Take a program over tables that the caller fills with its materialisation, and nothing is evaluated."""
        assert not self._stored, "only a new reasoner is restored"
        tables = {p: self._driver.state.table(p) for p in predicates}
        self._stored = {p: None for p in tables if not is_auxiliary(p.name)}
        self._program = program
        self._driver.change_rules(normalise(program, self._stored))
        return tables

    def stored_tables(self) -> Mapping[Predicate, Table]:
        """The tables of all predicates, those that rules were rewritten with among them; not those of nodes."""
        nodes = self._driver.decompositions.nodes
        return {p: t for p, t in self._driver.state.tables.items() if p not in nodes}

    # Reading.

    def facts(self, name: str | Predicate, arity: int | None = None) -> Any:
        """All facts of a predicate, asserted and derived: a `FactTable`, or on Spark a DataFrame."""
        predicate = name if isinstance(name, Predicate) else self._find(name, arity)
        if predicate not in self._driver.state.tables:
            return self.engine.show(self.engine.no_facts(predicate.arity))
        return self.engine.show(self.engine.facts(self._driver.state.tables[predicate]))

    def counts(self) -> dict[Predicate, int]:
        """How many facts each predicate has."""
        tables = self._driver.state.tables
        sizes = {p: self.engine.size(t) for p, t in tables.items()}
        return {p: n for p, n in sizes.items() if n and not is_auxiliary(p.name)}

    def __len__(self) -> int:
        return sum(self.counts().values())

    def _find(self, name: str, arity: int | None) -> Predicate:
        known = [
            p
            for p in dict.fromkeys((*self._program.predicates, *self._driver.state.tables))
            if not is_auxiliary(p.name)
        ]
        found = [p for p in known if p.name == name and arity in (None, p.arity)]
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(
                f"{name} has several arities: {', '.join(str(p.arity) for p in found)}; name one"
            )
        hint = did_you_mean(name, [p.name for p in known])
        raise UsageError(f"unknown predicate {name}; {hint or 'no rule and no fact has it'}")

    def tables(self) -> dict[Predicate, list[tuple[Row, bool, int]]]:
        """Every stored fact with whether it is asserted and how many derivations it has; for tests and reports."""
        return {p: self.engine.supports(table) for p, table in self._driver.state.tables.items()}

    def nodes(self) -> dict[Predicate, tuple[Rule, dict[Row, int]]]:
        """What the nodes of decompositions keep: definition, and rows with how many matches each has; for tests."""
        found = {}
        for predicate, node in self._driver.decompositions.nodes.items():
            if node.counted:
                runs = self._driver.state.views[predicate].runs
                rows = self.engine.weights(self.engine.plus(runs, predicate.arity))
            else:
                stored = self.engine.supports(self._driver.state.tables[predicate])
                rows = {row: support for row, _, support in stored if support}
            found[predicate] = (node.part.definition, rows)
        return found

    def explain(self) -> dict[str, Any]:
        """Components, rules, methods and trees, with what they keep and took, as plain data."""
        return {
            **describe(self._driver),
            "facts": {str(p): n for p, n in self.counts().items()},
            "bytes": sum(map(self.engine.bytes, self._driver.state.tables.values()))
            + sum(self.engine.bytes(run) for view in self._driver.state.views.values() for run in view.runs),
        }


def _program(program: Program | str | Path, dialect: Dialect | None) -> Program:
    if isinstance(program, Program):
        return program
    if isinstance(program, Path):
        return read(program, dialect)
    return parse(program, dialect or "rdfox")


def _with_rules(program: Program, rules: tuple[Rule, ...]) -> Program:
    return Program(rules, program.declarations, program.types, program.directives, program.prefixes)


def _facts_of(rules: Iterable[Rule]) -> list[tuple[Predicate, Row]]:
    heads = (h for r in rules if r.is_fact for h in r.heads)
    return [(h.predicate, h.terms) for h in heads if is_ground(h)]  # type: ignore[misc]


def _predicates(rule: Rule) -> list[Predicate]:
    return [h.predicate for h in rule.heads]
