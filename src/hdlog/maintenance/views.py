"""The view module: a rule evaluated over a view tree, one root for each head atom or group of them.

Differs from the paper: a node keeps what it sends to its parent, with a count for each row, in place of its own join, and its cover may
be views of other nodes (docs/decisions/0004). So nothing is joined across nodes, and one pass up the tree counts what the paper's three
passes and a join list.
"""

from __future__ import annotations

from typing import Generic

from hdlog.engines.protocol import Engine, F, R, T
from hdlog.maintenance.changes import Changes, Heads, Versions
from hdlog.maintenance.meters import Meter
from hdlog.maintenance.nodes import Node, with_nodes
from hdlog.maintenance.standard import StandardModule
from hdlog.plan.bodies import Body
from hdlog.plan.planner import RulePlan
from hdlog.tuning import Tuning


class ViewModule(Generic[R, F, T]):
    """Each root joins its atoms with its children's views; the counts in them stand for the matches below."""

    def __init__(self, engine: Engine[R, F, T], plan: RulePlan, tuning: Tuning) -> None:
        self.engine = engine
        self.plan = plan
        self.rule = plan.rule
        self.nodes = tuple(Node(engine, rule, tuning) for rule in plan.nodes)
        self.meter = Meter()
        self.roots = [
            (root.heads, StandardModule(engine, root.rule, tuning, in_node=True, meter=self.meter))
            for root in plan.roots
            if root.rule is not None
        ]
        self.reads = tuple(dict.fromkeys(read for _, module in self.roots for read in module.reads))
        self.sources = Body(plan.rule).reads

    def derive(self, changes: Changes[F, T]) -> Heads[F]:
        derived: dict[int, F] = {}
        for heads, module in self.roots:
            if any(not self.engine.is_empty(changes[read].delta) for read in module.reads):
                derived |= {heads[n]: facts for n, facts in module.derive(changes).items()}
        return derived

    def derive_all(self, versions: Versions[F, T]) -> Heads[F]:
        known = versions
        if any(read not in known for read in self.reads):
            known = with_nodes(self.engine, self.nodes, versions)
        derived: dict[int, F] = {}
        for heads, module in self.roots:
            derived |= {heads[n]: facts for n, facts in module.derive_all(known).items()}
        return derived
