"""By what each rule is evaluated, decided in one place: when its component is reached, from the facts that are there by then.

A tree that a rule gets needs its nodes: they are filled from what held before the update, and kept while a rule uses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic

from hdlog.engines.protocol import Engine, F, R, T
from hdlog.maintenance.aggregation import AggregateModule
from hdlog.maintenance.changes import Module
from hdlog.maintenance.components import Component, Step, nodes_of
from hdlog.maintenance.hypertree import HypertreeModule
from hdlog.maintenance.materialisation import Materialisation, drop_noted, set_noted
from hdlog.maintenance.moments import Moments
from hdlog.maintenance.nodes import Node
from hdlog.maintenance.standard import StandardModule
from hdlog.maintenance.statistics import Agreement, TableStatistics
from hdlog.maintenance.views import ViewModule
from hdlog.plan.planner import RulePlan, is_aggregate, may_multiply, plan_aggregate, plan_joins, plan_rule
from hdlog.plan.written import Sizes, WrittenPlans
from hdlog.program.model import Predicate, Rule
from hdlog.tuning import Tuning


@dataclass(frozen=True, eq=False)
class Planned(Generic[F, T]):
    """How a rule is evaluated: by a module, and, once its body has had facts, by which plan and for how many of them."""

    module: Module[F, T]
    plan: RulePlan | None = None
    sizes: Sizes | None = None
    bound: float = 0.0
    """rows that its joins may make before a tree is looked for, as they were the better way when one was"""

    @property
    def written(self) -> RulePlan | None:
        """What a store keeps of it: an aggregate has a plan before its body has facts."""
        return self.module.plan if isinstance(self.module, AggregateModule) else self.plan


class Planning(Generic[R, F, T]):
    def __init__(self, kept: Materialisation[R, F, T], tuning: Tuning) -> None:
        self.kept = kept
        self.engine: Engine[R, F, T] = kept.engine
        self.tuning = tuning
        self.rules: dict[Rule, Planned[F, T]] = {}
        self.nodes: dict[Predicate, Node[R, F, T]] = {}
        """those that are kept"""
        self._inner: dict[Predicate, bool] = {}
        """whether a node reads predicates of the component it is kept in"""
        self._visited: set[Predicate] = set()
        """nodes that this update has come to"""
        self._pairs: dict[Agreement, float] = {}
        """what this update has found out of pairs of facts that agree"""
        self._may_go_over: dict[Rule, bool] = {}
        """as far as somebody has asked"""
        self._has_changed = False
        """whether a rule is gone, or evaluated in another way, since unused nodes were dropped"""

    def begin(self) -> None:
        """A new update."""
        self._visited = set()
        self._pairs = {}

    def set_rules(self, rules: Iterable[Rule]) -> None:
        """The rules there are from now on; those that stay are evaluated as before."""
        self.engine.note(partial(setattr, self, "rules", self.rules))
        self.rules = {rule: self.rules.get(rule) or Planned(self._module(rule)) for rule in rules}
        self._may_go_over = {}
        self._has_changed = True

    # Kept in a store.

    def list_plans(self) -> WrittenPlans:
        """How rules are evaluated, as far as that has been decided."""
        plans = [(planned.written, planned.sizes) for planned in self.rules.values()]
        inner = tuple(p for p, is_inner in self._inner.items() if is_inner)
        return WrittenPlans(tuple((plan, sizes) for plan, sizes in plans if plan is not None), inner)

    def have_changed_since(self, before: WrittenPlans | None) -> bool:
        """Whether rules are evaluated otherwise than was listed."""
        now = self.list_plans()
        if before is None or len(now.plans) != len(before.plans) or now.inner != before.inner:
            return True
        return any(a[0] is not b[0] for a, b in zip(now.plans, before.plans, strict=True))

    def restore(self, written: WrittenPlans) -> None:
        """Evaluate rules as was decided before. The source of the tables has what their nodes keep."""
        for plan, sizes in written.plans:
            planned = self.rules.get(plan.rule)
            if planned is None:
                continue
            rule = planned.module.rule  # which knows where it was read
            plan = replace(plan, rule=rule)
            module = (
                planned.module if plan.method == "standard" and not plan.nodes else self.make_module(plan)
            )
            self.rules[rule] = Planned(module, plan, sizes)
            for node in nodes_of(module):
                if node.predicate not in self.nodes:
                    self.nodes[node.predicate] = node
                    self._inner[node.predicate] = node.predicate in written.inner
                    if node.counted:
                        self.kept.restore_view(node.predicate)

    def _module(self, rule: Rule) -> Module[F, T]:
        if is_aggregate(rule):
            return self.make_module(plan_aggregate(rule, None, self.tuning))
        return StandardModule(self.engine, rule, self.tuning)

    def statistics(self, pending: Mapping[Predicate, F]) -> TableStatistics[R, F, T]:
        return TableStatistics(self.kept, pending, self.tuning.numbers, self._pairs)

    def plan(
        self,
        step: Step,
        fresh: frozenset[Rule],
        gone: Sequence[Module[F, T]],
        pending: Mapping[Predicate, F],
    ) -> Component[R, F, T]:
        """The component with its rules evaluated as the facts make it best by now."""
        statistics = self.statistics(pending)
        for rule in step.rules:
            self._plan_rule(rule, statistics, step.is_recursive(rule))
        modules = [self.rules[rule].module for rule in step.rules]
        leaving = tuple(m for m in gone if any(h.predicate in step.members for h in m.rule.heads))
        # Aggregates are always counted: they are no monotone functions of what they read.
        counted = self.tuning.counting or step.has_aggregates
        return Component(
            step.predicates,
            tuple(m for m in modules if m.rule not in fresh),
            leaving,
            tuple(m for m in modules if m.rule in fresh),
            uncounted=not counted and not any(isinstance(m, AggregateModule) for m in leaving),
        )

    def _plan_rule(self, rule: Rule, statistics: TableStatistics[R, F, T], recursive: bool) -> None:
        """Planned when its body first has facts, and again when they have become many more or fewer. A new tree takes over the
        nodes it shares with the old one."""
        planned = self.rules[rule]
        sources = planned.module.sources
        if len(sources) < 2:
            return
        sizes = {p: statistics.size(p) for p, _ in sources}
        if not any(sizes.values()):
            return
        if recursive and self.may_go_over(rule):
            # What its facts will be nobody knows yet; it begins where it risks least.
            if planned.plan is None:
                why = "recursive: a join plan as long as that makes few rows"
                set_noted(self.engine, self.rules, rule, Planned(planned.module, plan_joins(rule, why)))
            return
        if planned.sizes is not None and not self._have_drifted(planned.sizes, sizes):
            return
        plan = plan_rule(rule, statistics, self.tuning, recursive, in_time=self.is_revisable(rule))
        before = planned.plan
        same = before is not None and (before.method, before.roots) == (plan.method, plan.roots)
        module = planned.module if same else self.make_module(plan)
        set_noted(self.engine, self.rules, rule, Planned(module, plan, sizes))
        self._has_changed = self._has_changed or not same

    def is_revisable(self, rule: Rule) -> bool:
        """Whether a rule may be evaluated in another way when it turns out to cost more than was thought."""
        if is_aggregate(rule):
            return False
        method = rule.method or self.tuning.method
        return method == "combined" and self.tuning.revision and self.engine.hints.counts_rows

    def may_go_over(self, rule: Rule) -> bool:
        """Whether a join plan for a rule may turn out to be worse than a tree."""
        known = self._may_go_over.get(rule)
        if known is None:
            known = self._may_go_over[rule] = self.is_revisable(rule) and may_multiply(rule)
        return known

    def find_bound(self, rule: Rule) -> float:
        """Rows that the joins of a rule may make because no tree was better when they had made as many, over facts like these."""
        planned = self.rules[rule]
        if planned.sizes is None or self._have_drifted(planned.sizes, self.find_sizes(rule)):
            return 0.0
        return planned.bound

    def keep_bound(self, rule: Rule, bound: float) -> None:
        """For the updates to come."""
        planned = replace(self.rules[rule], bound=bound, sizes=self.find_sizes(rule))
        set_noted(self.engine, self.rules, rule, planned)

    def find_sizes(self, rule: Rule) -> dict[Predicate, int]:
        """How many facts the predicates of a body have by now."""
        return {p: self.engine.size(self.kept.table(p)) for p, _ in self.rules[rule].module.sources}

    def change_module(self, rule: Rule, module: Module[F, T], plan: RulePlan) -> None:
        """In the midst of an update."""
        set_noted(self.engine, self.rules, rule, Planned(module, plan, self.find_sizes(rule)))
        self._has_changed = True

    def find_users(self, predicate: Predicate) -> list[Rule]:
        """The rules over trees with a node."""
        return [
            rule
            for rule, planned in self.rules.items()
            if any(node.predicate == predicate for node in nodes_of(planned.module))
        ]

    def make_standard(self, rule: Rule) -> StandardModule[R, F, T]:
        return StandardModule(self.engine, rule, self.tuning)

    def make_module(self, plan: RulePlan) -> Module[F, T]:
        return make_module(self.engine, plan, self.tuning)

    def _have_drifted(self, before: Mapping[Predicate, int], now: Mapping[Predicate, int]) -> bool:
        drift, floor = self.tuning.numbers.drift, self.tuning.numbers.drift_floor
        return any(n > drift * before[p] + floor or before[p] > drift * n + floor for p, n in now.items())

    # Nodes.

    @staticmethod
    def is_inner(node: Node[R, F, T], component: Component[R, F, T]) -> bool:
        return any(component.has(p) for p, _ in node.sources)

    def add_view(self, node: Node[R, F, T], rows: F) -> None:
        """Keep a view that reads predicates of the component which is being evaluated."""
        self._visited.add(node.predicate)
        self.kept.add_view(node.predicate, rows)
        set_noted(self.engine, self.nodes, node.predicate, node)
        set_noted(self.engine, self._inner, node.predicate, True)
        self._has_changed = True

    def finished_nodes(
        self, component: Component[R, F, T], moments: Moments[R, F, T]
    ) -> Iterator[Node[R, F, T]]:
        """The nodes of a component's rules that read nothing of it, before their rules; each once in an update."""
        for node in _nodes(component):
            if not self.is_inner(node, component) and node.predicate not in self._visited:
                stale = self._inner.get(node.predicate, False) and moments.touches(node)
                if node.predicate not in self.nodes or stale:
                    self._fill(node, moments, inner=False)
                self._visited.add(node.predicate)  # not before: filling it may turn out to be too much
                yield self.nodes[node.predicate]

    def inner_nodes(
        self, component: Component[R, F, T], moments: Moments[R, F, T]
    ) -> tuple[Node[R, F, T], ...]:
        """The nodes of a component's rules that read predicates of it."""
        inner = []
        for node in _nodes(component):
            if self.is_inner(node, component):
                if not self._inner.get(node.predicate, False):
                    self._fill(node, moments, inner=True)
                self._visited.add(node.predicate)
                inner.append(self.nodes[node.predicate])
        return tuple(inner)

    def _fill(self, node: Node[R, F, T], moments: Moments[R, F, T], inner: bool) -> None:
        """Fill a node from what held before the update."""
        engine, predicate = self.engine, node.predicate
        if not node.counted or predicate not in self.nodes:
            rows = node.all_rows({read: moments.find_old(*read) for read in node.reads})
        if node.counted:
            if predicate not in self.nodes:
                self.kept.add_view(predicate, rows)
        else:
            table = engine.table(predicate.arity)
            self.kept.set_table(predicate, table)
            if inner or not self.tuning.counting:
                engine.grow(table, rows, "recursive")
            else:
                engine.recount(table, engine.no_facts(predicate.arity), rows)
        set_noted(engine, self.nodes, predicate, node)
        set_noted(engine, self._inner, predicate, inner)
        self._has_changed = True

    def give_back(self, predicates: Iterable[Predicate]) -> None:
        """Views that are brought up to date later, after all."""
        for predicate in predicates:
            self._visited.discard(predicate)
            set_noted(self.engine, self._inner, predicate, False)

    def drop_unused(self) -> list[Predicate]:
        """Nodes that no rule uses go; which."""
        if not self._has_changed:
            return []
        self._has_changed = False
        used = {node.predicate for planned in self.rules.values() for node in nodes_of(planned.module)}
        unused = [p for p in self.nodes if p not in used]
        self.kept.drop(unused)
        for predicate in unused:
            drop_noted(self.engine, self.nodes, predicate)
            drop_noted(self.engine, self._inner, predicate)
        self._visited.difference_update(unused)
        return unused


def make_module(engine: Engine[R, F, T], plan: RulePlan, tuning: Tuning) -> Module[F, T]:
    """What evaluates a rule as its plan has it."""
    if is_aggregate(plan.rule):
        return AggregateModule(engine, plan, tuning)
    if plan.method == "standard":
        return StandardModule(engine, plan.rule, tuning)
    kind = ViewModule if plan.covers_are_views else HypertreeModule
    return kind(engine, plan, tuning)


def _nodes(component: Component[R, F, T]) -> Sequence[Node[R, F, T]]:
    by_predicate: dict[Predicate, Node[R, F, T]] = {}
    for module in (*component.kept, *component.fresh):
        for node in nodes_of(module):
            by_predicate.setdefault(node.predicate, node)
    return list(by_predicate.values())
