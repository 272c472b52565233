"""The driver: an update visits the components in topological order, and is all or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from typing import Generic

from hdlog.engines.protocol import Engine, F, R, Support, T, Version
from hdlog.maintenance.changes import Module
from hdlog.maintenance.components import Component, Schedule, Step
from hdlog.maintenance.counting import count, count_view
from hdlog.maintenance.dred import Run, dred
from hdlog.maintenance.evaluation import Evaluation
from hdlog.maintenance.materialisation import Materialisation
from hdlog.maintenance.meters import TooManyRows
from hdlog.maintenance.moments import Moments, NetChange
from hdlog.maintenance.nodes import Node
from hdlog.maintenance.planning import Planning
from hdlog.maintenance.revision import Revision
from hdlog.maintenance.trace import Trace
from hdlog.plan.written import WrittenPlans
from hdlog.program.dependencies import DependencyGraph
from hdlog.program.model import Predicate, Program, Rule
from hdlog.tuning import Tuning


class Driver(Generic[R, F, T]):
    """Keeps the materialisation of a normal program exact."""

    def __init__(
        self, engine: Engine[R, F, T], trace: Trace | None = None, tuning: Tuning | None = None
    ) -> None:
        self.engine = engine
        self.trace = trace or Trace()
        self.trace.announce = engine.hints.announce
        self.tuning = tuning or Tuning()
        self.kept = Materialisation(engine)
        self.planning = Planning(self.kept, self.tuning)
        self.evaluation = Evaluation(engine)
        self.revision = Revision(self.planning, self.evaluation)
        self.schedule = Schedule(())

    def update(
        self, added: Mapping[Predicate, F], removed: Mapping[Predicate, F]
    ) -> dict[Predicate, NetChange[F]]:
        """Assert and retract facts, within a transaction; the exact net change of each predicate that changed."""
        new = self.schedule.add_predicates((*added, *removed))
        self.engine.note(partial(self.schedule.drop_last, new))
        return self._visit(self._sign(added, removed))

    def change_rules(self, program: Program) -> dict[Predicate, NetChange[F]]:
        """Take another normal program for the one there is, within a transaction."""
        before, old = dict(self.planning.rules), self.schedule
        self.engine.note(partial(setattr, self, "schedule", old))
        rules = dict.fromkeys(program.rules)
        gone = [planned.module for rule, planned in before.items() if rule not in rules]
        fresh = frozenset(rule for rule in rules if rule not in before)
        self.planning.set_rules(rules)
        self.schedule = Schedule(self._components(program, gone))
        self._reclassify(old, gone)
        return self._visit({}, fresh, gone)

    def adopt(self, program: Program, plans: WrittenPlans | None = None) -> None:
        """Take a normal program whose materialisation the tables have, or will be filled with: nothing is evaluated."""
        assert not self.planning.rules, "only a driver without rules takes over"
        self.planning.set_rules(program.rules)
        if plans is not None:
            self.planning.restore(plans)
        self.schedule = Schedule(self._components(program, []))

    def _visit(
        self,
        asserted: Mapping[Predicate, F],
        fresh: frozenset[Rule] = frozenset(),
        gone: Sequence[Module[F, T]] = (),
    ) -> dict[Predicate, NetChange[F]]:
        """Bring the components that something reaches up to date, in topological order."""
        self.trace.start(len(self.schedule.steps))
        self.planning.begin()
        self.evaluation.begin()
        self.revision.begin()
        moments = Moments(self.kept, self.tuning.numbers)
        touched = [h.predicate for rule in (*fresh, *(m.rule for m in gone)) for h in rule.heads]
        alone = [] if gone else [p for p in asserted if self.schedule.stands_alone(p)]
        self._take_alone(alone, asserted, moments)
        others = (p for p in asserted if p not in moments.net)
        waiting = sorted({self.schedule.step_of[p] for p in (*others, *touched)})
        reached = set(waiting)
        while waiting:
            number = heappop(waiting)
            step = self.schedule.steps[number]
            here = {p: asserted[p] for p in step.predicates if p in asserted}
            self.trace.component(number + 1, tuple(p.name for p in step.predicates))
            if step.rules or gone:
                component = self.planning.plan(step, fresh, gone, here)
                self.revision.watch(component)
                component = self._prepare_nodes(component, moments)
            else:
                component = Component(step.predicates, ())
            if component.recursive:
                dred(Run(component, moments, self.evaluation, self.trace, self.revision), here)
            else:
                count(component, moments, self.evaluation, here, self.revision)
                came = sum(self.engine.count(moments.net[p].added) for p in step.predicates)
                self.trace.round("count", came)
            for predicate in filter(moments.has_changed, step.predicates):
                for reader in self.schedule.readers(predicate):
                    if reader not in reached:
                        reached.add(reader)
                        heappush(waiting, reader)
        moments.absorb_views()
        self.planning.drop_unused()
        self.trace.finish()
        return {p: net for p, net in moments.net.items() if not net.is_empty}

    def _take_alone(
        self, predicates: Sequence[Predicate], asserted: Mapping[Predicate, F], moments: Moments[R, F, T]
    ) -> None:
        """Assertions that no rule sees; an ontology has thousands of such predicates."""
        if not predicates:
            return
        self.trace.component(1, tuple(p.name for p in predicates))
        count(Component(tuple(predicates), ()), moments, self.evaluation, asserted, self.revision)
        self.trace.round("count", sum(self.engine.count(moments.net[p].added) for p in predicates))

    def _prepare_nodes(self, component: Component[R, F, T], moments: Moments[R, F, T]) -> Component[R, F, T]:
        """Have the nodes of its rules: those over finished predicates up to date, the others with what they had before."""
        while True:
            try:
                for node in self.planning.finished_nodes(component, moments):
                    self._maintain_node(node, moments)
                return replace(component, nodes=self.planning.inner_nodes(component, moments))
            except TooManyRows:
                component = self.revision.leave_trees(component, moments)

    def _maintain_node(self, node: Node[R, F, T], moments: Moments[R, F, T]) -> None:
        if node.counted:
            count_view(node, moments, self.evaluation)
            return
        component = Component[R, F, T]((node.predicate,), (node,), uncounted=not self.tuning.counting)
        if component.recursive:
            silent = Trace()
            silent.start(1)
            silent.component(1, (node.predicate.name,))
            dred(Run(component, moments, self.evaluation, silent, self.revision), {})
        else:
            count(component, moments, self.evaluation, {}, self.revision)

    def _sign(self, added: Mapping[Predicate, F], removed: Mapping[Predicate, F]) -> dict[Predicate, F]:
        """E- := (E- in E) \\ E+ with -1, E+ := E+ \\ E with +1."""
        engine = self.engine
        given = [(p, facts) for side in (added, removed) for p, facts in side.items()]
        engine.hints.look_ahead([(self.kept.table(p), facts) for p, facts in given])
        signed = {}
        for p in dict.fromkeys((*added, *removed)):
            table = self.kept.table(p)
            total = come = added[p] if p in added else engine.no_facts(p.arity)
            if p in added and engine.size(table):
                total = engine.minus(come, engine.select_asserted(table, come))
            if p in removed:
                go = engine.select_asserted(table, engine.minus(removed[p], come))
                total = engine.plus([total, engine.negate(go)], p.arity)
            total = engine.keep(total)
            if not engine.is_empty(total):
                signed[p] = total
        return signed

    def _components(self, program: Program, gone: Sequence[Module[F, T]]) -> list[Step]:
        steps = [
            Step(c.predicates, tuple(dict.fromkeys(program.rules[n] for n in c.rules)))
            for c in DependencyGraph(program).components
        ]
        known = {p for step in steps for p in step.predicates}
        tables = [p for p in self.kept.tables if p not in self.planning.nodes]
        others = dict.fromkeys((*tables, *(h.predicate for m in gone for h in m.rule.heads)))
        return [*(Step((p,), ()) for p in others if p not in known), *steps]

    def _reclassify(self, old: Schedule, gone: Sequence[Module[F, T]]) -> None:
        """Move supports between the two kinds where a rule has become recursive, or is so no more."""
        before = {
            (rule, h.predicate): self._counts_as_recursive(step, rule)
            for step in old.steps
            for rule in step.rules
            for h in rule.heads
            if h.predicate in step.members
        }
        leaving: dict[Predicate, list[Rule]] = {}
        for module in gone:
            for head in module.rule.heads:
                leaving.setdefault(head.predicate, []).append(module.rule)
        modules = {module.rule: module for module in gone} | {
            rule: planned.module for rule, planned in self.planning.rules.items()
        }
        for step in self.schedule.steps:
            there = dict.fromkeys(r for p in step.predicates for r in leaving.get(p, ()))
            whole = replace(step, rules=(*step.rules, *there)) if there else step
            for rule in whole.rules:
                now = self._counts_as_recursive(whole, rule)
                for number, head in enumerate(rule.heads):
                    was = before.get((rule, head.predicate))
                    if head.predicate in step.members and was is not None and was is not now:
                        self._move(modules[rule], number, head.predicate, now)

    def _counts_as_recursive(self, step: Step, rule: Rule) -> bool:
        """Whether the derivations by a rule are recursive support."""
        return step.is_recursive(rule) or not (self.tuning.counting or step.has_aggregates)

    def _move(self, module: Module[F, T], number: int, predicate: Predicate, to_recursive: bool) -> None:
        reads = module.sources
        with module.meter.paused():
            derived = module.derive_all({read: Version(self.kept.table(read[0])) for read in reads})
        if number in derived:
            table, facts = self.kept.table(predicate), derived[number]
            source: Support = "nonrecursive" if to_recursive else "recursive"
            target: Support = "recursive" if to_recursive else "nonrecursive"
            self.engine.adjust(table, self.engine.negate(facts), source)
            self.engine.adjust(table, facts, target)
