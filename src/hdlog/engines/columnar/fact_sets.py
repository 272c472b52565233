"""Sets of facts, as the embedded engine combines them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hdlog.engines.columnar.context import Context
from hdlog.engines.columnar.facts import Facts, empty_facts, gather, keys_of, primary_order, sum_facts, union
from hdlog.engines.columnar.kernels import Ids
from hdlog.engines.columnar.kernels.sorting import sort


class FactSets(Context):
    def no_facts(self, arity: int) -> Facts:
        return empty_facts(self.pairs, arity)

    def facts_from_columns(self, columns: Sequence[Ids], rows: int) -> Facts:
        """Each row once."""
        keys = keys_of(self.pairs, columns, primary_order(len(columns)), rows)
        return gather(self.pairs, len(columns), keys, None).once()

    def plus(self, parts: Iterable[Facts], arity: int) -> Facts:
        return sum_facts(list(parts), self.pairs, arity)

    def minus(self, a: Facts, b: Facts) -> Facts:
        return a.minus(b)

    def union(self, a: Facts, b: Facts) -> Facts:
        return union(a, b)

    def positive(self, facts: Facts) -> Facts:
        return facts if facts.counts is None else facts.take(facts.counts > 0)

    def negate(self, facts: Facts) -> Facts:
        return facts.negate()

    def distinct(self, facts: Facts) -> Facts:
        return facts.once()

    def disjoint_union(self, parts: Sequence[Facts], arity: int) -> Facts:
        parts = [p for p in parts if len(p)]
        if len(parts) < 2:
            return parts[0].once() if parts else self.no_facts(arity)
        return Facts(self.pairs, arity, sort(np.concatenate([p.keys for p in parts])))
