"""What the planner asks about the facts, answered from the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Generic, Protocol

from hdlog.engines.protocol import Column, Core, Engine, F, R, T, Version
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

    def look_ahead(self, atoms: Sequence[Atom]) -> None:
        """Find out of all pairs of columns with the same variable how many facts agree: together that is less than one by one."""
        wanted: dict[Agreement, tuple[Column[F, T], Column[F, T]]] = {}
        for a, b in combinations_with_replacement(atoms, 2):
            for name in {v.name for v in a.variables()} & {v.name for v in b.variables()}:
                asked = self._agreement(a, b, name)
                if asked is not None and asked[0] not in self._pairs:
                    wanted[asked[0]] = asked[1]
        found = self.engine.agreeing_pairs(list(wanted.values()))
        self._pairs.update(zip(wanted, found, strict=True))

    def agreeing_pairs(self, a: Atom, b: Atom, variable: str) -> float | None:
        asked = self._agreement(a, b, variable)
        if asked is None:
            return None
        key, columns = asked
        if key not in self._pairs:
            (self._pairs[key],) = self.engine.agreeing_pairs([columns])
        return self._pairs[key]

    def _agreement(
        self, a: Atom, b: Atom, variable: str
    ) -> tuple[Agreement, tuple[Column[F, T], Column[F, T]]] | None:
        """What is to be found out of two atoms; None where that tells nothing."""
        if any(not isinstance(t, Variable) for t in (*a.terms, *b.terms)):
            return None
        first, second = sorted([(a.predicate, _column(a, variable)), (b.predicate, _column(b, variable))])
        x, y = ((self._version(p), column) for p, column in (first, second))
        most = self.numbers.without_hubs
        if all(self.engine.fan_out(version, (column,)) < most for version, column in (x, y)):
            return None
        return (*first, self.size(first[0]), *second, self.size(second[0])), (x, y)

    def core(self, atoms: Sequence[Atom]) -> Core | None:
        return self.engine.hints.core([(self._version(a.predicate), a.terms) for a in atoms])

    def _version(self, predicate: Predicate) -> Version[F, T]:
        table = self.kept.table(predicate)
        return Version(table, (self.pending[predicate],) if predicate in self.pending else ())


def _column(atom: Atom, variable: str) -> int:
    return next(i for i, t in enumerate(atom.terms) if isinstance(t, Variable) and t.name == variable)
