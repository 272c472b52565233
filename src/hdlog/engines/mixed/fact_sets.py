"""Sets of facts, as the mixed engine combines them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hdlog.engines.encoding import Ids
from hdlog.engines.mixed.relations import Relations
from hdlog.engines.mixed.sides import Facts, FarFacts, NearFacts


class FactSets(Relations):
    def no_facts(self, arity: int) -> Facts:
        return Facts(arity, self.near.no_facts(arity))

    def facts_from_columns(self, columns: Sequence[Ids], rows: int) -> Facts:
        return Facts(len(columns), self.near.facts_from_columns(columns, rows))

    def plus(self, parts: Iterable[Facts], arity: int) -> Facts:
        return self._combine(list(parts), arity, self.near.plus, self.far.plus)

    def disjoint_union(self, parts: Sequence[Facts], arity: int) -> Facts:
        whole = self._combine(parts, arity, self.near.disjoint_union, self.far.disjoint_union)
        filled = [p for p in parts if not self.is_empty(p)]
        if filled and all(p.origin for p in filled):
            whole.origin = tuple(o for p in filled for o in p.origin)
        return whole

    def _combine(
        self,
        parts: Sequence[Facts],
        arity: int,
        here: Callable[[Sequence[NearFacts], int], NearFacts],
        there: Callable[[Sequence[FarFacts], int], FarFacts],
    ) -> Facts:
        filled = [p for p in map(self.bring_facts_home, parts) if not self.is_empty(p)]
        near = [p.near for p in filled if p.near is not None]
        if len(near) == len(filled):
            return Facts(arity, here(near, arity))
        return Facts(arity, far=there(list(map(self.find_far_facts, filled)), arity))

    def minus(self, a: Facts, b: Facts) -> Facts:
        a, b = self.bring_facts_home(a), self.bring_facts_home(b)
        if a.near is not None and b.near is not None:
            return Facts(a.arity, self.near.minus(a.near, b.near))
        if self.is_empty(a) or self.is_empty(b):
            return a
        return self.bring_facts_home(
            Facts(a.arity, far=self.far.minus(self.find_far_facts(a), self.find_far_facts(b)))
        )

    def union(self, a: Facts, b: Facts) -> Facts:
        a, b = self.bring_facts_home(a), self.bring_facts_home(b)
        if a.near is not None and b.near is not None:
            return Facts(a.arity, self.near.union(a.near, b.near))
        return Facts(a.arity, far=self.far.union(self.find_far_facts(a), self.find_far_facts(b)))

    def distinct(self, facts: Facts) -> Facts:
        if facts.near is not None:
            return Facts(facts.arity, self.near.distinct(facts.near), origin=facts.origin)
        return Facts(facts.arity, far=self.far.distinct(self.find_far_facts(facts)), origin=facts.origin)

    def positive(self, facts: Facts) -> Facts:
        if facts.near is not None:
            return Facts(facts.arity, self.near.positive(facts.near))
        return Facts(facts.arity, far=self.far.positive(self.find_far_facts(facts)))

    def negate(self, facts: Facts) -> Facts:
        if facts.near is not None:
            return Facts(facts.arity, self.near.negate(facts.near))
        return Facts(facts.arity, far=self.far.negate(self.find_far_facts(facts)))
