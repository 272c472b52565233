"""How literals change, and what evaluates rules over that: the terms in which maintenance speaks of a rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Generic, Protocol

from hdlog.engines.protocol import Engine, F, R, T, Version
from hdlog.maintenance.meters import Meter
from hdlog.plan.bodies import Read
from hdlog.program.model import Rule

Heads = Mapping[int, F]
"""Derivations by the number of the head, as multiplicities of its facts."""


class Change(Generic[F, T]):
    """How the facts of one literal change in a step: the difference, and the facts on either side of it.

    A step counts the derivations that use a fact of at least one `delta`. The literals before the one that uses it are matched
    `without` their deltas, those after it `including` them, so each derivation is counted once (the n + 1 evaluations of the paper).
    Counted are the derivations over `including` without those over `without`: the one is the other and `delta`.

    The sides are found when first asked for: a rule of one atom asks for neither.
    """

    def __init__(
        self, delta: F, without: Callable[[], Version[F, T]], including: Callable[[], Version[F, T]]
    ) -> None:
        self.delta = delta
        self._without = without
        self._including = including

    @cached_property
    def without(self) -> Version[F, T]:
        return self._without()

    @cached_property
    def including(self) -> Version[F, T]:
        return self._including()


Changes = Mapping[Read, Change[F, T]]
Versions = Mapping[Read, Version[F, T]]


class Module(Protocol[F, T]):
    """What a rule is evaluated by."""

    @property
    def rule(self) -> Rule: ...

    @property
    def meter(self) -> Meter: ...

    @property
    def reads(self) -> tuple[Read, ...]:
        """The literals it is evaluated over."""

    @property
    def sources(self) -> tuple[Read, ...]:
        """The literals of the rule's body; not the same where a module reads nodes."""

    def derive(self, changes: Changes[F, T]) -> Heads[F]:
        """r[I : Delta]: the derivations that use a changed fact."""

    def derive_all(self, versions: Versions[F, T]) -> Heads[F]:
        """r[I]: all derivations."""


def is_void(engine: Engine[R, F, T], version: Version[F, T]) -> bool:
    """Whether a version is known to be empty without looking: no facts, or all of them taken away."""
    if any(not engine.is_empty(facts) for facts in version.plus):
        return False
    return engine.size(version.table) == sum(map(engine.count, version.minus))
