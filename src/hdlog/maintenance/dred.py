"""A recursive component: the Delete/Rederive algorithm (Algorithm 1), with derivation counts.

A fact keeps two supports: derivations by rules with and without a body atom of the component. In overdeletion a fact with
an assertion or non-recursive support left is not overdeleted; after it, an overdeleted fact with recursive support left is
rederived. That is the counting oracle of the paper: a support is exact at the end of each phase.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hdlog.engines.protocol import FactSet, Version
from hdlog.maintenance.module import Change, LaterChange, Module
from hdlog.maintenance.nodes import Node
from hdlog.maintenance.state import NetChange, State, Step
from hdlog.maintenance.trace import Trace
from hdlog.program.model import Predicate

FactSets = dict[Predicate, FactSet]


@dataclass(frozen=True)
class Phase:
    """How what rules read changes in a phase."""

    outside: Callable[[Predicate, bool, bool], LaterChange]
    """of a finished predicate: predicate, sign, whether it is the first round"""
    inside: Callable[[Predicate, FactSet], Change]
    """of a predicate of the component, which has changed already"""
    inst: Callable[[Node, FactSet, FactSet | None], Change]
    """of a node: the matches it gained or lost, and the tuples restored before"""


class DRed:
    """One run over one component. Names follow the paper: D, A, delta."""

    def __init__(self, state: State, step: Step, trace: Trace) -> None:
        self.state = state
        self.engine = state.engine
        self.step = step
        self.trace = trace
        self.insts = tuple(n for n in step.nodes if not n.counted)
        self.predicates = (*step.predicates, *(n.predicate for n in self.insts))
        # D and A, as the disjoint parts that the rounds made; D of a node is its inst_re
        self.overdeleted: dict[Predicate, list[FactSet]] = {p: [] for p in self.predicates}
        self.added: dict[Predicate, list[FactSet]] = {p: [] for p in self.predicates}

    def run(self, asserted: FactSets) -> None:
        """Bring the component up to date; `asserted` are assertions made (+1) and withdrawn (-1)."""
        lost, gained = self.change_foundations(asserted)
        self.overdelete(lost)
        rederived = self.rederive()
        self.add(self._union(rederived, gained))
        for node in self.step.nodes:
            if node.counted:
                self.state.views[node.predicate].finished = True
        for p in self.predicates:
            nothing = not any(map(self.engine.count, (*self.overdeleted[p], *self.added[p])))
            self.state.net[p] = NetChange(partial(self._net, p), nothing)

    def _net(self, predicate: Predicate) -> tuple[FactSet, FactSet]:
        """I := (I \\ D) + A, so A \\ D came and D \\ A went."""
        overdeleted = self.engine.together(self.overdeleted[predicate], predicate.arity)
        added = self.engine.together(self.added[predicate], predicate.arity)
        came, went = self.engine.minus(added, overdeleted), self.engine.minus(overdeleted, added)
        return self.engine.keep(came), self.engine.keep(went)

    def change_foundations(self, asserted: FactSets) -> tuple[FactSets, FactSets]:
        """Assertions and non-recursive supports, exactly; the facts that lost and gained them all."""
        engine = self.engine
        derived = self.state.difference(self.step, recursive=False)
        lost, gained = self._nothing(), self._nothing()
        for p in self.step.predicates:
            table, nothing = self.state.table(p), engine.no_facts(p.arity)
            signed = derived.get(p, nothing)
            if p not in asserted and engine.is_empty(signed):
                continue
            lost[p], gained[p] = engine.refound(table, asserted.get(p, nothing), signed)
        return lost, gained

    def overdelete(self, lost: FactSets) -> None:
        """Every fact with a derivation that uses a lost one, unless founded without recursion."""
        modules = self.step.part(self.step.kept, recursive=True)
        # N_D := E-, and what only rules that are gone derive
        gone = self.state.all_derivations(
            self.step.part(self.step.gone, recursive=True), self.state.old, self.step
        )
        for p, facts in lost.items():
            self.engine.delete(self.state.table(p), facts)
        delta, first_round = self._joined(lost, self._shrink(gone)), True
        while True:
            # D := D + Delta-
            self._note(self.overdeleted, delta)
            # N_D := Del^r(I \ D, Delta-) for each rule r;  Delta- := N_D \ D
            derived = self._evaluate(modules, delta, self._deletion, first_round)
            delta, first_round = self._shrink(derived), False
            self.trace.round("overdelete", self._count(delta))
            if self._is_empty(delta):
                return

    def rederive(self) -> FactSets:
        """Delta := the facts of D that one step derives from the rest: those with support left."""
        self.rederive_nodes()
        return {p: self._supported(p) for p in self.step.predicates}

    def rederive_nodes(self) -> None:
        """Red^r (Algorithm 5): the tuples of inst_re with support left, and the derivations that use them."""
        restored = {}
        for node in self.insts:
            facts = self._supported(node.predicate)
            if not self.engine.is_empty(facts):
                self.engine.insert(self.state.table(node.predicate), facts)
                self.added[node.predicate].append(facts)
                restored[node.predicate] = facts
        if restored:
            modules = self.step.part(self.step.kept, recursive=True)
            derived = self._evaluate(modules, self._nothing(), self._rederivation, False, restored)
            for p, facts in derived.items():
                self.engine.adjust(self.state.table(p), facts, "recursive")

    def _supported(self, predicate: Predicate) -> FactSet:
        """The oracle O: what is overdeleted and has support left."""
        facts = self.engine.together(self.overdeleted[predicate], predicate.arity)
        return self.engine.supported(self.state.table(predicate), facts)

    def add(self, start: FactSets) -> None:
        """Everything that follows from the rederived and the new facts."""
        modules = self.step.part((*self.step.kept, *self.step.fresh), recursive=True)
        # N_A := rederived + E+, and what rules that are new derive from (I \ D)
        fresh = self.state.all_derivations(
            self.step.part(self.step.fresh, recursive=True), self.state.lasting, self.step
        )
        for p, facts in start.items():
            self.engine.insert(self.state.table(p), facts)
        delta, first_round = self._joined(start, self._grow(fresh)), True
        while True:
            # A := A + Delta+
            self._note(self.added, delta)
            # N_A := Add^r((I \ D) + A, Delta+) for each rule r;  Delta+ := N_A \ ((I \ D) + A)
            derived = self._evaluate(modules, delta, self._addition, first_round)
            delta, first_round = self._grow(derived), False
            self.trace.round("add", self._count(delta))
            if self._is_empty(delta):
                return

    # Parts of the steps.

    def _evaluate(
        self,
        modules: Sequence[Module],
        delta: FactSets,
        phase: Phase,
        first_round: bool,
        restored: FactSets | None = None,
    ) -> FactSets:
        """Add^r and Del^r (Algorithms 2 and 4) for all rules: in-node evaluation, then cross-node evaluation.

        A node that several rules share is evaluated once. What the nodes keep follows at once, so `first` and `second` of
        a change are the labels L+ and L-: nodes before the one with the delta are matched in one, those after it in
        the other.
        """
        changes: dict[tuple[Predicate, bool], Change | LaterChange] = {}
        changed = {p for p, facts in delta.items() if not self.engine.is_empty(facts)}

        def reached(module: Module) -> bool:
            return any(p in changed or (first_round and self.state.has_changed(p)) for p, _ in module.reads)

        def fill(module: Module) -> None:
            for p, positive in module.reads:
                if (p, positive) not in changes:
                    if p in delta:
                        changes[(p, positive)] = phase.inside(p, delta[p])
                    else:
                        changes[(p, positive)] = phase.outside(p, positive, first_round)

        # in-node evaluation
        for node in self.step.nodes:
            matches = self.engine.no_facts(node.predicate.arity)
            if reached(node):
                fill(node)
                matches = self.state.node_change(node, changes)
            change = phase.inst(node, matches, (restored or {}).get(node.predicate))
            changes[(node.predicate, True)] = change
            if not self.engine.is_empty(change.delta):
                changed.add(node.predicate)
        # cross-node evaluation
        active = [m for m in modules if reached(m)]
        for module in active:
            fill(module)
        return self.state.derivations(active, changes, self.step)

    @property
    def _deletion(self) -> Phase:
        return Phase(self.state.shrinking, self._losing, self._lose)

    @property
    def _addition(self) -> Phase:
        return Phase(self.state.growing, self._gaining, self._gain)

    @property
    def _rederivation(self) -> Phase:
        return Phase(self.state.shrinking, self._gaining, self._gain)

    def _lose(self, node: Node, matches: FactSet, _: FactSet | None) -> Change:
        """Take matches from a node; overdelete each tuple that lost one, and remember it in inst_re.

        That other matches are left does not help a tuple: they may rest on what is being deleted.
        """
        if node.counted:
            view = self.state.views[node.predicate]
            before = view.now()
            view.add(self.engine.opposite(matches))
            return Change(matches, view.now(), before)
        delta = self.engine.shrink(self.state.table(node.predicate), matches, "recursive")
        self._note(self.overdeleted, {node.predicate: delta})
        return self._losing(node.predicate, delta)

    def _gain(self, node: Node, matches: FactSet, restored: FactSet | None) -> Change:
        if node.counted:
            view = self.state.views[node.predicate]
            before = view.now()
            view.add(matches)
            return Change(matches, before, view.now())
        delta = self.engine.grow(self.state.table(node.predicate), matches, "recursive")
        self._note(self.added, {node.predicate: delta})
        if restored is not None:
            delta = self.engine.together([delta, restored], node.predicate.arity)
        return self._gaining(node.predicate, delta)

    def _losing(self, predicate: Predicate, delta: FactSet) -> Change:
        """The table is without delta already: S \\ delta, then S."""
        table = self.state.table(predicate)
        return Change(delta, Version(table), Version(table, (delta,)))

    def _gaining(self, predicate: Predicate, delta: FactSet) -> Change:
        """The table has delta already: I \\ delta, then I."""
        table = self.state.table(predicate)
        return Change(delta, Version(table, (), (delta,)), Version(table))

    def _shrink(self, derived: FactSets) -> FactSets:
        """Take derivations back; the live facts that have nothing but recursive support now."""
        found = self._nothing()
        for p, facts in derived.items():
            found[p] = self.engine.shrink(self.state.table(p), facts, "recursive")
        return found

    def _grow(self, derived: FactSets) -> FactSets:
        """Count derivations; the facts that were not there before."""
        found = self._nothing()
        for p, facts in derived.items():
            found[p] = self.engine.grow(self.state.table(p), facts, "recursive")
        return found

    def _note(self, noted: dict[Predicate, list[FactSet]], delta: FactSets) -> None:
        for p, facts in delta.items():
            if not self.engine.is_empty(facts):
                noted[p] = self.engine.fewer([*noted[p], facts], p.arity)

    def _joined(self, a: FactSets, b: FactSets) -> FactSets:
        return {p: self.engine.together([a[p], b[p]], p.arity) for p in self.step.predicates}

    def _nothing(self) -> FactSets:
        return {p: self.engine.no_facts(p.arity) for p in self.step.predicates}

    def _union(self, a: FactSets, b: FactSets) -> FactSets:
        return {p: self.engine.union(a[p], b[p]) for p in self.step.predicates}

    def _is_empty(self, facts: FactSets) -> bool:
        return all(self.engine.is_empty(f) for f in facts.values())

    def _count(self, facts: FactSets) -> int:
        return sum(self.engine.count(f) for f in facts.values())
