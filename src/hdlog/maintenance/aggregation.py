"""The aggregate module: the values of groups, and how they follow the matches of a body.

A body of several atoms is a view: groups and values, each with the number of matches it stands for. So matches are counted and added up
over a tree, as the plan has it, and none of them is listed.
"""

from __future__ import annotations

from typing import Generic

from hdlog.engines.protocol import Engine, F, R, T
from hdlog.maintenance.changes import Changes, Heads, Versions
from hdlog.maintenance.meters import Meter
from hdlog.maintenance.nodes import Node, with_nodes
from hdlog.plan.bodies import Body, Read
from hdlog.plan.planner import RulePlan, bag_of, source_of
from hdlog.tuning import Tuning


class AggregateModule(Generic[R, F, T]):
    """Evaluates a normal rule `a(g.., r) :- AGGREGATE(B.. ON g.. BIND f(v) AS r)`.

    The values there were are those of its own head: no other rule has that.
    """

    def __init__(self, engine: Engine[R, F, T], plan: RulePlan, tuning: Tuning) -> None:
        self.engine = engine
        self.plan = plan
        self.rule = plan.rule
        self.meter = Meter()
        if tuning.method in ("standard", "paper"):
            tuning = tuning.without("worst_case_optimal, sum_product")
        self.nodes = tuple(Node(engine, rule, tuning) for rule in plan.nodes)
        source = source_of(plan)
        item, bag = bag_of(plan.rule)
        (call,) = item.calls
        self.source: Read = (source.predicate, True)
        self.head: Read = (plan.rule.heads[0].predicate, True)
        self.reads = (self.source, self.head)
        self.sources = Body(bag).reads
        self.aggregator = engine.aggregator(call, item.group, source.terms)

    def derive(self, changes: Changes[F, T]) -> Heads[F]:
        change = changes[self.source]
        if self.engine.is_empty(change.delta):
            return {}
        return {0: self.aggregator.change(change.delta, change.including, changes[self.head].without)}

    def derive_all(self, versions: Versions[F, T]) -> Heads[F]:
        known = versions if self.source in versions else with_nodes(self.engine, self.nodes, versions)
        return {0: self.aggregator.values(known[self.source])}
