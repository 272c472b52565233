"""A recursive component: the Delete/Rederive algorithm of the paper, with derivation counts.

A fact keeps two supports: derivations by rules with and without a body atom of the component. In overdeletion a fact with
an assertion or non-recursive support left is not overdeleted; after it, an overdeleted fact with recursive support left is
rederived. That is the counting oracle of the paper: a support is exact at the end of each phase.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Generic

from hdlog.engines.protocol import F, R, T, Version
from hdlog.maintenance.changes import Module
from hdlog.maintenance.components import Component, nodes_of
from hdlog.maintenance.counting import difference
from hdlog.maintenance.evaluation import Evaluation
from hdlog.maintenance.hypertree import add_r, del_r, red_r
from hdlog.maintenance.meters import TooManyRows
from hdlog.maintenance.moments import Moments, NetChange
from hdlog.maintenance.nodes import Node
from hdlog.maintenance.readers import Reader, Readers
from hdlog.maintenance.revision import Revision
from hdlog.maintenance.rounds import Addition, FactSets, Overdeletion, Rederivation, Round
from hdlog.maintenance.trace import Trace
from hdlog.plan.bodies import Read
from hdlog.program.model import Predicate


class Run(Generic[R, F, T]):
    """One run over one component. Names follow the paper: D, A, Delta."""

    def __init__(
        self,
        component: Component[R, F, T],
        moments: Moments[R, F, T],
        evaluation: Evaluation[R, F, T],
        trace: Trace,
        revision: Revision[R, F, T],
    ) -> None:
        self.component, self.moments, self.evaluation, self.trace = component, moments, evaluation, trace
        self.revision = revision
        self.engine = moments.engine
        self.kept = moments.kept
        self.members = component.members
        sets = [n.predicate for n in component.nodes if not n.counted]
        self.predicates = (*component.predicates, *sets)
        self.overdeleted: dict[Predicate, list[F]] = {}
        """D, as the disjoint parts that the rounds made; that of a node is its inst_re"""
        self.added: dict[Predicate, list[F]] = {}
        """A, likewise"""

    @property
    def inner(self) -> frozenset[Predicate]:
        """nodes that change with the component"""
        return self.component.inner

    def change_modules(
        self, modules: Mapping[Module[F, T], Module[F, T]], nodes: Sequence[Node[R, F, T]]
    ) -> None:
        """Some rules are evaluated by other modules from now on, with more nodes."""
        changed = self.component.change_modules(modules)
        self.component = replace(changed, nodes=(*changed.nodes, *nodes))

    def find_old(self, read: Read) -> Version[F, T]:
        """What held before the update."""
        predicate, positive = read
        if predicate not in self.members:
            return self.moments.find_old(predicate, positive)
        plus, minus = self._parts(predicate, "D"), self._parts(predicate, "A")
        return Version(self.kept.table(predicate), tuple(plus), tuple(minus))

    def is_empty(self) -> bool:
        """Whether no fact of the component holds."""
        return not any(self.engine.size(self.kept.table(p)) for p in self.component.predicates)

    def note(self, noted: dict[Predicate, list[F]], delta: Mapping[Predicate, F]) -> None:
        """D := D + Delta, or A := A + Delta."""
        for p, facts in delta.items():
            if not self.engine.is_empty(facts):
                parts = noted.setdefault(p, [])
                parts.append(facts)
                noted[p] = self.engine.hints.merge_parts(parts, p.arity)

    def select_supported(self, predicate: Predicate) -> F:
        """The oracle O: what is overdeleted and has support left."""
        parts = self.overdeleted.get(predicate, [])
        facts = self.engine.disjoint_union(parts, predicate.arity)
        return self.engine.select_supported(self.kept.table(predicate), facts)

    def finish(self) -> None:
        """I := (I \\ D) + A, so A \\ D came and D \\ A went."""
        for node in self.component.nodes:
            if node.counted:
                self.moments.finish_view(node.predicate)
        for p in self.predicates:
            unchanged = not any(map(self.engine.count, (*self._parts(p, "D"), *self._parts(p, "A"))))
            self.moments.net[p] = NetChange(partial(self._find_net, p), unchanged)

    def _find_net(self, predicate: Predicate) -> tuple[F, F]:
        overdeleted = self.engine.disjoint_union(self._parts(predicate, "D"), predicate.arity)
        added = self.engine.disjoint_union(self._parts(predicate, "A"), predicate.arity)
        came, went = self.engine.minus(added, overdeleted), self.engine.minus(overdeleted, added)
        return self.engine.keep(came), self.engine.keep(went)

    def _parts(self, predicate: Predicate, which: str) -> list[F]:
        return (self.overdeleted if which == "D" else self.added).get(predicate, [])


def dred(run: Run[R, F, T], asserted: Mapping[Predicate, F]) -> None:
    """DRed(Pi, E, I, E+, E-) for one component; `asserted` are assertions made (+1) and withdrawn (-1).

    Differs from the paper: rules without a body atom of the component are counted exactly first, so E- and E+ are the facts that lost
    and gained their foundations.
    """
    was_empty = run.is_empty()
    lost, gained = change_foundations(run, asserted)
    if was_empty:
        mat(run, gained)
    else:
        overdelete(run, lost)
        rederived = rederive(run)
        add(run, _union(run, rederived, gained))
    # I := (I \\ D) + A
    run.finish()


def mat(run: Run[R, F, T], facts: FactSets[F]) -> None:
    """MAT(Pi, E): the materialisation from nothing. It is `add`, as I and D are empty: I := I + Delta; Delta := Pi[I : Delta] \\ I."""
    add(run, facts)


def change_foundations(run: Run[R, F, T], asserted: Mapping[Predicate, F]) -> tuple[FactSets[F], FactSets[F]]:
    """Assertions and non-recursive supports, exactly; the facts that lost and gained them all."""
    engine = run.engine
    derived = difference(run.component, run.moments, run.evaluation, run.revision)
    _look_ahead(run, derived)
    lost: FactSets[F] = {}
    gained: FactSets[F] = {}
    for p in dict.fromkeys((*asserted, *derived)):
        nothing = engine.no_facts(p.arity)
        signed, assertions = derived.get(p, nothing), asserted.get(p, nothing)
        lost[p], gained[p] = engine.change_foundations(run.kept.table(p), assertions, signed)
    return _drop_empty(run, lost), _drop_empty(run, gained)


def overdelete(run: Run[R, F, T], lost: FactSets[F]) -> None:
    """Every fact with a derivation that uses a lost one, unless founded without recursion."""
    component, moments = run.component, run.moments
    run.trace.begin("overdelete")
    rules = _Rules(run, lambda c: c.select(c.kept, recursive=True))
    # N_D := E-, and what only rules that are gone derive
    gone = component.select(component.gone, recursive=True)
    derived = run.evaluation.derive_all(component, gone, "old", moments.find_old, of_sources=True)
    for p, facts in lost.items():
        run.engine.delete(run.kept.table(p), facts)
    delta = _join(run, lost, _shrink(run, derived))
    is_first = True
    while True:
        # D := D + Delta-
        run.note(run.overdeleted, delta)
        # N_D := Del^r(I \ D, Delta-) for each rule r;  Delta- := N_D \ D
        derived = rules.evaluate(Overdeletion(run, delta, is_first, del_r))
        delta, is_first = _shrink(run, derived), False
        run.trace.round("overdelete", _count(run, delta))
        if not delta:
            return


def rederive(run: Run[R, F, T]) -> FactSets[F]:
    """Delta := Red^r(I \\ D, D) for each rule r: the facts of D that one step derives from the rest, by the support they have left."""
    run.trace.begin("rederive")
    if any(node.predicate in run.overdeleted for node in run.component.nodes):
        rules = _Rules(run, lambda c: c.select(c.kept, recursive=True))
        derived = rules.evaluate(Rederivation(run, {}, False, red_r), every=True)
        for p, facts in derived.items():
            run.engine.adjust(run.kept.table(p), facts, "recursive")
    return _drop_empty(
        run, {p: run.select_supported(p) for p in run.component.predicates if p in run.overdeleted}
    )


def add(run: Run[R, F, T], start: FactSets[F]) -> None:
    """Everything that follows from the rederived and the new facts."""
    component, moments = run.component, run.moments
    run.trace.begin("add")
    rules = _Rules(run, lambda c: c.select((*c.kept, *c.fresh), recursive=True))
    # N_A := rederived + E+, and what rules that are new derive from (I \ D)
    fresh = component.select(component.fresh, recursive=True)
    derived = run.evaluation.derive_all(component, fresh, "lasting", moments.find_lasting)
    for p, facts in start.items():
        run.engine.insert(run.kept.table(p), facts)
    delta = _join(run, start, _grow(run, derived))
    is_first = True
    while True:
        # A := A + Delta+
        run.note(run.added, delta)
        # N_A := Add^r((I \ D) + A, Delta+) for each rule r;  Delta+ := N_A \ ((I \ D) + A)
        derived = rules.evaluate(Addition(run, delta, is_first, add_r))
        delta, is_first = _grow(run, derived), False
        run.trace.round("add", _count(run, delta))
        if not delta:
            return


class _Rules(Generic[R, F, T]):
    """The rules of a phase: which of them a round reaches, and what they derive in it."""

    def __init__(
        self, run: Run[R, F, T], select: Callable[[Component[R, F, T]], Sequence[Module[F, T]]]
    ) -> None:
        self.run = run
        self._select = select
        self._look_at(run.component)

    def _look_at(self, component: Component[R, F, T]) -> None:
        self._component = component
        self.modules = self._select(component)
        looked_up = self.run.moments.numbers.looked_up
        self._readers = Readers(self.run.engine, self.modules, looked_up)
        self._places = {node: place for place, node in enumerate(component.nodes)}
        self._node_readers = Readers(self.run.engine, component.nodes, looked_up)

    def evaluate(self, round_: Round[R, F, T], every: bool = False) -> dict[Predicate, F]:
        """N := Add^r, Del^r or Red^r for each rule r."""
        run = self.run
        while True:
            if run.component is not self._component:
                self._look_at(run.component)
            reached = self._select_reached(round_, self.modules, self._readers, every)
            try:
                self._evaluate_nodes(round_, reached, every)
            except TooManyRows:
                run.component = run.revision.leave_trees(run.component, run.moments)
            else:
                break
        otherwise = partial(run.revision.derive_otherwise_in_round, run, round_)
        return run.evaluation.derive_changes(run.component, reached, round_, round_.delta.values(), otherwise)

    def _evaluate_nodes(self, round_: Round[R, F, T], reached: Sequence[Module[F, T]], every: bool) -> None:
        # Nodes before the first rule, and those of rules that are yet to come, too; children first.
        nodes = self._select_reached(round_, self.run.component.nodes, self._node_readers, every)
        for node in sorted(nodes, key=self._places.__getitem__):
            round_.evaluate(node)
        for module in reached:
            for node in nodes_of(module):
                round_.evaluate(node)

    def _select_reached(
        self,
        round_: Round[R, F, T],
        modules: Sequence[Reader],
        readers: Readers[R, F, T, Reader],
        every: bool,
    ) -> Sequence[Reader]:
        """The modules that read a changed predicate."""
        if every:
            return modules
        if round_.is_first:
            touches = self.run.moments.touches
            return [m for m in modules if any(p in round_.delta for p, _ in m.sources) or touches(m)]
        return readers.reached_by(round_.delta)


# Facts by predicate.


def _shrink(run: Run[R, F, T], derived: Mapping[Predicate, F]) -> FactSets[F]:
    """Take derivations back; the live facts that have nothing but recursive support now."""
    _look_ahead(run, derived)
    return _drop_empty(
        run, {p: run.engine.shrink(run.kept.table(p), facts, "recursive") for p, facts in derived.items()}
    )


def _grow(run: Run[R, F, T], derived: Mapping[Predicate, F]) -> FactSets[F]:
    """Count derivations; the facts that were not there before."""
    _look_ahead(run, derived)
    return _drop_empty(
        run, {p: run.engine.grow(run.kept.table(p), facts, "recursive") for p, facts in derived.items()}
    )


def _look_ahead(run: Run[R, F, T], facts: Mapping[Predicate, F]) -> None:
    run.engine.hints.look_ahead([(run.kept.table(p), f) for p, f in facts.items()])


def _join(run: Run[R, F, T], a: FactSets[F], b: FactSets[F]) -> FactSets[F]:
    """Of sets that have nothing in common."""
    return {
        p: run.engine.disjoint_union([side[p] for side in (a, b) if p in side], p.arity) for p in {**a, **b}
    }


def _union(run: Run[R, F, T], a: FactSets[F], b: FactSets[F]) -> FactSets[F]:
    both = {p: run.engine.union(a[p], b[p]) for p in a if p in b}
    return {**a, **b, **both}


def _drop_empty(run: Run[R, F, T], sets: Mapping[Predicate, F]) -> FactSets[F]:
    return {p: facts for p, facts in sets.items() if not run.engine.is_empty(facts)}


def _count(run: Run[R, F, T], sets: FactSets[F]) -> int:
    return sum(run.engine.count(facts) for facts in sets.values())
