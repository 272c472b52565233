"""A recursive component: the Delete/Rederive algorithm (Algorithm 1), with derivation counts.

A fact keeps two supports: derivations by rules with and without a body atom of the component. In overdeletion a fact with
an assertion or non-recursive support left is not overdeleted; after it, an overdeleted fact with recursive support left is
rederived. That is the counting oracle of the paper: a support is exact at the end of each phase.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from hdlog.engines.protocol import FactSet, Version
from hdlog.maintenance.module import Change, Changes, Module
from hdlog.maintenance.state import NetChange, State, Step, literals_of
from hdlog.maintenance.trace import Trace
from hdlog.program.model import Predicate

FactSets = dict[Predicate, FactSet]


class DRed:
    """One run over one component. Names follow the paper: D, A, delta."""

    def __init__(self, state: State, step: Step, trace: Trace) -> None:
        self.state = state
        self.engine = state.engine
        self.step = step
        self.trace = trace
        # D and A, as the disjoint parts that the rounds made
        self.overdeleted: dict[Predicate, list[FactSet]] = {p: [] for p in step.predicates}
        self.added: dict[Predicate, list[FactSet]] = {p: [] for p in step.predicates}

    def run(self, asserted: FactSets) -> None:
        """Bring the component up to date; `asserted` are assertions made (+1) and withdrawn (-1)."""
        lost, gained = self.change_foundations(asserted)
        self.overdelete(lost)
        rederived = self.rederive()
        self.add(self._union(rederived, gained))
        for p in self.step.predicates:
            nothing = not any(map(self.engine.count, (*self.overdeleted[p], *self.added[p])))
            self.state.net[p] = NetChange(partial(self._net, p), nothing)

    def _net(self, predicate: Predicate) -> tuple[FactSet, FactSet]:
        """I := (I \\ D) + A, so A \\ D came and D \\ A went."""
        overdeleted = self.engine.together(self.overdeleted[predicate], predicate.arity)
        added = self.engine.together(self.added[predicate], predicate.arity)
        return self.engine.minus(added, overdeleted), self.engine.minus(overdeleted, added)

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
            engine.adjust(table, asserted.get(p, nothing), "asserted")
            engine.adjust(table, signed, "nonrecursive")
            touched = engine.union(engine.distinct(asserted.get(p, nothing)), engine.distinct(signed))
            gained[p] = engine.live(table, engine.founded(table, touched), wanted=False)
            lost[p] = engine.live(table, engine.founded(table, touched, wanted=False))
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
            for p, facts in delta.items():
                self.overdeleted[p].append(facts)
            # N_D := Del^r(I \ D, Delta-) for each rule r;  Delta- := N_D \ D
            active = self._active(modules, delta, first_round)
            changes = self._changes(active, delta, self.state.shrinking, first_round, self._losing)
            delta, first_round = self._shrink(self.state.derivations(active, changes, self.step)), False
            self.trace.round("overdelete", self._count(delta))
            if self._is_empty(delta):
                return

    def rederive(self) -> FactSets:
        """Delta := the facts of D that one step derives from the rest: those with support left."""
        return {
            p: self.engine.supported(self.state.table(p), self.engine.together(parts, p.arity))
            for p, parts in self.overdeleted.items()
        }

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
            for p, facts in delta.items():
                self.added[p].append(facts)
            # N_A := Add^r((I \ D) + A, Delta+) for each rule r;  Delta+ := N_A \ ((I \ D) + A)
            active = self._active(modules, delta, first_round)
            changes = self._changes(active, delta, self.state.growing, first_round, self._gaining)
            delta, first_round = self._grow(self.state.derivations(active, changes, self.step)), False
            self.trace.round("add", self._count(delta))
            if self._is_empty(delta):
                return

    # Parts of the steps.

    def _active(self, modules: Sequence[Module], delta: FactSets, first_round: bool) -> list[Module]:
        """The modules that read something that has changed."""
        changed = {p for p, facts in delta.items() if not self.engine.is_empty(facts)}
        return [
            m
            for m in modules
            if any(p in changed for p, _ in m.reads) or (first_round and self.state.touches(m))
        ]

    def _changes(
        self,
        modules: Sequence[Module],
        delta: FactSets,
        outside: Callable[[Predicate, bool, bool], Change],
        first_round: bool,
        inside: Callable[[Predicate, FactSet], Change],
    ) -> Changes:
        return {
            (p, positive): inside(p, delta[p]) if p in delta else outside(p, positive, first_round)
            for p, positive in literals_of(modules)
        }

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
