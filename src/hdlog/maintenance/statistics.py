"""What the planner asks about the facts, answered from the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hdlog.engines.protocol import Engine, FactSet, Version
from hdlog.maintenance.state import State
from hdlog.program.model import Atom, Predicate
from hdlog.program.terms import Variable

_UNIQUE = 1.05
"""Facts to a value, on average, up to which a column is taken for one without hubs."""


class TableStatistics:
    """Rows and distinct values of the tables, and of facts that are about to be asserted."""

    def __init__(self, state: State, pending: Mapping[Predicate, FactSet]) -> None:
        self.state = state
        self.engine: Engine = state.engine
        self.pending = pending
        self._meetings: dict[tuple[Predicate, int, Predicate, int], float] = {}

    def size(self, predicate: Predicate) -> int:
        version = self._version(predicate)
        return self.engine.size(version.table) + sum(map(self.engine.count, version.plus))

    def rows(self, atom: Atom) -> float:
        fixed = [i for i, t in enumerate(atom.terms) if not isinstance(t, Variable)]
        return self.engine.fan_out(self._version(atom.predicate), fixed) if atom.terms else 1.0

    def distinct(self, atom: Atom, variable: str) -> float:
        version = self._version(atom.predicate)
        column = _column(atom, variable)
        size = self.engine.fan_out(version, ())
        return size / max(self.engine.fan_out(version, (column,)), 1e-9) if len(atom.terms) > 1 else size

    def meeting(self, a: Atom, b: Atom, variable: str) -> float | None:
        if any(not isinstance(t, Variable) for t in (*a.terms, *b.terms)):
            return None
        first, second = sorted([(a.predicate, _column(a, variable)), (b.predicate, _column(b, variable))])
        versions = [(self._version(p), column) for p, column in (first, second)]
        if all(self.engine.fan_out(version, (column,)) < _UNIQUE for version, column in versions):
            return None
        key = (*first, *second)
        if key not in self._meetings:
            (x, i), (y, j) = versions
            self._meetings[key] = self.engine.meeting(x, i, y, j)
        return self._meetings[key]

    def core(self, atoms: Sequence[Atom]) -> list[tuple[float, dict[str, float]]] | None:
        return self.engine.core([(self._version(a.predicate), a.terms) for a in atoms])

    def _version(self, predicate: Predicate) -> Version:
        table = self.state.table(predicate)
        return Version(table, (self.pending[predicate],) if predicate in self.pending else ())


def _column(atom: Atom, variable: str) -> int:
    return next(i for i, t in enumerate(atom.terms) if isinstance(t, Variable) and t.name == variable)
