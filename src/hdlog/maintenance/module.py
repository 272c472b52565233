"""What a component's rules are evaluated by: one module per rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from hdlog.engines.protocol import Engine, FactSet, Version
from hdlog.program.model import Predicate, Rule


@dataclass(frozen=True)
class Change:
    """How one literal's facts change in a step: the difference, and the facts on either side of it.

    In a step, derivations are counted that use a fact of at least one `delta`. The literals before the one
    that uses it are matched in `first`, those after it in `second`, so each derivation is counted once. What is counted is
    the derivations in `second` without those in `first`: `second` is `first` and `delta`.
    """

    delta: FactSet
    first: Version
    second: Version


class LaterChange:
    """A change whose sides are found when first asked for: a rule of one atom asks for neither."""

    def __init__(self, delta: FactSet, first: Callable[[], Version], second: Callable[[], Version]) -> None:
        self.delta = delta
        self._first = first
        self._second = second

    @cached_property
    def first(self) -> Version:
        return self._first()

    @cached_property
    def second(self) -> Version:
        return self._second()


Changes = Mapping[tuple[Predicate, bool], Change | LaterChange]
"""By predicate and whether the literal is positive."""


class Module(Protocol):
    rule: Rule
    reads: tuple[tuple[Predicate, bool], ...]
    """the literals it is evaluated over: predicate, and whether positive"""
    sources: tuple[tuple[Predicate, bool], ...]
    """the literals of the rule's body; not the same where a module reads nodes"""

    def derive(self, changes: Changes) -> Mapping[int, FactSet]:
        """Per head number the derivations that use a changed fact, as multiplicities of the head facts."""

    def derive_all(self, versions: Mapping[tuple[Predicate, bool], Version]) -> Mapping[int, FactSet]:
        """Per head number all derivations."""


def is_void(engine: Engine, version: Version) -> bool:
    """Whether a version is known to be empty without looking: no facts, or all of them taken away."""
    if any(not engine.is_empty(facts) for facts in version.plus):
        return False
    return engine.size(version.table) == sum(map(engine.count, version.minus))
