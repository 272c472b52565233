"""Rules evaluated: what they derive, gathered by predicate; how long each took; which one an error came from."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from hdlog import interrupts
from hdlog.engines.protocol import Engine, F, R, T, Version
from hdlog.errors import HdlogError
from hdlog.maintenance.changes import Changes, Heads, Module
from hdlog.maintenance.meters import TooManyRows
from hdlog.program.model import Predicate, Rule

if TYPE_CHECKING:
    from hdlog.maintenance.components import Component

Item = TypeVar("Item")
Result = TypeVar("Result")
Moment = Literal["changes", "old", "new", "lasting"]
"""What a rule with several heads was evaluated for."""


class Evaluation(Generic[R, F, T]):
    def __init__(self, engine: Engine[R, F, T]) -> None:
        self.engine = engine
        self.spent: dict[Rule, float] = defaultdict(float)
        """seconds, by rule and by the rule of a node"""
        self.yielded: dict[Rule, int] = defaultdict(int)
        """facts that rules derived in this update, where the engine knows"""
        self._derived: dict[tuple[Module[F, T], Moment], Heads[F]] = {}
        """in this update, by rules with several heads"""

    def begin(self) -> None:
        """A new update."""
        self._derived = {}
        self.yielded.clear()

    def derive_changes(
        self,
        component: Component[R, F, T],
        modules: Sequence[Module[F, T]],
        changes: Changes[F, T],
        deltas: Iterable[F],
        otherwise: Callable[[Module[F, T]], Heads[F]],
    ) -> dict[Predicate, F]:
        """r[I : Delta]: what modules derive from changed facts for the predicates of a component.

        `otherwise` says what a module derives whose rule had better be evaluated in another way.
        """
        workers = self.engine.hints.workers(deltas) if len(modules) > 1 else 1
        results = _map(lambda m: self._derive(component, m, changes), modules, workers)
        return self._gather(
            component,
            modules,
            [self._finish(m, r, otherwise) for m, r in zip(modules, results, strict=True)],
            workers,
        )

    def _finish(
        self, module: Module[F, T], heads: Heads[F] | None, otherwise: Callable[[Module[F, T]], Heads[F]]
    ) -> Heads[F]:
        if heads is None:
            with Timed(self.spent, module.rule):
                heads = otherwise(module)
        if self.engine.hints.counts_rows:
            self.yielded[module.rule] += sum(map(self.engine.hints.known_rows, heads.values()))
        return heads

    def _derive(
        self, component: Component[R, F, T], module: Module[F, T], changes: Changes[F, T]
    ) -> Heads[F] | None:
        """None where that turned out to be too much."""
        interrupts.check()
        # A rule with heads in several components is evaluated for all of them when the first is reached. That is right where it
        # reads nothing of the component: what it reads is finished, for the others too.
        alone = len(module.rule.heads) == 1 or component.is_recursive(module)
        if not alone and (module, "changes") in self._derived:
            return self._derived[(module, "changes")]
        try:
            with Timed(self.spent, module.rule):
                heads = module.derive(changes)
        except TooManyRows:
            return None
        if not alone:
            self._derived[(module, "changes")] = heads
        return heads

    def derive_all(
        self,
        component: Component[R, F, T],
        modules: Sequence[Module[F, T]],
        moment: Moment,
        find: Callable[[Predicate, bool], Version[F, T]],
        of_sources: bool = False,
    ) -> dict[Predicate, F]:
        """r[I]: what modules derive at a moment, whatever has changed; of old moments only the sources are known."""
        results = []
        for module in modules:
            interrupts.check()
            if (module, moment) not in self._derived:
                reads = module.sources if of_sources else module.reads
                with Timed(self.spent, module.rule), module.meter.paused():
                    heads = module.derive_all({read: find(*read) for read in reads})
                if len(module.rule.heads) == 1 or component.is_recursive(module):
                    results.append(heads)
                    continue
                self._derived[(module, moment)] = heads
            results.append(self._derived[(module, moment)])
        return self._gather(component, modules, results)

    def _gather(
        self,
        component: Component[R, F, T],
        modules: Sequence[Module[F, T]],
        results: Sequence[Heads[F]],
        workers: int = 1,
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


class Timed:
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
