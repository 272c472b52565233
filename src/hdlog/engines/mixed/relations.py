"""The algebra of the mixed engine: what is small is worked out in the process, and results that are small come there.

A version is a sum of facts here and facts there, and a join with a sum is the sum of the joins. So few rows meet a small table in the process and
a large one by a broadcast; only what is large on both sides stays on Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hdlog.engines.columnar.relation import stack
from hdlog.engines.mixed.sides import Facts, FarRelation, MixedVersion, NearRelation, Relation
from hdlog.engines.mixed.statistics import FarVersion, Statistics
from hdlog.engines.protocol import Allow, Kept, Version
from hdlog.program.model import Expression
from hdlog.program.terms import Term, Variable


class Relations(Statistics):
    def unit(self) -> Relation:
        return Relation(self.near.unit(), self.far.unit())

    def scan(self, facts: Facts, terms: Sequence[Term]) -> Relation:
        facts = self.bring_facts_home(facts)
        if facts.near is not None:
            return Relation(self.near.scan(facts.near, terms))
        return Relation(far=self.far.scan(self.find_far_facts(facts), terms))

    def join(
        self, left: Relation, version: MixedVersion, terms: Sequence[Term], allow: Allow | None = None
    ) -> Relation:
        left = self.bring_home(left)
        if left.near is None:
            return self.bring_home(
                Relation(far=self.far.join(self.find_far(left), self.all_far(version), terms))
            )
        near, far = self.parts_of(version)
        if far is None:
            version_here = self.near_part(version) if near is None else near
            return Relation(self.near.join(left.near, version_here, terms, allow))
        there = self.bring_home(Relation(far=self._join_far(left, far, terms)))
        if near is None:
            return there
        here = Relation(self.near.join(left.near, near, terms, allow))
        return self.stack([here, there])

    def _settle(self, far: FarRelation, allow: Allow | None) -> Relation:
        """A result of Spark, if so many rows may be made as it is estimated to have."""
        if allow is not None:
            allow(int(min(far.estimate, 2.0**62)))
        return self.bring_home(Relation(far=far))

    def _join_far(self, left: Relation, version: FarVersion, terms: Sequence[Term]) -> FarRelation:
        """Few rows with what is on Spark."""
        if left.near is not None and not left.near.columns and len(left.near) == 1:
            # Nothing but constants to look for, if that.
            factor = int(left.near.weights()[0])
            whole = self.far.join(self.far.unit(), version, terms)
            if factor == 1 or whole.frame is None:
                return whole
            names = [c for c in whole.frame.names if c != "m"]
            return replace(whole, frame=whole.frame.select(*names, f"{factor}L * m AS m"))
        return self.far.join(self.find_far(left), version, terms)

    def meet(
        self,
        left: Relation,
        name: str,
        factors: Sequence[tuple[MixedVersion, Sequence[Term]]],
        needed: Sequence[str],
        allow: Allow | None = None,
    ) -> Relation:
        left = self.bring_home(left)
        if left.near is not None and all(self.is_near(version) for version, _ in factors):
            here = [(self.near_part(version), terms) for version, terms in factors]
            return Relation(self.near.meet(left.near, name, here, needed, allow))
        if left.near is None:
            there = [(self.all_far(version), terms) for version, terms in factors]
            return self._settle(self.far.meet(self.find_far(left), name, there, needed), allow)

        def size(factor: tuple[MixedVersion, Sequence[Term]]) -> float:
            version, terms = factor
            bound = [i for i, t in enumerate(terms) if not (isinstance(t, Variable) and t.name == name)]
            return self.fan_out(version, bound)

        relation = left
        for version, terms in sorted(factors, key=size):
            relation = self.join(relation, version, terms, allow)
        return self.keep_columns(relation, needed)

    def antijoin(self, left: Relation, version: MixedVersion, terms: Sequence[Term]) -> Relation:
        left = self.bring_home(left)
        if left.near is None:
            return self.bring_home(
                Relation(far=self.far.antijoin(self.find_far(left), self.all_far(version), terms))
            )
        near, far = self.parts_of(version)
        if far is None:
            return Relation(self.near.antijoin(left.near, near, terms))
        # What there is on Spark of the facts that are asked for.
        asked = self.near.project(left.near, terms).once()
        start = self.find_far(Relation(self.near.scan(asked, [Variable(f"k{i}") for i in range(len(terms))])))
        found = self.far.join(start, far, [Variable(f"k{i}") for i in range(len(terms))])
        there = self.find_near(Relation(far=found))
        known = self.near.project(there, [Variable(f"k{i}") for i in range(len(terms))])
        both = Version(near.table, (*near.plus, known), near.minus)
        return Relation(self.near.antijoin(left.near, both, terms))

    def stack(self, parts: Sequence[Relation]) -> Relation:
        settled = [self.bring_home(part) for part in parts]
        here = [part.near for part in settled if part.near is not None]
        there = [part for part in settled if part.near is None]
        if not there:
            return Relation(stack(here))
        filled = [Relation(part) for part in here if len(part)]
        far = self.far.stack([self.find_far(part) for part in (*there, *filled)])
        return self.bring_home(Relation(far=far))

    def collapse(self, relation: Relation) -> Relation:
        if relation.near is not None:
            return Relation(self.near.collapse(relation.near))
        return Relation(far=self.far.collapse(self.find_far(relation)))

    def filter(self, relation: Relation, condition: Expression) -> Relation:
        relation = self.bring_home(relation)
        if relation.near is not None:
            return Relation(self.near.filter(relation.near, condition))
        return Relation(far=self.far.filter(self.find_far(relation), condition))

    def extend(self, relation: Relation, expression: Expression, name: str) -> Relation:
        relation = self.bring_home(relation)
        if relation.near is not None:
            return Relation(self.near.extend(relation.near, expression, name))
        return Relation(far=self.far.extend(self.find_far(relation), expression, name))

    def keep_columns(self, relation: Relation, names: Sequence[str]) -> Relation:
        near: NearRelation | None = None
        if relation.near is not None:
            near = self.near.keep_columns(relation.near, names)
            return Relation(near)
        return Relation(far=self.far.keep_columns(self.find_far(relation), names))

    def project(self, relation: Relation, terms: Sequence[Term]) -> Facts:
        if relation.near is not None:
            return Facts(len(terms), self.near.project(relation.near, terms))
        return Facts(len(terms), far=self.far.project(self.find_far(relation), terms))

    def is_empty(self, result: Relation | Facts) -> bool:
        if result.near is not None:
            return len(result.near) == 0
        return result.far is None or self.far.is_empty(result.far)

    def count(self, result: Relation | Facts) -> int:
        if result.near is not None:
            return len(result.near)
        assert result.far is not None
        return self.far.count(result.far)

    def keep(self, result: Kept) -> Kept:
        if isinstance(result, Relation):
            if result.near is not None:
                return result
            return self.bring_home(Relation(far=self.far.keep(self.find_far(result))))  # type: ignore[return-value]
        assert isinstance(result, Facts)
        if not self.bring_facts_home(result).is_near:
            self.far.keep(self.find_far_facts(result))
        return result
