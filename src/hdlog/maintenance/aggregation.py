"""The aggregate module: the values of the groups that a change touches, before and after it."""

from __future__ import annotations

from collections.abc import Mapping

from hdlog.engines.protocol import Engine, FactSet, Version
from hdlog.maintenance.module import Changes
from hdlog.program.model import Aggregate, Atom, Predicate, Rule
from hdlog.program.terms import Variable


class AggregateModule:
    """Evaluates a core rule `a(g.., r) :- AGGREGATE(s(g.., v..) ON g.. BIND f(v) AS r)`."""

    def __init__(self, engine: Engine, rule: Rule) -> None:
        self.engine = engine
        self.rule = rule
        (item,) = rule.body
        assert isinstance(item, Aggregate)
        (self.source,) = (a for a in item.body if isinstance(a, Atom))
        (self.call,) = item.calls
        self.reads: tuple[tuple[Predicate, bool], ...] = ((self.source.predicate, True),)
        self.sources: tuple[tuple[Predicate, bool], ...] = self.reads
        self.width = len(item.group)
        argument = self.call.argument
        self.column = self.source.terms.index(argument) if isinstance(argument, Variable) else -1

    def derive(self, changes: Changes) -> Mapping[int, FactSet]:
        change = changes[(self.source.predicate, True)]
        if self.engine.is_empty(change.delta):
            return {}
        groups = self.engine.heads_of(change.delta, self.width)
        before, after = self._values(change.first, groups), self._values(change.second, groups)
        return {0: self.engine.plus([after, self.engine.opposite(before)], self.width + 1)}

    def derive_all(self, versions: Mapping[tuple[Predicate, bool], Version]) -> Mapping[int, FactSet]:
        version = versions[(self.source.predicate, True)]
        groups = self.engine.no_facts(self.width)
        for facts in (self.engine.facts(version.table), *version.plus):
            groups = self.engine.union(groups, self.engine.heads_of(facts, self.width))
        return {0: self._values(version, groups)}

    def _values(self, version: Version, groups: FactSet) -> FactSet:
        return self.engine.aggregate(version, groups, self.width, self.call, self.column)
