"""The gate between a store and an engine: facts and terms of the one in the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from hdlog.program.model import Predicate
from hdlog.store.store import Facts, File

F_co = TypeVar("F_co", covariant=True)
"""facts of the engine"""
T_contra = TypeVar("T_contra", contravariant=True)
"""tables of the engine"""


class Gate(Protocol[F_co, T_contra]):
    """An engine's own; ids are those of the store on the one side, and of the engine on the other."""

    def read_terms(self, files: Sequence[File], skolem_files: Sequence[File]) -> None:
        """Have the engine know the terms in some files."""

    def read_facts(self, facts: Iterable[Facts]) -> Mapping[Predicate, F_co]:
        """Facts of the store, to be given to the engine as new ones."""

    def fill(self, tables: Mapping[Predicate, T_contra]) -> None:
        """Put the snapshot, with its supports, into empty tables."""

    def save(self, tables: Mapping[Predicate, T_contra]) -> dict[str, Any]:
        """Write what has changed in the tables; the fields of the manifest that change by it."""
