"""The gate between a store and an engine: tables and terms of the one in the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hdlog.engines.protocol import F, T
from hdlog.maintenance.materialisation import View
from hdlog.plan.written import UnreadablePlans, WrittenPlans, read_plans
from hdlog.program.model import Predicate
from hdlog.store.store import Store


class Gate(Protocol[F, T]):
    """An engine's own; ids are those of the store on the one side, and of the engine on the other."""

    def find(self, predicate: Predicate) -> T | None:
        """The table of a predicate, as the store has it; None for one it does not know."""

    def find_runs(self, predicate: Predicate) -> tuple[F, ...]:
        """The rows of a view, as the store has them."""

    def holds(self, predicate: Predicate) -> bool:
        """Whether a predicate has facts."""

    def sizes(self) -> Mapping[Predicate, int]:
        """How many facts each predicate of the store has."""

    def plans(self) -> WrittenPlans | None:
        """How rules are evaluated; None where the engine decides that anew."""

    def save(
        self,
        tables: Mapping[Predicate, T],
        views: Mapping[Predicate, View[F, T]],
        plans: WrittenPlans | None,
    ) -> dict[str, Any]:
        """Write what has changed in tables and views since they were found or saved, and plans, if they have; the fields of the
        manifest that change by it."""

    def compact(self) -> dict[str, Any]:
        """Write everything anew, each fact once; likewise."""

    def settle(self) -> None:
        """What was saved is the store's newest version now."""


def stored_plans(store: Store) -> WrittenPlans | None:
    """What a store says of how its rules are evaluated."""
    file = store.manifest.plans
    if file is None:
        return None
    try:
        return read_plans(store.read(file).to_pybytes())
    except UnreadablePlans:
        return None
