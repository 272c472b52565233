"""What queries read: the tables of a materialisation as they are, and facts that only the query has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic

from hdlog.engines.protocol import Engine, F, R, T, Version
from hdlog.maintenance.materialisation import Materialisation
from hdlog.program.model import Predicate
from hdlog.program.normalise import is_auxiliary


class Snapshot(Generic[R, F, T]):
    """The facts of predicates; nothing is changed, and nothing made for predicates that are not there."""

    def __init__(self, kept: Materialisation[R, F, T]) -> None:
        self._kept = kept
        self.engine: Engine[R, F, T] = kept.engine
        self._empty: dict[int, T] = {}

    def table(self, predicate: Predicate) -> T:
        table = self._kept.find(predicate)
        if table is None:
            if predicate.arity not in self._empty:
                self._empty[predicate.arity] = self.engine.table(predicate.arity)
            table = self._empty[predicate.arity]
        return table

    def version(self, predicate: Predicate, given: Mapping[Predicate, F]) -> Version[F, T]:
        """The facts of a predicate: those that are `given` are facts of the query."""
        if predicate in given:
            return self.of_facts(given[predicate], predicate.arity)
        return Version(self.table(predicate))

    def of_facts(self, facts: F, arity: int) -> Version[F, T]:
        return Version(self.engine.table(arity), (facts,))

    def has(self, predicate: Predicate) -> bool:
        """Whether a predicate has facts."""
        table = self._kept.find(predicate)
        return table is not None and self.engine.size(table) > 0

    def sizes(self) -> dict[Predicate, int]:
        """How many facts each predicate has that a user knows."""
        return {p: n for p, n in self._kept.sizes().items() if n and not is_auxiliary(p.name)}
