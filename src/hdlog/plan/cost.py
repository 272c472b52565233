"""What a join will cost, from row counts and distinct values: the textbook estimates.

Rows of a join: the product of the rows, divided, for each variable, by all but the smallest of its numbers of distinct
values (Garcia-Molina, Ullman, Widom, section 16.4). Where two atoms meet in one variable the sizes of their join may
be known exactly; on skewed data they are far above the estimate, and correct it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, sqrt
from typing import Protocol

from hdlog.program.model import Atom

_MET = 0.03
"""What looking at a candidate of a worst-case optimal step costs, where making a row costs 1."""


class Statistics(Protocol):
    def rows(self, atom: Atom) -> float:
        """How many facts match an atom."""

    def distinct(self, atom: Atom, variable: str) -> float:
        """How many values a variable of an atom has among them."""

    def meeting(self, a: Atom, b: Atom, variable: str) -> float | None:
        """How many pairs of facts of two atoms agree in a variable, if that is known."""


@dataclass(frozen=True, eq=False)
class Factor:
    """An atom or a view, as the estimates see it."""

    rows: float
    distinct: Mapping[str, float]
    skew: Mapping[str, float] = field(default_factory=dict)
    """for each variable, by how much the join of the factor with itself on it is larger than the estimate"""
    atom: Atom | None = None

    @cached_property
    def variables(self) -> frozenset[str]:
        return frozenset(self.distinct)

    def fan_out(self, bound: frozenset[str] | set[str]) -> float:
        """Facts that a row meets that fixes the bound variables."""
        rows = self.rows
        for variable, values in self.distinct.items():
            if variable in bound:
                rows /= max(values, 1.0)
        return rows


@dataclass
class Estimator:
    """Estimates over the factors of one rule; remembers how skewed each pair of atoms is."""

    statistics: Statistics | None
    _skew: dict[tuple[Atom, Atom, str], float] = field(default_factory=dict)

    def factor(self, atom: Atom) -> Factor:
        assert self.statistics is not None
        rows = self.statistics.rows(atom)
        names = dict.fromkeys(v.name for v in atom.variables())
        distinct = {n: min(rows, self.statistics.distinct(atom, n)) for n in names}
        plain = Factor(rows, distinct, {}, atom)
        return Factor(rows, distinct, {n: self._known_skew(plain, plain, n) for n in names}, atom)

    def skew(self, a: Factor, b: Factor, variable: str) -> float:
        """By how much a join of two factors is larger than the estimate; hubs of the one are taken for hubs of the other."""
        if a.atom is None or b.atom is None:
            return sqrt(a.skew.get(variable, 1.0) * b.skew.get(variable, 1.0))
        return self._known_skew(a, b, variable)

    def _known_skew(self, a: Factor, b: Factor, variable: str) -> float:
        assert self.statistics is not None
        assert a.atom is not None
        assert b.atom is not None
        key = (a.atom, b.atom, variable)
        if key not in self._skew:
            exact = self.statistics.meeting(a.atom, b.atom, variable)
            estimate = a.rows * b.rows / max(a.distinct[variable], b.distinct[variable], 1.0)
            self._skew[key] = 1.0 if exact is None or not estimate else max(exact / estimate, 1e-6)
        return self._skew[key]

    def join_rows(self, factors: Sequence[Factor]) -> float:
        rows = 1.0
        by_variable: dict[str, list[Factor]] = {}
        for factor in factors:
            rows *= factor.rows
            for variable in factor.distinct:
                by_variable.setdefault(variable, []).append(factor)
        for variable, holders in by_variable.items():
            if len(holders) > 1:
                values = sorted(f.distinct[variable] for f in holders)
                for value in values[1:]:
                    rows /= max(value, 1.0)
                rows *= max(
                    self.skew(a, b, variable) for i, a in enumerate(holders) for b in holders[i + 1 :]
                )
        return rows

    def projected(self, factors: Sequence[Factor], columns: frozenset[str]) -> Factor:
        """The join of factors, projected to some columns, as a factor."""
        rows = self.join_rows(factors)
        distinct = {c: min([f.distinct[c] for f in factors if c in f.distinct] or [inf]) for c in columns}
        limit = 1.0
        for values in distinct.values():
            limit *= max(values, 1.0)
        rows = min(rows, limit)
        skew = {c: max([f.skew[c] for f in factors if c in f.skew] or [1.0]) for c in columns}
        return Factor(rows, {c: min(values, rows) for c, values in distinct.items()}, skew)

    def evaluation(
        self, factors: Sequence[Factor], columns: frozenset[str], meets: bool
    ) -> tuple[float, float]:
        """Rows made in joining factors, greedily, for some columns: from the best start, and from each on average."""
        costs = [self.cost_from(number, factors, columns, meets) for number in range(len(factors))]
        return (min(costs), sum(costs) / len(costs)) if costs else (0.0, 0.0)

    def cost_from(self, start: int, factors: Sequence[Factor], columns: frozenset[str], meets: bool) -> float:
        """Rows made in joining factors from one of them on."""
        chosen = [factors[start]]
        waiting = [f for i, f in enumerate(factors) if i != start]
        bound = set(factors[start].variables)
        total = rows = factors[start].rows
        while waiting:
            best = min(waiting, key=lambda f: (f.variables.isdisjoint(bound), f.fan_out(bound)))
            free = best.variables - bound
            together = [best]
            if meets and len(free) == 1:
                together = [f for f in waiting if f.variables - bound == free]
            looked_at = rows * min(f.fan_out(bound) * self._correction(f, chosen, bound) for f in together)
            chosen += together
            waiting = [f for f in waiting if f not in together]
            bound |= free
            needed = columns.union(*(f.variables for f in waiting))
            if len(together) > 1 and not free <= needed:
                total += _MET * looked_at
                continue
            if len(together) > 1:
                total += _MET * looked_at
                rows = min(looked_at, self.join_rows(chosen))
            else:
                rows = looked_at
            total += rows
            if meets and not bound <= needed:
                rows = min(rows, self._combinations(chosen, bound & needed))
        return total

    def _combinations(self, factors: Sequence[Factor], variables: set[str]) -> float:
        """The most rows there can be over some variables."""
        found = 1.0
        for variable in variables:
            found *= max(1.0, min(f.distinct[variable] for f in factors if variable in f.distinct))
        return found

    def _correction(self, factor: Factor, chosen: Sequence[Factor], bound: set[str]) -> float:
        shared = factor.variables & bound
        if len(shared) != 1:
            return 1.0
        (variable,) = shared
        return max([self.skew(c, factor, variable) for c in chosen if variable in c.distinct] or [1.0])


def cost_from(start: int, factors: Sequence[Factor], columns: frozenset[str], meets: bool) -> float:
    """Rows made in joining factors of which nothing more is known, from one of them on."""
    return Estimator(None).cost_from(start, factors, columns, meets)


@dataclass(frozen=True, eq=False)
class PaperCosts:
    """The cost model of the paper: rows of the join in a node, and 2 (|p| + |q|) for each tree edge."""

    estimator: Estimator
    factors: Sequence[Factor]
    _rows: dict[tuple[int, ...], float] = field(default_factory=dict)

    def node(self, bag: frozenset[str], cover: tuple[int, ...]) -> float:
        if cover not in self._rows:
            self._rows[cover] = self.estimator.join_rows([self.factors[i] for i in cover])
        return self._rows[cover]

    def edge(
        self,
        parent_bag: frozenset[str],
        parent_cover: tuple[int, ...],
        child_bag: frozenset[str],
        child_cover: tuple[int, ...],
    ) -> float:
        return 2 * (self.size(parent_bag, parent_cover) + self.size(child_bag, child_cover))

    def size(self, bag: frozenset[str], cover: tuple[int, ...]) -> float:
        """Rows that a node keeps."""
        factors = [self.factors[i] for i in cover]
        rows = self.node(bag, cover)
        limit = 1.0
        for variable in bag:
            limit *= max(1.0, min(f.distinct[variable] for f in factors if variable in f.distinct))
        return min(rows, limit)
