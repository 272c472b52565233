"""What plans of the embedded engine are made from, and what is worth while on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hdlog.engines.columnar.context import ColumnarVersion, Context, Source, runs_of, sources_of
from hdlog.engines.columnar.cores import core
from hdlog.engines.columnar.facts import Facts, Order, sum_facts
from hdlog.engines.columnar.kernels import Ids, Keys
from hdlog.engines.columnar.kernels.searching import agreeing_pairs
from hdlog.engines.columnar.relation import Relation
from hdlog.engines.columnar.table import Table
from hdlog.engines.protocol import Core, Hints, Version
from hdlog.program.terms import Term

_SPARSE = 4
"""Ids up to so many times as many as there are rows are counted in an array."""


class Statistics(Context):
    def fan_out(self, version: ColumnarVersion, bound: Sequence[int]) -> float:
        size = len(version.table) + sum(map(len, version.plus))
        if not size or not bound:
            return float(size)
        if len(bound) == version.table.arity:
            return 1.0 / (1 + size)
        largest = _find_largest(version)
        return float(len(largest) / max(1, largest.distinct(tuple(bound))))

    def agreeing_pairs(self, a: ColumnarVersion, i: int, b: ColumnarVersion, j: int) -> float:
        sides = [(_find_largest(version), column) for version, column in ((a, i), (b, j))]
        if not all(source.has_index(_order(source, column)) for source, column in sides):
            counted = self._count_agreeing(*(_column_of(source, column) for source, column in sides))
            if counted is not None:
                return counted
        return float(agreeing_pairs(*(_by_column(source, column) for source, column in sides)))

    def _count_agreeing(self, a: Ids, b: Ids) -> float | None:
        """By how often each id occurs, if counting that is faster than sorting."""
        if not len(a) or not len(b):
            return 0.0
        most = min(int(a.max()), int(b.max())) + 1
        if most > _SPARSE * (len(a) + len(b)):
            return None
        x, y = (np.bincount(c, minlength=most)[:most].astype(np.float64) for c in (a, b))
        return float((x * y).sum())  # no product of numpy's: its threads go on spinning after it

    def sum_of(self, version: ColumnarVersion) -> Facts:
        parts = [version.table.facts(), *version.plus, *(f.negate() for f in version.minus)]
        return sum_facts(parts, self.pairs, version.table.arity)


class ColumnarHints(Hints[Relation, Facts, Table]):
    def __init__(self, engine: Statistics) -> None:
        self.engine = engine

    def in_one_piece(self, version: ColumnarVersion) -> ColumnarVersion:
        if not version.plus and not version.minus and not version.table.dead:
            return version
        return Version(self.engine.table(version.table.arity), (self.engine.sum_of(version),))

    def was_empty(self, table: Table, added: Facts, removed: Facts) -> bool:
        return len(table) + len(removed) == len(added)

    def core(self, atoms: Sequence[tuple[ColumnarVersion, Sequence[Term]]]) -> Core:
        sides = []
        for version, terms in atoms:
            largest = _find_largest(version)
            sides.append((largest if isinstance(largest, Facts) else largest.largest_run(), terms))
        return core(sides, len(self.engine.dictionary), self.engine.encode)

    @property
    def counts_rows(self) -> bool:
        return True

    def is_counted(self, relation: Relation) -> bool:
        return True

    def known_rows(self, facts: Facts) -> int:
        return len(facts)

    def workers(self, changed: Iterable[Facts]) -> int:
        engine = self.engine
        return engine.threads if sum(map(len, changed)) >= engine.numbers.worth_threads else 1


def _order(source: Source, column: int) -> Order:
    return (column,), tuple(c for c in range(source.arity) if c != column)


def _by_column(source: Source, column: int) -> Keys:
    """The keys of most of a source, a column first."""
    runs = runs_of(source, _order(source, column))
    return max((keys for keys, *_ in runs), key=len, default=np.empty(0, np.uint64))


def _column_of(source: Source, column: int) -> Ids:
    """A column of most of a source."""
    facts = source if isinstance(source, Facts) else source.largest_run()
    return facts.columns()[column]


def _find_largest(version: ColumnarVersion) -> Source:
    return max(sources_of(version), key=len)
