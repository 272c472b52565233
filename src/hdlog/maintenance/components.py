"""Components of a program in an update: which rules they have, which come and go, and by what they are evaluated now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic

from hdlog.engines.protocol import F, R, T
from hdlog.maintenance.aggregation import AggregateModule
from hdlog.maintenance.changes import Module
from hdlog.maintenance.hypertree import HypertreeModule
from hdlog.maintenance.nodes import Node
from hdlog.maintenance.views import ViewModule
from hdlog.plan.bodies import Read
from hdlog.program.model import Aggregate, Predicate, Rule, body_atoms


@dataclass(frozen=True)
class Step:
    """A component as the program has it: its predicates, and the rules with a head among them."""

    predicates: tuple[Predicate, ...]
    rules: tuple[Rule, ...]

    @cached_property
    def members(self) -> frozenset[Predicate]:
        return frozenset(self.predicates)

    @cached_property
    def has_aggregates(self) -> bool:
        return any(isinstance(item, Aggregate) for rule in self.rules for item in rule.body)

    @cached_property
    def _recursive(self) -> frozenset[Rule]:
        return frozenset(
            rule for rule in self.rules if any(a.predicate in self.members for a, _ in body_atoms(rule.body))
        )

    def is_recursive(self, rule: Rule) -> bool:
        return rule in self._recursive


class Schedule:
    """The steps of a program, in topological order, and which of them read a predicate."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.steps: list[Step] = []
        self.step_of: dict[Predicate, int] = {}
        """the number of the step that a predicate belongs to"""
        self._readers: dict[Predicate, list[int]] = {}
        for step in steps:
            self.append(step)

    def append(self, step: Step) -> None:
        number = len(self.steps)
        self.steps.append(step)
        self.step_of |= dict.fromkeys(step.predicates, number)
        for predicate in {a.predicate for rule in step.rules for a, _ in body_atoms(rule.body)}:
            self._readers.setdefault(predicate, []).append(number)

    def readers(self, predicate: Predicate) -> Sequence[int]:
        """The numbers of the steps that read a predicate."""
        return self._readers.get(predicate, ())

    def stands_alone(self, predicate: Predicate) -> bool:
        """Whether no rule derives a predicate or reads it."""
        return not self.steps[self.step_of[predicate]].rules and predicate not in self._readers

    def add_predicates(self, predicates: Iterable[Predicate]) -> int:
        """Have a step for each predicate, also for those that no rule names; how many steps are new."""
        before = len(self.steps)
        for predicate in predicates:
            if predicate not in self.step_of:
                self.append(Step((predicate,), ()))
        return len(self.steps) - before

    def drop_last(self, count: int) -> None:
        """Without the last steps, of predicates that no rule names."""
        for _ in range(count):
            for predicate in self.steps.pop().predicates:
                del self.step_of[predicate]


@dataclass(frozen=True, eq=False)
class Component(Generic[R, F, T]):
    """A component as it is evaluated in an update."""

    predicates: tuple[Predicate, ...]
    kept: tuple[Module[F, T], ...]
    gone: tuple[Module[F, T], ...] = ()
    fresh: tuple[Module[F, T], ...] = ()
    nodes: tuple[Node[R, F, T], ...] = ()
    """nodes that read predicates of the component, children first"""
    uncounted: bool = False
    """whether all rules are treated as recursive ones"""

    @cached_property
    def members(self) -> frozenset[Predicate]:
        return frozenset(self.predicates)

    @cached_property
    def inner(self) -> frozenset[Predicate]:
        return frozenset(node.predicate for node in self.nodes)

    @cached_property
    def _recursive(self) -> frozenset[Module[F, T]]:
        every = (*self.kept, *self.gone, *self.fresh)
        return frozenset(m for m in every if self.uncounted or any(p in self.members for p, _ in m.sources))

    @property
    def recursive(self) -> bool:
        return bool(self._recursive)

    def is_recursive(self, module: Module[F, T]) -> bool:
        """Whether a body atom belongs to this very component."""
        return module in self._recursive

    def select(self, modules: Iterable[Module[F, T]], recursive: bool) -> list[Module[F, T]]:
        return [m for m in modules if (m in self._recursive) is recursive]

    def change_modules(self, modules: Mapping[Module[F, T], Module[F, T]]) -> Component[R, F, T]:
        """With other modules for some rules."""
        kept = tuple(modules.get(m, m) for m in self.kept)
        return replace(self, kept=kept, fresh=tuple(modules.get(m, m) for m in self.fresh))

    def has(self, predicate: Predicate) -> bool:
        return predicate in self.members


_WITH_NODES = (ViewModule, HypertreeModule, AggregateModule)


def nodes_of(module: Module[Any, Any]) -> Sequence[Node[Any, Any, Any]]:
    """The nodes of what a rule is evaluated over."""
    return module.nodes if isinstance(module, _WITH_NODES) else ()


def literals_of(modules: Iterable[Module[F, T]]) -> dict[Read, None]:
    """The literals that modules read, each once."""
    return dict.fromkeys(read for module in modules for read in module.reads)
