"""The decompositions in use: rules get them when the facts are there, and nodes are kept while a rule needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from hdlog.engines.protocol import FactSet
from hdlog.maintenance.hypertree import HypertreeModule
from hdlog.maintenance.module import Module
from hdlog.maintenance.nodes import Counts, Node
from hdlog.maintenance.standard import StandardModule
from hdlog.maintenance.state import State, Step
from hdlog.maintenance.statistics import TableStatistics
from hdlog.maintenance.views import ViewModule
from hdlog.plan.planner import RulePlan, plan_rule
from hdlog.plan.tuning import Tuning
from hdlog.program.model import Predicate, Rule

_DRIFT = 4
_FEW = 1000


class Decompositions:
    def __init__(self, state: State, tuning: Tuning) -> None:
        self.state = state
        self.tuning = tuning
        self.plans: dict[Rule, tuple[RulePlan, dict[Predicate, int]]] = {}
        """with how many facts each predicate of its body had when a rule was planned"""
        self.nodes: dict[Predicate, Node] = {}
        self._inner: dict[Predicate, bool] = {}
        """whether a node reads predicates of the component it is kept in"""
        self._visited: set[Predicate] = set()

    def begin(self) -> None:
        self._visited = set()

    def statistics(self, pending: Mapping[Predicate, FactSet]) -> TableStatistics:
        return TableStatistics(self.state, pending)

    def module(self, module: Module, statistics: TableStatistics, recursive: bool) -> Module:
        """What evaluates a rule: planned when its body first has facts, and again when they have become many more or
        fewer. A new tree takes over the nodes it shares with the old one."""
        if not isinstance(module, StandardModule | ViewModule | HypertreeModule) or len(module.sources) < 2:
            return module
        sizes = {p: statistics.size(p) for p, _ in module.sources}
        known = self.plans.get(module.rule)
        if not any(sizes.values()) or (known is not None and not _have_drifted(known[1], sizes)):
            return module
        plan = plan_rule(module.rule, statistics, self.tuning, recursive)
        before = known[0] if known else None
        self.plans[module.rule] = (plan, sizes)
        if before is not None and (before.method, before.roots) == (plan.method, plan.roots):
            return module
        if plan.method == "standard":
            return StandardModule(self.state.engine, module.rule, self.tuning)
        kind = ViewModule if plan.covers_are_views else HypertreeModule
        return kind(self.state.engine, plan, self.tuning)

    def forget(self, modules: Iterable[Module]) -> None:
        for module in modules:
            self.plans.pop(module.rule, None)

    def finished_nodes(self, step: Step) -> Iterator[Node]:
        """The nodes of a step's rules that read nothing of its component, before their rules; each once in an update."""
        for node in self._nodes_of(step):
            if not self._is_inner(node, step) and node.predicate not in self._visited:
                self._visited.add(node.predicate)
                if node.predicate not in self.nodes or (
                    self._inner[node.predicate] and self.state.touches(node)
                ):
                    self._build(node, inner=False)
                yield self.nodes[node.predicate]

    def inner_nodes(self, step: Step) -> tuple[Node, ...]:
        """The nodes of a step's rules that read predicates of its component."""
        found = []
        for node in self._nodes_of(step):
            if self._is_inner(node, step):
                self._visited.add(node.predicate)
                if not self._inner.get(node.predicate, False):
                    self._build(node, inner=True)
                found.append(self.nodes[node.predicate])
        return tuple(found)

    def _is_inner(self, node: Node, step: Step) -> bool:
        return any(step.has(p) for p, _ in node.sources)

    def _nodes_of(self, step: Step) -> Sequence[Node]:
        found: dict[Predicate, Node] = {}
        for module in (*step.kept, *step.fresh):
            for node in nodes_of(module):
                found.setdefault(node.predicate, node)
        return list(found.values())

    def _build(self, node: Node, inner: bool) -> None:
        """Fill a node from what held before the update."""
        engine, predicate = self.state.engine, node.predicate
        rows = node.all({key: self.state.old(*key) for key in node.reads})
        if node.counted:
            if predicate not in self.nodes:
                view = self.state.views[predicate] = Counts(engine, predicate.arity)
                view.runs = () if engine.is_empty(rows) else (rows,)
        else:
            table = self.state.tables[predicate] = engine.table(predicate.arity)
            if inner or not self.tuning.counting:
                engine.grow(table, rows, "recursive")
            else:
                engine.settle(table, engine.no_facts(predicate.arity), rows)
        self.nodes[predicate] = node
        self._inner[predicate] = inner

    def settle(self, modules: Iterable[Module]) -> None:
        """The update is over; nodes that no rule uses go."""
        for view in self.state.views.values():
            view.settle()
        used = {node.predicate for module in modules for node in nodes_of(module)}
        for predicate in [p for p in self.nodes if p not in used]:
            del self.nodes[predicate], self._inner[predicate]
            self.state.views.pop(predicate, None)
            self.state.tables.pop(predicate, None)

    def saved(self) -> Callable[[], None]:
        """How to return to what is there now."""
        state = self.state
        plans, nodes, inner = dict(self.plans), dict(self.nodes), dict(self._inner)
        views = {p: (view, view.runs) for p, view in state.views.items()}
        tables = {p: state.tables[p] for p in nodes if p in state.tables}

        def restore() -> None:
            for predicate in self.nodes.keys() - nodes.keys():
                state.tables.pop(predicate, None)
            self.plans, self.nodes, self._inner = plans, nodes, inner
            state.views = {p: view for p, (view, _) in views.items()}
            for view, runs in views.values():
                view.runs, view.changes, view.finished = runs, (), False
            state.tables.update(tables)

        return restore


def nodes_of(module: Module) -> tuple[Node, ...]:
    return module.nodes if isinstance(module, ViewModule | HypertreeModule) else ()


def _have_drifted(before: Mapping[Predicate, int], now: Mapping[Predicate, int]) -> bool:
    return any(n > _DRIFT * before[p] + _FEW or before[p] > _DRIFT * n + _FEW for p, n in now.items())
