"""Which tables a store has as they are, and which must be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hdlog.program.model import Predicate
from hdlog.store.store import Facts, Store


class Written:
    """Which tables are in a store as they are."""

    def __init__(self) -> None:
        self._versions: dict[Predicate, int] = {}

    def note(self, tables: Mapping[Predicate, Any]) -> None:
        self._versions = {p: t.version for p, t in tables.items()}

    def facts(
        self, store: Store, tables: Mapping[Predicate, Any], write: Callable[[Predicate, int, Any], Facts]
    ) -> tuple[Facts, ...]:
        """What the store has of each table: files that are there, or new ones for those that have changed."""
        numbers = store.number_predicates(p for p, t in tables.items() if len(t))
        stored = []
        for predicate, table in tables.items():
            old = store.manifest.of(predicate)
            if old is not None and self._versions.get(predicate) == table.version:
                stored.append(old)
            elif len(table):
                stored.append(write(predicate, numbers[predicate], table))
        self.note(tables)
        return tuple(stored)
