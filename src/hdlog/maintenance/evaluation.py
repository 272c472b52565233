"""Rules evaluated: what they derive, gathered by predicate; how long each took; which one an error came from."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Generic, TypeVar

from hdlog import interrupts
from hdlog.engines.protocol import Engine, F, R, T, Version
from hdlog.errors import HdlogError
from hdlog.maintenance.changes import Changes, Heads, Module
from hdlog.maintenance.nodes import Node
from hdlog.program.model import Predicate, Rule

if TYPE_CHECKING:
    from hdlog.maintenance.components import Component

Item = TypeVar("Item")
Result = TypeVar("Result")
Derive = Callable[[Module[F, T]], Heads[F]]


class Evaluation(Generic[R, F, T]):
    def __init__(self, engine: Engine[R, F, T]) -> None:
        self.engine = engine
        self.spent: dict[Rule, float] = defaultdict(float)
        """seconds, by rule and by the rule of a node"""
        self._derived: dict[tuple[Module[F, T], str], Heads[F]] = {}
        """in this update, by rules with several heads"""

    def begin(self) -> None:
        """A new update."""
        self._derived = {}

    def derivations(
        self,
        component: Component[R, F, T],
        modules: Sequence[Module[F, T]],
        what: str,
        derive: Derive[F, T],
        changed: Iterable[F] = (),
    ) -> dict[Predicate, F]:
        """What modules derive for the predicates of a component; `what` tells one question to a module from another."""
        if not modules:
            return {}

        def derive_once(module: Module[F, T]) -> Heads[F]:
            # A rule with heads in several components is evaluated for all of them when the first is reached. That is right where it
            # reads nothing of the component: what it reads is finished, for the others too.
            if len(module.rule.heads) == 1 or component.is_recursive(module):
                return self._guard(module, derive)
            if (module, what) not in self._derived:
                self._derived[(module, what)] = self._guard(module, derive)
            return self._derived[(module, what)]

        workers = self.engine.hints.workers(changed) if len(modules) > 1 else 1
        return self._gather(component, modules, _map(derive_once, modules, workers), workers)

    def changed_derivations(
        self, component: Component[R, F, T], modules: Sequence[Module[F, T]], changes: Changes[F, T]
    ) -> dict[Predicate, F]:
        """What modules derive from changed facts."""
        deltas = (change.delta for change in changes.values())
        return self.derivations(component, modules, "changes", lambda m: m.derive(changes), deltas)

    def all_derivations(
        self,
        component: Component[R, F, T],
        modules: Sequence[Module[F, T]],
        what: str,
        moment: Callable[[Predicate, bool], Version[F, T]],
        of_sources: bool = False,
    ) -> dict[Predicate, F]:
        """What modules derive at a moment, whatever has changed; of old moments only the sources are known."""

        def derive(module: Module[F, T]) -> Heads[F]:
            reads = module.sources if of_sources else module.reads
            return module.derive_all({read: moment(*read) for read in reads})

        return self.derivations(component, modules, what, derive)

    def node_rows(self, node: Node[R, F, T], changes: Changes[F, T]) -> F:
        """The rows that a node gains or loses."""
        with _Timed(self.spent, node.rule):
            return node.changed_rows(changes)

    def _guard(self, module: Module[F, T], derive: Derive[F, T]) -> Heads[F]:
        interrupts.check()
        with _Timed(self.spent, module.rule):
            return derive(module)

    def _gather(
        self,
        component: Component[R, F, T],
        modules: Sequence[Module[F, T]],
        results: Sequence[Heads[F]],
        workers: int,
    ) -> dict[Predicate, F]:
        parts: dict[Predicate, list[F]] = {}
        for module, heads in zip(modules, results, strict=True):
            for number, facts in heads.items():
                predicate = module.rule.heads[number].predicate
                if component.has(predicate):
                    parts.setdefault(predicate, []).append(facts)
        if all(len(several) == 1 for several in parts.values()):
            return {p: several[0] for p, several in parts.items()}
        sums = _map(lambda p: self.engine.plus(parts[p], p.arity), list(parts), workers)
        return dict(zip(parts, sums, strict=True))


class _Timed:
    """Notes the seconds that a rule takes, and tells of an error which rule it came from."""

    def __init__(self, spent: dict[Rule, float], rule: Rule) -> None:
        self.spent, self.rule = spent, rule

    def __enter__(self) -> None:
        self.started = time.perf_counter()

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        self.spent[self.rule] += time.perf_counter() - self.started
        if isinstance(error, HdlogError):
            place = f" ({self.rule.span})" if self.rule.span else ""
            heads = ", ".join(h.name for h in self.rule.heads)
            description = f"the rule for {heads} with {len(self.rule.body)} body items{place}"
            error.args = (f"while evaluating {description}:\n{error}",)


def _map(function: Callable[[Item], Result], items: Sequence[Item], workers: int) -> list[Result]:
    """The function of each item, on several threads if it is worth while; waits for all, whatever happens."""
    if workers < 2 or len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(workers, "hdlog-rules") as pool:
        futures = [pool.submit(function, item) for item in items]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
            wait(futures)


def plus_by_predicate(
    engine: Engine[R, F, T], parts: Sequence[Mapping[Predicate, F]], predicates: Iterable[Predicate]
) -> dict[Predicate, F]:
    """Facts of several kinds added up, predicate by predicate."""
    return {
        p: engine.plus([part[p] for part in parts if p in part], p.arity)
        for p in predicates
        if any(p in part for part in parts)
    }
