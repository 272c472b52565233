"""What the planner asks about the facts, answered from the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, Protocol

from hdlog.engines.protocol import Core, Engine, F, R, T, Version
from hdlog.program.model import Atom, Predicate
from hdlog.program.terms import Variable
from hdlog.tuning import Numbers

Agreement = tuple[Predicate, int, int, Predicate, int, int]
"""Two columns: predicates, columns, and how many facts there are."""


class TableLookup(Protocol[R, F, T]):
    """Where the tables are."""

    @property
    def engine(self) -> Engine[R, F, T]: ...

    def table(self, predicate: Predicate) -> T: ...


class TableStatistics(Generic[R, F, T]):
    """Rows and distinct values of the tables, and of facts that are about to be asserted."""

    def __init__(
        self,
        kept: TableLookup[R, F, T],
        pending: Mapping[Predicate, F],
        numbers: Numbers,
        pairs: dict[Agreement, float] | None = None,
    ) -> None:
        """`pairs`: how many agree, as far as others have asked before."""
        self.kept = kept
        self.engine = kept.engine
        self.pending = pending
        self.numbers = numbers
        self._pairs = {} if pairs is None else pairs

    def size(self, predicate: Predicate) -> int:
        version = self._version(predicate)
        return self.engine.size(version.table) + sum(map(self.engine.count, version.plus))

    def rows(self, atom: Atom) -> float:
        fixed = [i for i, t in enumerate(atom.terms) if not isinstance(t, Variable)]
        return self.engine.fan_out(self._version(atom.predicate), fixed) if atom.terms else 1.0

    def distinct(self, atom: Atom, variable: str) -> float:
        version = self._version(atom.predicate)
        size = self.engine.fan_out(version, ())
        if len(atom.terms) < 2:
            return size
        return size / max(self.engine.fan_out(version, (_column(atom, variable),)), 1e-9)

    def agreeing_pairs(self, a: Atom, b: Atom, variable: str) -> float | None:
        if any(not isinstance(t, Variable) for t in (*a.terms, *b.terms)):
            return None
        first, second = sorted([(a.predicate, _column(a, variable)), (b.predicate, _column(b, variable))])
        sides = [(self._version(p), column) for p, column in (first, second)]
        most = self.numbers.without_hubs
        if all(self.engine.fan_out(version, (column,)) < most for version, column in sides):
            return None
        key = (*first, self.size(first[0]), *second, self.size(second[0]))
        if key not in self._pairs:
            (x, i), (y, j) = sides
            self._pairs[key] = self.engine.agreeing_pairs(x, i, y, j)
        return self._pairs[key]

    def core(self, atoms: Sequence[Atom]) -> Core | None:
        return self.engine.hints.core([(self._version(a.predicate), a.terms) for a in atoms])

    def _version(self, predicate: Predicate) -> Version[F, T]:
        table = self.kept.table(predicate)
        return Version(table, (self.pending[predicate],) if predicate in self.pending else ())


def _column(atom: Atom, variable: str) -> int:
    return next(i for i, t in enumerate(atom.terms) if isinstance(t, Variable) and t.name == variable)
