"""Nodes of decompositions: in-node evaluation, and what is kept of it between updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hdlog.engines.protocol import Engine, FactSet, Table, Version
from hdlog.maintenance.module import Changes
from hdlog.maintenance.standard import StandardModule
from hdlog.plan.parts import Part
from hdlog.plan.tuning import Tuning
from hdlog.program.model import Predicate

_SMALL = 1 << 12


class Node:
    """The operator Pi_p of a node: the rows that use a changed fact, each with how many matches it stands for."""

    def __init__(self, engine: Engine, part: Part, tuning: Tuning) -> None:
        self.engine = engine
        self.part = part
        self.rule = part.rule
        self.predicate = part.predicate
        self.counted = part.counted
        self.module = StandardModule(engine, part.rule, tuning, in_node=True)
        self.reads = self.module.reads
        self.sources = StandardModule(engine, part.definition).reads

    def derive(self, changes: Changes) -> Mapping[int, FactSet]:
        return self.module.derive(changes)

    def derive_all(self, versions: Mapping[tuple[Predicate, bool], Version]) -> Mapping[int, FactSet]:
        return self.module.derive_all(versions)

    def all(self, versions: Mapping[tuple[Predicate, bool], Version]) -> FactSet:
        return self.engine.keep(self.derive_all(versions).get(0, self.engine.no_facts(self.predicate.arity)))


def with_nodes(
    engine: Engine, nodes: Sequence[Node], versions: Mapping[tuple[Predicate, bool], Version]
) -> dict[tuple[Predicate, bool], Version]:
    """The versions of predicates, and of nodes over them from scratch; children come first."""
    known = dict(versions)
    for node in nodes:
        rows = node.all(known) if node.counted else engine.distinct(node.all(known))
        known[(node.predicate, True)] = Version(engine.table(node.predicate.arity), (rows,))
    return known


class Counts:
    """The rows of a view, each with the number of matches it stands for: a sum of sets with multiplicities.

    A view is a function of the facts that hold, so in overdeletion too its counts just follow them: no row of it is ever
    overdeleted and restored, as the paper's nodes are.
    """

    def __init__(self, engine: Engine, arity: int) -> None:
        self.engine = engine
        self.arity = arity
        self.nothing: Table = engine.table(arity)
        self.runs: tuple[FactSet, ...] = ()
        """before the update, large ones first"""
        self.changes: tuple[FactSet, ...] = ()
        """of this update, with signs"""
        self.finished = False
        """whether the changes are all there"""

    def before(self) -> Version:
        return Version(self.nothing, self.runs)

    def now(self) -> Version:
        return Version(self.nothing, self.runs + self.changes)

    def lasting(self) -> Version:
        """In each row the smaller of the two counts."""
        return Version(self.nothing, self.runs, (self.falling(),)) if self.finished else self.now()

    def total(self) -> FactSet:
        if len(self.changes) > 1:
            self.changes = (self.engine.keep(self.engine.plus(self.changes, self.arity)),)
        return self.changes[0] if self.changes else self.engine.no_facts(self.arity)

    def rising(self) -> FactSet:
        return self.engine.rising(self.total())

    def falling(self) -> FactSet:
        return self.engine.rising(self.engine.opposite(self.total()))

    def add(self, signed: FactSet) -> None:
        if not self.engine.is_empty(signed):
            self.changes = self._merged((*self.changes, signed))

    def settle(self) -> None:
        """The update is over."""
        self.runs = self._merged((*self.runs, *self.changes))
        self.changes, self.finished = (), False

    def _merged(self, runs: tuple[FactSet, ...]) -> tuple[FactSet, ...]:
        """Merge while a run is not much larger than the next."""
        kept: list[FactSet] = []
        for run in runs:
            kept.append(run)
            while len(kept) > 1 and self.engine.count(kept[-2]) <= max(
                _SMALL, 2 * self.engine.count(kept[-1])
            ):
                kept[-2:] = [self.engine.keep(self.engine.plus(kept[-2:], self.arity))]
        return tuple(run for run in kept if not self.engine.is_empty(run))
