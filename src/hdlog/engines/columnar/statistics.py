"""What plans of the embedded engine are made from, and what is worth while on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.context import ColumnarVersion, Context, Source, runs_of, sources_of
from hdlog.engines.columnar.cores import core
from hdlog.engines.columnar.facts import Facts, Order, sum_facts
from hdlog.engines.columnar.kernels import Keys
from hdlog.engines.columnar.kernels.searching import agreeing_pairs
from hdlog.engines.columnar.relation import Relation
from hdlog.engines.columnar.table import Table
from hdlog.engines.protocol import Core, Hints, Version
from hdlog.program.terms import Term

_SPARSE = 4
"""Ids up to so many times as many as there are rows are counted in an array."""
_KEPT = 4_000_000
"""Ids up to which it is kept how often each occurs, for the next column that is compared."""
ColumnarColumn = tuple[ColumnarVersion, int]


class Statistics(Context):
    def fan_out(self, version: ColumnarVersion, bound: Sequence[int]) -> float:
        size = len(version.table) + sum(map(len, version.plus))
        if not size or not bound:
            return float(size)
        if len(bound) == version.table.arity:
            return 1.0 / (1 + size)
        largest = _find_largest(version)
        return float(len(largest) / max(1, largest.distinct(tuple(bound))))

    def agreeing_pairs(self, asked: Sequence[tuple[ColumnarColumn, ColumnarColumn]]) -> list[float]:
        known: dict[tuple[int, int], _Column] = {}

        def find(version: ColumnarVersion, column: int) -> _Column:
            source = _find_largest(version)
            return known.setdefault((id(source), column), _Column(source, column))

        sides = [(find(*a), find(*b)) for a, b in asked]
        return [a.pairs_with(b) for a, b in sides]

    def sum_of(self, version: ColumnarVersion) -> Facts:
        parts = [version.table.facts(), *version.plus, *(f.negate() for f in version.minus)]
        return sum_facts(parts, self.pairs, version.table.arity)


class _Column:
    """One column of most of a source, while it is compared with others."""

    def __init__(self, source: Source, column: int) -> None:
        self.source = source
        self.column = column
        self.is_indexed = source.has_index(_order(source, column))
        self._occurrences: NDArray[np.uint32] | None = None

    def keys(self) -> Keys:
        """The keys of most of the source, the column first."""
        runs = runs_of(self.source, _order(self.source, self.column))
        return max((keys for keys, *_ in runs), key=len, default=np.empty(0, np.uint64))

    def occurrences(self, rows: int) -> NDArray[np.uint32] | None:
        """How often each id occurs, if counting that is faster than sorting so many rows; kept unless it is large."""
        if self._occurrences is not None:
            return self._occurrences
        facts = self.source if isinstance(self.source, Facts) else self.source.largest_run()
        found = facts.count_occurrences(self.column, _SPARSE * rows)
        if found is not None and len(found) <= _KEPT:
            self._occurrences = found
        return found

    def pairs_with(self, other: _Column) -> float:
        """How many pairs of facts agree."""
        if not (self.is_indexed and other.is_indexed):
            rows = len(self.source) + len(other.source)
            a, b = self.occurrences(rows), other.occurrences(rows)
            if a is not None and b is not None:
                most = min(len(a), len(b))
                # No product of numpy's: its threads go on spinning after it.
                return float((a[:most].astype(np.float64) * b[:most]).sum())
        return float(agreeing_pairs(self.keys(), other.keys()))


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


def _find_largest(version: ColumnarVersion) -> Source:
    return max(sources_of(version), key=len)
