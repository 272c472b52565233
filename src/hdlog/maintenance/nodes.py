"""Nodes of trees: in-node evaluation, whether their rows are kept as a set or counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from hdlog.engines.protocol import Engine, F, R, T, Version
from hdlog.maintenance.changes import Changes, Heads, Versions
from hdlog.maintenance.meters import Meter
from hdlog.maintenance.standard import StandardModule
from hdlog.plan.bodies import Body
from hdlog.plan.nodes import NodeRule
from hdlog.tuning import Tuning


class Node(Generic[R, F, T]):
    """The operator Pi_p of a node: the rows that use a changed fact, each with how many matches it stands for."""

    def __init__(self, engine: Engine[R, F, T], plan: NodeRule, tuning: Tuning) -> None:
        self.engine = engine
        self.plan = plan
        self.rule = plan.rule
        self.predicate = plan.predicate
        self.counted = plan.counted
        self.meter = Meter()
        self.module = StandardModule(engine, plan.rule, tuning, in_node=True, meter=self.meter)
        self.reads = self.module.reads
        self.sources = Body(plan.definition).reads

    def derive(self, changes: Changes[F, T]) -> Heads[F]:
        return self.module.derive(changes)

    def derive_all(self, versions: Versions[F, T]) -> Heads[F]:
        return self.module.derive_all(versions)

    def changed_rows(self, changes: Changes[F, T]) -> F:
        """The rows that the node gains or loses."""
        return self._keep_only_head(self.derive(changes))

    def all_rows(self, versions: Versions[F, T]) -> F:
        return self._keep_only_head(self.derive_all(versions))

    def _keep_only_head(self, heads: Heads[F]) -> F:
        return self.engine.keep(heads.get(0, self.engine.no_facts(self.predicate.arity)))


def with_nodes(
    engine: Engine[R, F, T], nodes: Sequence[Node[R, F, T]], versions: Versions[F, T]
) -> Versions[F, T]:
    """The versions of predicates, and of nodes over them from scratch; children come first."""
    known = dict(versions)
    for node in nodes:
        with node.meter.paused():
            rows = node.all_rows(known) if node.counted else engine.distinct(node.all_rows(known))
        known[(node.predicate, True)] = Version(engine.table(node.predicate.arity), (rows,))
    return known
