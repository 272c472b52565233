"""The aggregate module: the values of groups, and how they follow the facts."""

from __future__ import annotations

from typing import Generic

from hdlog.engines.protocol import Engine, F, R, T
from hdlog.maintenance.changes import Changes, Heads, Versions
from hdlog.maintenance.meters import Meter
from hdlog.plan.bodies import Read
from hdlog.program.model import Aggregate, Atom, Rule
from hdlog.program.terms import Variable


class AggregateModule(Generic[R, F, T]):
    """Evaluates a normal rule `a(g.., r) :- AGGREGATE(s(g.., v..) ON g.. BIND f(v) AS r)`.

    The values there were are those of its own head: no other rule has that.
    """

    def __init__(self, engine: Engine[R, F, T], rule: Rule) -> None:
        self.engine = engine
        self.rule = rule
        self.meter = Meter()
        (item,) = rule.body
        assert isinstance(item, Aggregate)
        (source,) = (a for a in item.body if isinstance(a, Atom))
        (call,) = item.calls
        self.source: Read = (source.predicate, True)
        self.head: Read = (rule.heads[0].predicate, True)
        self.reads = (self.source, self.head)
        self.sources = (self.source,)
        self.width = len(item.group)
        column = source.terms.index(call.argument) if isinstance(call.argument, Variable) else -1
        self.aggregator = engine.aggregator(self.width, call, column)

    def derive(self, changes: Changes[F, T]) -> Heads[F]:
        change = changes[self.source]
        if self.engine.is_empty(change.delta):
            return {}
        return {0: self.aggregator.change(change.delta, change.including, changes[self.head].without)}

    def derive_all(self, versions: Versions[F, T]) -> Heads[F]:
        version = versions[self.source]
        groups = self.engine.no_facts(self.width)
        for facts in (self.engine.facts(version.table), *version.plus):
            groups = self.engine.union(groups, self.engine.first_columns(facts, self.width))
        return {0: self.aggregator.values(version, groups)}
