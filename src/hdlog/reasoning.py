"""A program and facts in an engine, materialised: what the Python interface, the commands and the benchmarks work with.

Facts are those of the engine here, encoded already; `hdlog.api` takes them in any form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

from hdlog import interrupts
from hdlog.engines.decode import FactTable
from hdlog.engines.protocol import Engine, F, R, RunAgain, T, Updates
from hdlog.errors import ProgramError, UsageError, did_you_mean
from hdlog.maintenance.driver import Driver
from hdlog.maintenance.materialisation import TableSource, View
from hdlog.maintenance.moments import NetChange, net_change
from hdlog.maintenance.readers import find_texts
from hdlog.maintenance.trace import Trace
from hdlog.plan.written import WrittenPlans
from hdlog.program.checks import check
from hdlog.program.model import Predicate, Program, Rule, is_ground
from hdlog.program.normalise import IN_DEFAULT_GRAPH, IN_NAMED_GRAPHS, is_auxiliary, normalise
from hdlog.program.terms import RDF_TYPE, Constant, Iri, Term, Variable
from hdlog.reading.chunks import Chunk
from hdlog.reading.objects import Collector
from hdlog.text import parse
from hdlog.tuning import Tuning

Row = tuple[Constant, ...]
NetChanges = dict[Predicate, NetChange[F]]
"""What came and went, by predicate."""


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

    def count(self) -> tuple[int, int]:
        """How many facts came, and how many went."""
        return sum(map(len, self.added.values())), sum(map(len, self.removed.values()))

    def hold(self) -> None:
        """Keep it, whatever becomes of the engine that it came from."""
        for table in (*self.added.values(), *self.removed.values()):
            table.hold()

    def __str__(self) -> str:
        came, went = self.count()
        return f"{_count(came)} added, {_count(went)} removed"


def _count(facts: int) -> str:
    return "1 fact" if facts == 1 else f"{facts:,} facts"


class Transaction:
    """All of what is done within it or, after any error, nothing. Interrupts are held while it is open."""

    def __init__(self, updates: Updates[Any, Any]) -> None:
        self._updates = updates
        self.is_run_again = False
        """whether the engine asks for the same again"""

    def __enter__(self) -> None:
        self._updates.begin()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        if kind is None:
            try:
                self._updates.commit()
                return False
            except RunAgain:
                kind = RunAgain
            except BaseException:
                self._updates.roll_back()
                raise
        self._updates.roll_back()
        self.is_run_again = issubclass(kind, RunAgain)
        return self.is_run_again


class Reasoning(Generic[R, F, T]):
    """Keeps the materialisation. Each change is all or nothing: after an error or an interrupt everything is as it was."""

    def __init__(
        self, engine: Engine[R, F, T], trace: Trace | None = None, tuning: Tuning | None = None
    ) -> None:
        self.engine = engine
        self.trace = trace or Trace()
        self.driver = Driver(engine, self.trace, tuning or Tuning())
        self.program = Program()
        self._stored: dict[Predicate, None] = {}
        """predicates that facts were given for or derived for, whether or not a rule names them; not those that were restored"""
        self.before_commit: Callable[[Sequence[Update]], None] | None = None
        """called when a change, or several of a transaction, are complete, with what was told of them; what it raises takes them back"""
        self._within: list[Update] | None = None
        """what changed so far within a transaction of several changes"""
        self._has_failed = False
        """whether one of them did"""

    # Changing.

    def add_program(self, program: Program) -> None:
        """Add a program, with the facts in it."""
        check_program(program)
        self.change_rules(self.program + program, self._encode(program, facts_of(program.rules)), {})

    def change_rules(
        self, program: Program, asserted: Mapping[Predicate, F], retracted: Mapping[Predicate, F]
    ) -> Update:
        """Take another program for the one there is, and assert and retract facts; the net change."""
        guard = interrupts.Guard()
        with guard:
            for transaction in self._attempts():
                with transaction:
                    change = self._tell(self._take_program(program, asserted, retracted))
                    self._complete(change)
            return change

    def extend_program(self, program: Program) -> None:
        """Likewise, with a program that has all rules of the one there is, and without telling what that changed."""
        more = set(facts_of(program.rules)) - set(facts_of(self.program.rules))
        asserted = self._encode(program, more)
        guard = interrupts.Guard()
        with guard:
            for transaction in self._attempts():
                with transaction:
                    self._take_program(program, asserted, {})
                    if self.before_commit is not None:
                        self.before_commit([])

    def change_program(self, program: Program) -> Update:
        """Take another program for the one there is, with the facts that are written in either; the net change."""
        check_program(program)
        old, new = facts_of(self.program.rules), facts_of(program.rules)
        come, go = set(new) - set(old), set(old) - set(new)
        return self.change_rules(program, self._encode(program, come), self._encode(program, go))

    def _take_program(
        self, program: Program, asserted: Mapping[Predicate, F], retracted: Mapping[Predicate, F]
    ) -> list[NetChanges[F]]:
        """The net changes, one after another, within a transaction."""
        self.engine.note(partial(setattr, self, "program", self.program))
        self.program = program
        ruled = self.driver.change_rules(self._normalise())
        return [*self._follow([ruled]), *self._update(asserted, retracted)]

    def _encode(self, program: Program, facts: Iterable[tuple[Predicate, Row]]) -> dict[Predicate, F]:
        collector = Collector(program, _no_files)
        collector.take(list(facts))
        return self.engine.encode_chunks(collector.chunks())

    def update(self, add: Mapping[Predicate, F], delete: Mapping[Predicate, F]) -> Update:
        """Assert and retract facts; the net change."""
        guard = interrupts.Guard()
        with guard:
            for transaction in self._attempts():
                with transaction:
                    change = self._tell(self._update(add, delete))
                    self._complete(change)
            self.driver.kept.tidy()
            return change

    def update_silently(self, add: Mapping[Predicate, F], delete: Mapping[Predicate, F]) -> None:
        """Assert and retract facts, without telling what that changed."""
        guard = interrupts.Guard()
        with guard:
            for transaction in self._attempts():
                with transaction:
                    self._update(add, delete)
                    if self.before_commit is not None:
                        self.before_commit([])

    def materialise(self, facts: Mapping[Predicate, F]) -> None:
        """Assert the first facts."""
        self.update_silently(facts, {})

    def update_in_turn(
        self, updates: Iterable[tuple[Mapping[Predicate, F], Mapping[Predicate, F]]]
    ) -> Update:
        """Several updates, one after the other but all or none; the net change of all of them."""
        several = list(updates)
        return self.update_stepwise([partial(several.__getitem__, at) for at in range(len(several))])

    def update_stepwise(
        self, steps: Sequence[Callable[[], tuple[Mapping[Predicate, F], Mapping[Predicate, F]]]]
    ) -> Update:
        """Likewise, where what an update changes is known when those before it have been made."""
        guard = interrupts.Guard()
        with guard:
            for transaction in self._attempts():
                with transaction:
                    changes: list[NetChanges[F]] = []
                    for step in steps:
                        add, delete = step()
                        changes += self._update(add, delete)
                    change = self._tell(changes)
                    self._complete(change)
            return change

    def try_update(self, add: Mapping[Predicate, F], delete: Mapping[Predicate, F]) -> Update:
        """What an update would change; nothing is changed."""
        guard = interrupts.Guard()
        with guard:
            if self._within is not None:
                raise UsageError("what an update would do is not asked within a transaction")
            self.engine.hints.take_care()
            self.engine.begin()
            try:
                change = self._tell(self._update(add, delete))
                change.hold()
            finally:
                self.engine.roll_back()
            return change

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Several changes as one: all of them or, after any error, none."""
        if self._within is not None:
            raise UsageError("a transaction has no others within it")
        guard = interrupts.Guard()
        with guard:
            self.engine.hints.take_care()
            self.engine.begin()
            self._within, self._has_failed = [], False
            try:
                yield
                if self._has_failed:
                    raise UsageError("a change within the transaction has failed, so nothing of it was kept")
                if self.before_commit is not None and self._within:
                    self.before_commit(self._within)
                self.engine.commit()
            except BaseException:
                self.engine.roll_back()
                raise
            finally:
                self._within = None

    @property
    def is_in_transaction(self) -> bool:
        return self._within is not None

    def _complete(self, change: Update) -> None:
        """A change has been told, and is about to stay."""
        if self._within is not None:
            self._within.append(change)
        elif self.before_commit is not None:
            self.before_commit([change])

    def _attempts(self) -> Iterator[AbstractContextManager[object]]:
        """One transaction, and another if the engine has taken too much for granted in it."""
        if self._within is not None:
            yield self._noting_failure()
            return
        while True:
            transaction = Transaction(self.engine)
            yield transaction
            if not transaction.is_run_again:
                return

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        """A change within a transaction leaves things half done if it fails."""
        try:
            yield
        except BaseException:
            self._has_failed = True
            raise

    def restore(self, program: Program, source: TableSource[F, T], plans: WrittenPlans | None = None) -> None:
        """Take a program over tables that are kept elsewhere, with its materialisation in them: nothing is evaluated.

        `plans` say how its rules were evaluated; what the nodes of these keep is there, too.
        """
        assert not self.driver.kept.tables, "only what is new is restored"
        self.driver.kept.source = source
        self.program = program
        self.driver.adopt(self._normalise(), plans)

    def _normalise(self) -> Program:
        """The core of the program; where rules have variables in place of predicates they see all that there are."""
        source = self.driver.kept.source
        if source is None or not self.program.has_triples:
            return normalise(self.program, self._stored)
        restored = dict.fromkeys(p for p in source.sizes() if not is_auxiliary(p.name))
        return normalise(self.program, {**restored, **self._stored})

    def _update(self, add: Mapping[Predicate, F], delete: Mapping[Predicate, F]) -> list[NetChanges[F]]:
        """The net changes, one after another."""
        known = self._follow([self._make_known(add)])
        return [*known, *self._follow([self.driver.update(add, delete)])]

    # Predicates that come with facts, where rules have variables in place of predicates.

    def _follow(self, changes: list[NetChanges[F]]) -> list[NetChanges[F]]:
        """A change, and those that follow where heads with a variable predicate have derived predicates."""
        while more := self._make_known(self._find_derived(changes[-1])):
            changes.append(more)
        return changes

    def _make_known(self, predicates: Iterable[Predicate]) -> NetChanges[F]:
        """Let the views of triples see predicates that facts bring along."""
        source = self.driver.kept.source
        new = [
            p for p in predicates if p not in self._stored and not (source is not None and source.holds(p))
        ]
        for predicate in new:
            self.engine.note(partial(self._stored.pop, predicate, None))
            self._stored[predicate] = None
        if new and self.program.has_triples:
            return self.driver.change_rules(self._normalise())
        return {}

    def _find_derived(self, net: Mapping[Predicate, NetChange[F]]) -> list[Predicate]:
        """Predicates that heads with a variable in their place have derived facts for."""
        derived: list[Predicate] = []
        subject, property_, value = (Variable(n) for n in "spo")
        for views in (IN_DEFAULT_GRAPH, IN_NAMED_GRAPHS):
            rest = views.graph
            triples, types = (
                views.predicate(views.derived_triples, 3),
                views.predicate(views.derived_types, 2),
            )
            classes: list[str] = []
            if triples in net:
                added = net[triples].added
                properties = self._find_names(added, (subject, property_, value, *rest), property_)
                classes += self._find_names(added, (subject, Iri(RDF_TYPE), value, *rest), value)
                derived += [views.predicate(n + views.suffix, 2) for n in properties if n != RDF_TYPE]
            if types in net:
                classes += self._find_names(net[types].added, (subject, value, *rest), value)
            derived += [views.predicate(name + views.suffix, 1) for name in classes]
        return derived

    def _find_names(self, facts: F, terms: tuple[Term, ...], wanted: Variable) -> list[str]:
        """The IRIs that a variable stands for."""
        texts = find_texts(self.engine, facts, terms, wanted)
        return sorted(text[1:-1] for text in texts if text[0] == "<")

    # Telling.

    def _tell(self, changes: list[NetChanges[F]]) -> Update:
        """Changes one after another as one net change, in the words of the user."""
        total: NetChanges[F] = {}
        for predicate, change in (item for net in changes for item in net.items()):
            total[predicate] = self._join(total[predicate], change) if predicate in total else change
        shown = [(p, c) for p, c in total.items() if not is_auxiliary(p.name)]
        added = {p: self.decode(p, c.added) for p, c in shown if self.engine.count(c.added)}
        removed = {p: self.decode(p, c.removed) for p, c in shown if self.engine.count(c.removed)}
        return Update(ByPredicate(added), ByPredicate(removed))

    def _join(self, before: NetChange[F], after: NetChange[F]) -> NetChange[F]:
        """Two changes, one after the other, as one."""
        minus, union = self.engine.minus, self.engine.union
        return net_change(
            self.engine,
            union(minus(before.added, after.removed), minus(after.added, before.removed)),
            union(minus(before.removed, after.added), minus(after.removed, before.added)),
        )

    def decode(self, predicate: Predicate, facts: F) -> FactTable:
        return self.engine.decode(facts).with_names(self.column_names(predicate))

    def column_names(self, predicate: Predicate) -> tuple[str, ...]:
        """The declared names of the arguments."""
        declared = self.program.declared.get(predicate.name)
        return tuple(a.name for a in declared.attributes) if declared is not None else ()

    # Reading.

    def facts(self, predicate: Predicate) -> F:
        table = self.driver.kept.find(predicate)
        return self.engine.no_facts(predicate.arity) if table is None else self.engine.facts(table)

    def counts(self) -> dict[Predicate, int]:
        """How many facts each predicate has."""
        return {p: n for p, n in self.driver.kept.sizes().items() if n and not is_auxiliary(p.name)}

    def __len__(self) -> int:
        return sum(self.counts().values())

    def predicates(self) -> list[Predicate]:
        """Those of rules and of facts."""
        known = dict.fromkeys((*self.program.predicates, *self.driver.kept.sizes()))
        return [p for p in known if not is_auxiliary(p.name)]

    def find(self, name: str, arity: int | None = None) -> Predicate:
        """The predicate with a name; `arity` says which, where there are several."""
        if not isinstance(name, str):
            raise UsageError(f"a predicate is asked for by its name, not by {type(name).__name__}")
        if arity is not None and (not isinstance(arity, int) or isinstance(arity, bool)):
            raise UsageError(f"a number of arguments is a whole number, not {arity!r}")
        known = self.predicates()
        named = [p for p in known if p.name == name]
        fitting = [p for p in named if arity in (None, p.arity)]
        if len(fitting) == 1:
            return fitting[0]
        arities = ", ".join(str(p.arity) for p in named)
        if fitting:
            raise UsageError(f"{name} has several arities: {arities}; name one")
        if named:
            raise UsageError(f"{name} has {arities} arguments, not {arity}")
        hint = did_you_mean(name, [p.name for p in known])
        raise UsageError(f"unknown predicate {name}; {hint or 'no rule and no fact has it'}")

    def stored_tables(self) -> dict[Predicate, T]:
        """The tables of predicates that somebody has asked for, those that rules were rewritten with among them, and those of nodes."""
        return dict(self.driver.kept.tables)

    def stored_views(self) -> dict[Predicate, View[F, T]]:
        """What nodes of view trees keep."""
        return dict(self.driver.kept.views)

    def supports(self) -> dict[Predicate, list[tuple[Row, bool, int]]]:
        """Every fact with whether it is asserted and how many derivations it has; for tests."""
        kept = self.driver.kept
        for predicate in kept.sizes():
            kept.find(predicate)
        return {p: self.engine.supports(table) for p, table in kept.tables.items()}

    def nodes(self) -> dict[Predicate, tuple[Rule, dict[Row, int]]]:
        """What the nodes of decompositions keep: definition, and rows with how many matches each has; for tests."""
        kept: dict[Predicate, tuple[Rule, dict[Row, int]]] = {}
        for predicate, node in self.driver.planning.nodes.items():
            if node.counted:
                runs = self.driver.kept.views[predicate].runs
                rows = self.engine.weights(self.engine.plus(runs, predicate.arity))
            else:
                stored = self.engine.supports(self.driver.kept.table(predicate))
                rows = {row: support for row, _, support in stored if support}
            kept[predicate] = (node.plan.definition, rows)
        return kept


def start_reasoning(
    engine: Engine[R, F, T],
    program: Program | str,
    tuning: Tuning | None = None,
    trace: Trace | None = None,
) -> Reasoning[R, F, T]:
    """With the rules and facts of a program, in the RDFox dialect if it is a text."""
    reasoning = Reasoning(engine, trace, tuning)
    reasoning.add_program(parse(program) if isinstance(program, str) else program)
    return reasoning


def check_program(program: Program) -> None:
    """Refuse a program that has mistakes."""
    problems = [p for p in check(program) if p.severity == "error"]
    if problems:
        raise ProgramError(problems)


def facts_of(rules: Iterable[Rule]) -> list[tuple[Predicate, Row]]:
    """The facts that are written in a program."""
    heads = (h for r in rules if r.is_fact for h in r.heads)
    return [(h.predicate, h.terms) for h in heads if is_ground(h)]  # type: ignore[misc]


def _no_files(paths: Sequence[object], name: str) -> list[Chunk]:
    raise AssertionError("facts of a program are no files")
