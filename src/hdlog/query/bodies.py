"""Conjunctions of atoms, matched once over facts as they are: planned and decomposed as the body of a rule is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Generic

from hdlog.engines.protocol import F, R, T
from hdlog.maintenance.changes import Module
from hdlog.maintenance.meters import TooManyRows
from hdlog.maintenance.planning import make_module
from hdlog.maintenance.standard import StandardModule
from hdlog.maintenance.statistics import TableStatistics
from hdlog.plan.planner import RulePlan, may_multiply, plan_rule, plan_tree
from hdlog.program.model import Predicate, Rule
from hdlog.query.snapshot import Snapshot
from hdlog.tuning import Tuning

_KEPT = 1000
"""Plans that are kept for the next query of the same shape."""


@dataclass(frozen=True, eq=False)
class Planned(Generic[F, T]):
    plan: RulePlan
    module: Module[F, T]
    sizes: Mapping[Predicate, int]


class Bodies(Generic[R, F, T]):
    """Evaluates rules without recursion, negation or aggregates; a plan is made when it is first needed, and again when the facts have become
    many more or fewer."""

    def __init__(self, snapshot: Snapshot[R, F, T], tuning: Tuning) -> None:
        self.snapshot = snapshot
        self.tuning = tuning
        self.engine = snapshot.engine
        self._planned: dict[Rule, Planned[F, T]] = {}
        self.used: dict[Rule, Planned[F, T]] = {}
        """what was evaluated since somebody has looked"""

    def derive(self, rule: Rule, given: Mapping[Predicate, F]) -> F:
        """The facts of the head, each as often as it is derived; `given` are facts that only this query has."""
        planned = self.plan(rule, given)
        self.used[rule] = planned
        module = planned.module
        if self._may_multiply(planned):
            module.meter.reset(self._bound(planned.plan), partial(self._ask, rule, given))
        try:
            heads = self._derive(module, given)
        except TooManyRows:
            self.used[rule] = self._planned[rule]  # a tree, which was found to be better
            heads = self._derive(self.used[rule].module, given)
        finally:
            module.meter.reset()
        return heads.get(0, self.engine.no_facts(len(rule.heads[0].terms)))

    def _derive(self, module: Module[F, T], given: Mapping[Predicate, F]) -> Mapping[int, F]:
        return module.derive_all({read: self.snapshot.version(read[0], given) for read in module.sources})

    def plan(self, rule: Rule, given: Mapping[Predicate, F]) -> Planned[F, T]:
        statistics = self.statistics(given)
        sizes = {a.predicate: statistics.size(a.predicate) for a in rule.atoms()}
        known = self._planned.get(rule)
        if known is None or self._have_drifted(known.sizes, sizes):
            known = self._keep(plan_rule(rule, statistics, self.tuning, in_time=True), sizes)
        return known

    def statistics(self, given: Mapping[Predicate, F]) -> TableStatistics[R, F, T]:
        return TableStatistics(self.snapshot, given, self.tuning.numbers)

    def _keep(self, plan: RulePlan, sizes: Mapping[Predicate, int]) -> Planned[F, T]:
        if len(self._planned) >= _KEPT:
            self._planned.clear()
        made = self._planned[plan.rule] = Planned(plan, make_module(self.engine, plan, self.tuning), sizes)
        return made

    def _have_drifted(self, before: Mapping[Predicate, int], now: Mapping[Predicate, int]) -> bool:
        drift, floor = self.tuning.numbers.drift, self.tuning.numbers.drift_floor
        return any(n > drift * before[p] + floor or before[p] > drift * n + floor for p, n in now.items())

    # Joins that multiply, as in maintenance/revision.py: where they make many more rows than was thought a tree may be better.

    def _may_multiply(self, planned: Planned[F, T]) -> bool:
        rule, tuning = planned.plan.rule, self.tuning
        return (
            isinstance(planned.module, StandardModule)
            and tuning.method == "combined"
            and tuning.revision
            and self.engine.hints.counts_rows
            and may_multiply(rule)
        )

    def _bound(self, plan: RulePlan) -> float:
        estimate = plan.costs[0] if plan.costs is not None else 0.0
        return max(self.tuning.numbers.few_rows, self.tuning.numbers.patience * estimate)

    def _ask(self, rule: Rule, given: Mapping[Predicate, F], rows: int) -> float:
        tree = plan_tree(rule, self.statistics(given), self.tuning, False, rows)
        if tree is None:
            return self.tuning.numbers.patience * rows
        why = f"a join plan was about to make {rows:,} rows, and a tree looked cheaper"
        self._keep(tree.because(why), self._planned[rule].sizes)
        raise TooManyRows
