"""What a join will cost, from row counts and distinct values: the textbook estimates.

Rows of a join: the product of the rows, divided, for each variable, by all but the smallest of its numbers of distinct
values (Garcia-Molina, Ullman, Widom, section 16.4). Where two atoms meet in one variable the sizes of their join may
be known exactly; on skewed data they are far above the estimate, and correct it.

Averages hide a dense core: few facts that all belong to matches, among many that belong to none. Where the facts whose
values can match at all are known to be few, a join is looked at twice, over all facts and over the core, and the larger
estimate counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from typing import Protocol

from hdlog.program.model import Atom

_STARTS = 4
_MET, _SEARCHED = 0.03, 1.0
"""What looking at a candidate of a worst-case optimal step costs, where making a row costs 1: many in a row, or a few here
and there."""


class Statistics(Protocol):
    def rows(self, atom: Atom) -> float:
        """How many facts match an atom."""

    def distinct(self, atom: Atom, variable: str) -> float:
        """How many values a variable of an atom has among them."""

    def meeting(self, a: Atom, b: Atom, variable: str) -> float | None:
        """How many pairs of facts of two atoms agree in a variable, if that is known."""

    def core(self, atoms: Sequence[Atom]) -> list[tuple[float, dict[str, float]]] | None:
        """For each of some atoms that are joined, how many of its facts have only values that all atoms of their
        variables have, and how many values these are; None if that is not known."""


@dataclass(frozen=True, eq=False)
class Factor:
    """An atom or a view, as the estimates see it."""

    rows: float
    distinct: Mapping[str, float]
    skew: Mapping[str, float] = field(default_factory=dict)
    """for each variable, by how much the join of the factor with itself on it is larger than the estimate"""
    atom: Atom | None = None
    core: Factor | None = None
    """the part of it that can match, if that is small"""


@dataclass(eq=False, slots=True)
class _Part:
    """A factor with its variables as bits; the search for a tree asks about thousands of joins."""

    factor: Factor
    mask: int
    values: dict[int, float]
    """distinct values, at least one, by the bit of a variable"""

    def fan_out(self, bound: int) -> float:
        """Facts that a row meets that fixes the bound variables."""
        rows = self.factor.rows
        for bit, values in self.values.items():
            if bit & bound:
                rows /= values
        return rows


@dataclass
class Estimator:
    """Estimates over the factors of one rule; remembers how skewed each pair of atoms is."""

    statistics: Statistics | None
    _skew: dict[tuple[int, int, str], float] = field(default_factory=dict)
    _factors: dict[int, Factor] = field(default_factory=dict)
    _cores: dict[int, Factor] = field(default_factory=dict)
    _bits: dict[str, int] = field(default_factory=dict)
    _parts: dict[int, _Part] = field(default_factory=dict)
    _corrections: dict[tuple[int, int, int], float] = field(default_factory=dict)

    def factor(self, atom: Atom) -> Factor:
        """Atoms of one rule, which outlives the estimator, are told apart by where they are."""
        if id(atom) not in self._factors:
            self._factors[id(atom)] = self._factor(atom)
        return self._factors[id(atom)]

    def _factor(self, atom: Atom) -> Factor:
        assert self.statistics is not None
        rows = self.statistics.rows(atom)
        names = dict.fromkeys(v.name for v in atom.variables())
        distinct = {n: min(rows, self.statistics.distinct(atom, n)) for n in names}
        plain = Factor(rows, distinct, {}, atom)
        skew = {n: self._known_skew(plain, plain, n) for n in names}
        return Factor(rows, distinct, skew, atom, self._cores.get(id(atom)))

    def look_at_cores(self, atoms: Sequence[Atom], share: float) -> None:
        """From now on, count the larger of two estimates, if no more than a share of the facts of an atom can match."""
        assert self.statistics is not None
        assert not self._factors, "nothing was estimated yet"
        found = self.statistics.core(atoms)
        if found is None or not any(
            n < share * self.statistics.rows(a) for a, (n, _) in zip(atoms, found, strict=True)
        ):
            return
        for atom, (rows, distinct) in zip(atoms, found, strict=True):
            self._cores[id(atom)] = Factor(rows, distinct)

    def skew(self, a: Factor, b: Factor, variable: str) -> float:
        """By how much a join of two factors is larger than the estimate; hubs of the one are taken for hubs of the other."""
        if a.atom is None or b.atom is None:
            return sqrt(a.skew.get(variable, 1.0) * b.skew.get(variable, 1.0))
        return self._known_skew(a, b, variable)

    def _known_skew(self, a: Factor, b: Factor, variable: str) -> float:
        assert self.statistics is not None
        assert a.atom is not None
        assert b.atom is not None
        key = (id(a.atom), id(b.atom), variable)
        if key not in self._skew:
            exact = self.statistics.meeting(a.atom, b.atom, variable)
            estimate = a.rows * b.rows / max(a.distinct[variable], b.distinct[variable], 1.0)
            self._skew[key] = 1.0 if exact is None or not estimate else max(exact / estimate, 1e-6)
        return self._skew[key]

    def join_rows(self, factors: Sequence[Factor]) -> float:
        cores = _cores(factors)
        return max(self._join_rows(factors), self._join_rows(cores) if cores else 0.0)

    def _join_rows(self, factors: Sequence[Factor]) -> float:
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
        rows = self._join_rows(factors)
        cores = _cores(factors)
        core = self.projected(cores, columns) if cores else None
        distinct = {c: min([f.distinct[c] for f in factors if c in f.distinct] or [inf]) for c in columns}
        limit = 1.0
        for values in distinct.values():
            limit *= max(values, 1.0)
        rows = min(rows, limit)
        skew = {c: max([f.skew[c] for f in factors if c in f.skew] or [1.0]) for c in columns}
        return Factor(rows, {c: min(values, rows) for c, values in distinct.items()}, skew, core=core)

    def evaluation(
        self, factors: Sequence[Factor], columns: frozenset[str], meets: bool, most: float = inf
    ) -> tuple[float, float]:
        """What joining factors for some columns costs, greedily: from the best start, and from each on average.

        The first is for much at once, the second for changes here and there. If that is above `most` it is not worked out.
        """
        found = self._evaluation(factors, columns, meets, most)
        cores = _cores(factors)
        if not cores or found[1] == inf:
            return found
        inside = self._evaluation(cores, columns, meets, most, dense=True)
        return max(found[0], inside[0]), max(found[1], inside[1])

    def _evaluation(
        self,
        factors: Sequence[Factor],
        columns: frozenset[str],
        meets: bool,
        most: float,
        dense: bool = False,
    ) -> tuple[float, float]:
        best, pieces, once = inf if factors else 0.0, 0.0, 0.0
        starts = list(range(len(factors))) if dense else _spread_out(factors)
        for start in starts:
            rows, candidates = self.work_from(
                start, factors, columns, meets, most * len(starts) - pieces, dense
            )
            best = min(best, rows + _MET * candidates)
            once += rows + _MET * candidates
            pieces += rows + _SEARCHED * candidates
            if pieces > most * len(starts):
                return inf, inf
        # Where to start is decided later, by averages, and these do not see the core.
        return once / len(starts) if dense else best, pieces / max(1, len(starts))

    def work_from(
        self,
        start: int,
        factors: Sequence[Factor],
        columns: frozenset[str],
        meets: bool,
        most: float = inf,
        dense: bool = False,
    ) -> tuple[float, float]:
        """Rows made in joining factors from one of them on, and candidates looked at in worst-case optimal steps.

        What closes a cycle does so with a chance that supposes that values have nothing to do with each other. In a dense
        core they have: the chance there is taken half way, on a logarithmic scale, to certainty.
        """
        parts = [self._part(f) for f in factors]
        wanted = sum(self._bit(c) for c in columns)
        first = parts.pop(start)
        chosen, bound, least = [first], first.mask, dict(first.values)
        waiting = [(p, p.fan_out(bound)) for p in parts]
        total = rows = first.factor.rows
        candidates = 0.0
        while waiting and total <= most:
            best, fan = min(waiting, key=lambda w: (not w[0].mask & bound, w[1]))
            free = best.mask & ~bound
            together = [(best, fan)]
            if meets and free and not free & (free - 1):
                together = [w for w in waiting if w[0].mask & ~bound == free]
            lists = [length * self._correction(p, chosen, bound) for p, length in together]
            if dense and not free:
                lists = [sqrt(length) if length < 1 else length for length in lists]
            made = looked_at = rows * min(lists)
            if len(together) > 1:
                candidates += looked_at
                # Each of the other lists has a candidate with the chance that its length gives.
                values = max(p.values[free] for p, _ in together)
                for length in sorted(lists)[1:]:
                    chance = min(1.0, length / values)
                    made *= sqrt(chance) if dense else chance
            for part, _ in together:
                chosen.append(part)
                for bit, values in part.values.items():
                    if values < least.get(bit, inf):
                        least[bit] = values
            joined = {id(p) for p, _ in together}
            bound |= free
            waiting = [(p, _narrowed(p, f, free)) for p, f in waiting if id(p) not in joined]
            needed = wanted
            for part, _ in waiting:
                needed |= part.mask
            if len(together) > 1 and not free & needed:
                continue
            rows = made
            total += rows
            if meets and bound & ~needed:
                limit = 1.0
                for bit, values in least.items():
                    if bit & needed:
                        limit *= values
                rows = min(rows, limit)
        return total, candidates

    def _part(self, factor: Factor) -> _Part:
        if id(factor) not in self._parts:
            values = {self._bit(v): max(1.0, d) for v, d in factor.distinct.items()}
            self._parts[id(factor)] = _Part(factor, sum(values), values)
        return self._parts[id(factor)]

    def _bit(self, variable: str) -> int:
        return self._bits.setdefault(variable, 1 << len(self._bits))

    def _correction(self, part: _Part, chosen: Sequence[_Part], bound: int) -> float:
        """The skew of a join on a single variable."""
        shared = part.mask & bound
        if not shared or shared & (shared - 1):
            return 1.0
        found = 0.0
        for other in chosen:
            if other.mask & shared:
                key = (id(other), id(part), shared)
                if key not in self._corrections:
                    variable = next(v for v, bit in self._bits.items() if bit == shared)
                    self._corrections[key] = self.skew(other.factor, part.factor, variable)
                found = max(found, self._corrections[key])
        return found


def _cores(factors: Sequence[Factor]) -> list[Factor]:
    """The cores of factors; none if they have none."""
    found = [f.core for f in factors if f.core is not None]
    assert len(found) in (0, len(factors)), "all factors of a rule have a core, or none has"
    return found


def _narrowed(part: _Part, fan: float, free: int) -> float:
    """A fan-out, with some more variables bound."""
    if part.mask & free:
        for bit, values in part.values.items():
            if bit & free:
                fan /= values
    return fan


def _spread_out(factors: Sequence[Factor]) -> list[int]:
    """Factors to start from: all, or a few from the smallest to the largest; four tell enough."""
    ordered = sorted(range(len(factors)), key=lambda i: factors[i].rows)
    if len(ordered) <= _STARTS:
        return ordered
    return [ordered[i * (len(ordered) - 1) // (_STARTS - 1)] for i in range(_STARTS)]


def cost_from(start: int, factors: Sequence[Factor], columns: frozenset[str], meets: bool) -> float:
    """What joining factors costs of which nothing more is known, from one of them on."""
    rows, candidates = Estimator(None).work_from(start, factors, columns, meets)
    return rows + _MET * candidates


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
