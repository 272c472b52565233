"""What a join will cost, from row counts and distinct values: the textbook estimates.

Rows of a join: the product of the rows, divided, for each variable, by all but the smallest of its numbers of distinct
values (Garcia-Molina, Ullman, Widom, section 16.4). Where two atoms meet in one variable the sizes of their join may
be known exactly; on skewed data they are far above the estimate, and correct it.

Averages hide a dense core: few facts that all belong to matches, among many that belong to none. Where the facts whose
values can match at all are known to be few, a join is looked at twice, over all facts and over the core, and the larger
estimate counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import inf, prod, sqrt
from typing import NamedTuple, Protocol

from hdlog.plan.bodies import repeated_names
from hdlog.plan.work import Book
from hdlog.program.model import Atom
from hdlog.tuning import Numbers


class Statistics(Protocol):
    def rows(self, atom: Atom) -> float:
        """How many facts match an atom."""

    def distinct(self, atom: Atom, variable: str) -> float:
        """How many values a variable of an atom has among them."""

    def agreeing_pairs(self, a: Atom, b: Atom, variable: str) -> float | None:
        """How many pairs of facts of two atoms agree in a variable, if that is known."""

    def look_ahead(self, atoms: Sequence[Atom]) -> None:
        """It is about to be asked for the pairs of all of these."""

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


class Operand(Protocol):
    """A side of a join, its variables as bits."""

    @property
    def mask(self) -> int: ...

    @property
    def repeated(self) -> int:
        """Those of its variables that occur in it more than once, and so cannot be met."""

    @property
    def rows(self) -> float: ...

    @property
    def values(self) -> Mapping[int, float]:
        """Distinct values, at least one, by the bit of a variable."""

    def fan_out(self, bound: int) -> float:
        """Facts that a row meets that fixes the bound variables."""

    def narrow(self, fan: float, bound: int, more: int) -> float:
        """The fan-out when more variables are bound, from what it was before."""


class Taken(NamedTuple):
    """A step of a greedy join: the factors that are joined at once, and what is estimated of that."""

    factors: tuple[int, ...]
    made: float
    """rows"""
    looked_at: float
    """candidates of a worst-case optimal step"""
    counted: bool
    """whether the new variable is only counted, so that no rows are made"""


def greedy_order(
    operands: Sequence[Operand],
    start: int | None,
    wanted: int,
    meets: bool,
    bind: Callable[[int], int] = int,
) -> Iterator[Taken]:
    """The greedy order of a join, from one of the operands on, or from nothing.

    The next operand is the one with the smallest fan-out among those that share a variable with what is bound; another only if
    none does. If the join `meets`, all operands with the same one new variable are joined at once: a worst-case optimal step, whose
    work is the shortest list of candidates of each row. The variables `wanted` are asked for in the end; one that nothing asks for
    any more is added up, so that no more rows are left than what is asked for has values. `bind` says which variables are bound if
    some are, because values follow from them.

    The search for a tree has this loop compiled (`plan/work.py`).
    """
    chosen: list[Operand] = []
    bound, rows = 0, 1.0
    if start is not None:
        chosen, bound, rows = [operands[start]], operands[start].mask, operands[start].rows
    bound = bind(bound)
    waiting = [(n, o, o.fan_out(bound)) for n, o in enumerate(operands) if n != start]
    while waiting:
        best = min(waiting, key=lambda w: (not w[1].mask & bound, w[2]))
        free = best[1].mask & ~bound
        together = [best]
        if meets and free and not free & (free - 1) and not best[1].repeated & free:
            together = [w for w in waiting if w[1].mask & ~bound == free and not w[1].repeated & free]
        lists = sorted(length for _, _, length in together)
        made = looked_at = rows * lists[0]
        if len(together) > 1:
            # Each of the other lists has a candidate with the chance that its length gives.
            values = max(o.values[free] for _, o, _ in together)
            for length in lists[1:]:
                made *= min(1.0, length / values)
        chosen += [o for _, o, _ in together]
        joined = {n for n, _, _ in together}
        more = bind(bound | free) & ~bound
        bound |= more
        waiting = [(n, o, o.narrow(f, bound, more)) for n, o, f in waiting if n not in joined]
        needed = wanted
        for _, operand, _ in waiting:
            needed |= operand.mask
        counted = len(together) > 1 and not free & needed
        yield Taken(tuple(sorted(joined)), made, looked_at, counted)
        if not counted:
            rows = min(made, _values_of(chosen, needed)) if meets and bound & ~needed else made


def _values_of(operands: Sequence[Operand], mask: int) -> float:
    """How many combinations of values some variables have, at most."""
    least: dict[int, float] = {}
    for operand in operands:
        for bit, values in operand.values.items():
            if bit & mask:
                least[bit] = min(values, least.get(bit, inf))
    return prod(least.values())


@dataclass
class Estimator:
    """Estimates over the factors of one rule; remembers how skewed each pair of atoms is."""

    statistics: Statistics | None
    numbers: Numbers = field(default_factory=Numbers)
    _skew: dict[tuple[int, int, str], float] = field(default_factory=dict)
    _factors: dict[int, Factor] = field(default_factory=dict)
    _cores: dict[int, Factor] = field(default_factory=dict)
    _variables: dict[str, int] = field(default_factory=dict)
    """numbered"""
    _book: Book | None = None
    _numbers: dict[int, tuple[int, Factor]] = field(default_factory=dict)
    """of factors in the book"""

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
        cores = self.statistics.core(atoms)
        if cores is None or not any(
            n < share * self.statistics.rows(a) for a, (n, _) in zip(atoms, cores, strict=True)
        ):
            return
        for atom, (rows, distinct) in zip(atoms, cores, strict=True):
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
            exact = self.statistics.agreeing_pairs(a.atom, b.atom, variable)
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

    def project(self, factors: Sequence[Factor], columns: frozenset[str]) -> Factor:
        """The join of factors, projected to some columns, as a factor."""
        rows = self._join_rows(factors)
        cores = _cores(factors)
        core = self.project(cores, columns) if cores else None
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
        costs = self._evaluation(factors, columns, meets, most)
        cores = _cores(factors)
        if not cores or costs[1] == inf:
            return costs
        inside = self._evaluation(cores, columns, meets, most, dense=True)
        return max(costs[0], inside[0]), max(costs[1], inside[1])

    def _evaluation(
        self,
        factors: Sequence[Factor],
        columns: frozenset[str],
        meets: bool,
        most: float,
        dense: bool = False,
    ) -> tuple[float, float]:
        """What closes a cycle does so with a chance that supposes that values have nothing to do with each other. In a `dense` core they
        have: the chance there is taken half way, on a logarithmic scale, to certainty."""
        if not factors:
            return 0.0, 0.0
        starts = list(range(len(factors))) if dense else self._choose_starts(factors)
        wanted = sum(1 << self._variables[name] for name in columns if name in self._variables)
        book = self._open_book()
        members = [self._number(book, factor) for factor in factors]
        return book.evaluate(
            members, starts, wanted, meets, most, dense, self.numbers.met, self.numbers.searched
        )

    def _open_book(self) -> Book:
        """What is known of factors, those of atoms first."""
        if self._book is None:
            atoms = list(self._factors.values())
            for factor in atoms:
                for name in factor.distinct:
                    self._variables.setdefault(name, len(self._variables))
            self._book = Book(len(atoms), len(self._variables))
            for factor in atoms:
                self._number(self._book, factor)
            for (a, x), (b, y) in product(enumerate(atoms), repeat=2):
                for name in x.distinct.keys() & y.distinct.keys():
                    self._book.pairs[a, b, self._variables[name]] = self._known_skew(x, y, name)
        return self._book

    def _number(self, book: Book, factor: Factor) -> int:
        known = self._numbers.get(id(factor))
        if known is not None:
            return known[0]
        values = {self._variables[name]: max(1.0, d) for name, d in factor.distinct.items()}
        repeated = repeated_names(factor.atom) if factor.atom is not None else ()
        number = book.add(
            factor.rows,
            values,
            sum(1 << self._variables[name] for name in repeated),
            {self._variables[name]: skew for name, skew in factor.skew.items()},
        )
        self._numbers[id(factor)] = (number, factor)
        return number

    def _choose_starts(self, factors: Sequence[Factor]) -> list[int]:
        """Factors to start from: all, or a few from the smallest to the largest."""
        ordered = sorted(range(len(factors)), key=lambda i: factors[i].rows)
        most = self.numbers.starts
        if len(ordered) <= most:
            return ordered
        return [ordered[i * (len(ordered) - 1) // (most - 1)] for i in range(most)]


def _cores(factors: Sequence[Factor]) -> list[Factor]:
    """The cores of factors; none if they have none."""
    cores = [f.core for f in factors if f.core is not None]
    assert len(cores) in (0, len(factors)), "all factors of a rule have a core, or none has"
    return cores


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
