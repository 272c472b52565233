"""The view module: a rule evaluated over a view tree, one root for each head atom or group of them."""

from __future__ import annotations

from collections.abc import Mapping

from hdlog.engines.protocol import Engine, FactSet, Version
from hdlog.maintenance.module import Changes
from hdlog.maintenance.nodes import Node, with_nodes
from hdlog.maintenance.standard import StandardModule
from hdlog.plan.planner import RulePlan
from hdlog.plan.tuning import Tuning
from hdlog.program.model import Predicate


class ViewModule:
    """Each root joins its atoms with its children's views; the counts in them stand for the matches below."""

    def __init__(self, engine: Engine, plan: RulePlan, tuning: Tuning) -> None:
        self.engine = engine
        self.plan = plan
        self.rule = plan.rule
        self.nodes = tuple(Node(engine, part, tuning) for part in plan.parts)
        self.roots = [
            (root.heads, StandardModule(engine, root.rule, tuning, in_node=True))
            for root in plan.roots
            if root.rule is not None
        ]
        self.reads = tuple(dict.fromkeys(key for _, module in self.roots for key in module.reads))
        self.sources = StandardModule(engine, plan.rule).reads

    def derive(self, changes: Changes) -> Mapping[int, FactSet]:
        found: dict[int, FactSet] = {}
        for heads, module in self.roots:
            if any(not self.engine.is_empty(changes[key].delta) for key in module.reads):
                found |= {heads[n]: facts for n, facts in module.derive(changes).items()}
        return found

    def derive_all(self, versions: Mapping[tuple[Predicate, bool], Version]) -> Mapping[int, FactSet]:
        known = versions
        if any(key not in known for key in self.reads):
            known = with_nodes(self.engine, self.nodes, versions)
        found: dict[int, FactSet] = {}
        for heads, module in self.roots:
            found |= {heads[n]: facts for n, facts in module.derive_all(known).items()}
        return found
