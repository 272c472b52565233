"""The gate between a store and an engine: tables and terms of the one in the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from hdlog.program.model import Predicate

T = TypeVar("T")
"""tables of the engine"""


class Gate(Protocol[T]):
    """An engine's own; ids are those of the store on the one side, and of the engine on the other."""

    def find(self, predicate: Predicate) -> T | None:
        """The table of a predicate, as the store has it; None for one it does not know."""

    def holds(self, predicate: Predicate) -> bool:
        """Whether a predicate has facts."""

    def sizes(self) -> Mapping[Predicate, int]:
        """How many facts each predicate of the store has."""

    def save(self, tables: Mapping[Predicate, T]) -> dict[str, Any]:
        """Write what has changed in tables since they were found or saved; the fields of the manifest that change by it."""

    def compact(self) -> dict[str, Any]:
        """Write everything anew, each fact once; likewise."""

    def settle(self) -> None:
        """What was saved is the store's newest version now."""
