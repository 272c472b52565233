"""Aggregated values, worked out where the facts are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hdlog.engines.mixed.sides import Facts, FarFacts, MixedVersion
from hdlog.program.model import AggregateCall
from hdlog.program.terms import Term, Variable

if TYPE_CHECKING:
    from hdlog.engines.mixed.engine import MixedEngine


class Aggregator:
    """One aggregate."""

    def __init__(
        self, engine: MixedEngine, call: AggregateCall, group: Sequence[Variable], terms: Sequence[Term]
    ) -> None:
        self.engine = engine
        self.near = engine.near.aggregator(call, group, terms)
        self.far = engine.far.aggregator(call, group, terms)
        self.arity = len(group) + 1

    def values(self, version: MixedVersion) -> Facts:
        engine = self.engine
        if engine.is_near(version):
            return Facts(self.arity, self.near.values(engine.near_part(version)))
        return self._take(self.far.values(engine.all_far(version)))

    def change(self, delta: Facts, after: MixedVersion, present: MixedVersion) -> Facts:
        engine = self.engine
        delta = engine.bring_facts_home(delta)
        if delta.near is not None and engine.is_near(after) and engine.is_near(present):
            sides = engine.near_part(after), engine.near_part(present)
            return Facts(self.arity, self.near.change(delta.near, *sides))
        self.near.forget()  # what it knows of groups would be out of date
        there = engine.find_far_facts(delta), engine.all_far(after), engine.all_far(present)
        return self._take(self.far.change(*there))

    def _take(self, far: FarFacts) -> Facts:
        return self.engine.bring_facts_home(Facts(self.arity, far=far))
