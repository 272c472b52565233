"""The driver: an update visits the components in topological order, and is all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from hdlog.engines.protocol import Engine, FactSet
from hdlog.maintenance.aggregation import AggregateModule
from hdlog.maintenance.counting import count, count_view
from hdlog.maintenance.decompositions import Decompositions
from hdlog.maintenance.dred import DRed
from hdlog.maintenance.module import Module
from hdlog.maintenance.nodes import Node
from hdlog.maintenance.standard import StandardModule
from hdlog.maintenance.state import NetChange, State, Step
from hdlog.maintenance.trace import Trace
from hdlog.plan.tuning import Tuning
from hdlog.program.dependencies import DependencyGraph
from hdlog.program.model import Aggregate, Predicate, Program, Rule

Steps = tuple[Step, ...]
T = TypeVar("T")


class Driver:
    """Keeps the materialisation of a core program exact."""

    def __init__(self, engine: Engine, trace: Trace | None = None, tuning: Tuning | None = None) -> None:
        self.engine = engine
        self.trace = trace or Trace()
        self.tuning = tuning or Tuning()
        self.state = State(engine)
        self.modules: dict[Rule, Module] = {}
        self.steps: Steps = ()
        self.decompositions = Decompositions(self.state, self.tuning)
        self._depth = 0

    def update(
        self, added: Mapping[Predicate, FactSet], removed: Mapping[Predicate, FactSet]
    ) -> dict[Predicate, NetChange]:
        """Assert and retract facts; the exact net change of each predicate that changed."""
        return self.whole(lambda: self._run(self._steps_with(added), self._signed(added, removed)))

    def change_rules(self, program: Program) -> dict[Predicate, NetChange]:
        """Take another core program for the one there is."""
        modules = {rule: self.modules.get(rule) or self._module(rule) for rule in program.rules}
        gone = [m for rule, m in self.modules.items() if rule not in modules]
        fresh = [m for rule, m in modules.items() if rule not in self.modules]

        def run() -> dict[Predicate, NetChange]:
            old, self.modules = self.steps, modules
            self.steps = self._components(program, gone)
            changing = tuple(self._changing(step, gone, fresh) for step in self.steps)
            self.decompositions.forget(gone)
            self._reclassify(old, changing)
            return self._run(changing, {})

        return self.whole(run)

    def _changing(self, step: Step, gone: list[Module], fresh: list[Module]) -> Step:
        leaving = tuple(m for m in gone if any(step.has(h.predicate) for h in m.rule.heads))
        return replace(
            step,
            kept=tuple(m for m in step.kept if m not in fresh),
            fresh=tuple(m for m in step.kept if m in fresh),
            gone=leaving,
            uncounted=step.uncounted and not any(isinstance(m, AggregateModule) for m in leaving),
        )

    def whole(self, run: Callable[[], T]) -> T:
        """All of what `run` changes or, after any error or interrupt, nothing of it; may be nested."""
        if self._depth:
            return run()
        steps, modules = self.steps, dict(self.modules)
        restore = self.decompositions.saved()
        self.engine.begin()
        self._depth += 1
        try:
            result = run()
        except BaseException:
            self.engine.roll_back()
            self.state.forget_update()
            self.steps, self.modules = steps, modules
            restore()
            raise
        finally:
            self._depth -= 1
        self.engine.commit()
        return result

    def _run(self, steps: Steps, asserted: Mapping[Predicate, FactSet]) -> dict[Predicate, NetChange]:
        self.trace.start(len(steps))
        self.state.forget_update()
        self.decompositions.begin()
        for step in steps:
            here = {p: asserted[p] for p in step.predicates if p in asserted}
            if not here and not step.gone and not step.fresh and not self._touches(step):
                continue
            self.trace.component(tuple(p.name for p in step.predicates))
            step = self._planned(step, here)
            for node in self.decompositions.finished_nodes(step):
                self._update_node(node)
            self._update_step(replace(step, nodes=self.decompositions.inner_nodes(step)), here)
        self.decompositions.settle(self.modules.values())
        self.state.derived, self.state.flat = {}, {}
        return {p: n for p, n in self.state.net.items() if not n.is_empty}

    def _planned(self, step: Step, asserted: Mapping[Predicate, FactSet]) -> Step:
        """The step with its rules evaluated as the facts make it best by now."""
        statistics = self.decompositions.statistics(asserted)
        for module in (*step.kept, *step.fresh):
            self.modules[module.rule] = self.decompositions.module(
                self.modules[module.rule], statistics, step.is_recursive(module)
            )
        return replace(
            step,
            kept=tuple(self.modules[m.rule] for m in step.kept),
            fresh=tuple(self.modules[m.rule] for m in step.fresh),
        )

    def _update_node(self, node: Node) -> None:
        if node.counted:
            count_view(self.state, node)
        else:
            step = Step((node.predicate,), (node,), uncounted=not self.tuning.counting)
            if step.recursive:
                silent = Trace()
                silent.start(1)
                silent.component((node.predicate.name,))
                DRed(self.state, step, silent).run({})
            else:
                count(self.state, step, {})

    def _update_step(self, step: Step, asserted: dict[Predicate, FactSet]) -> None:
        if step.recursive:
            DRed(self.state, step, self.trace).run(asserted)
        else:
            count(self.state, step, asserted)
            self.trace.round(
                "count", sum(self.engine.count(self.state.net[p].added) for p in step.predicates)
            )

    def _touches(self, step: Step) -> bool:
        """Whether a predicate that the step reads has changed."""
        return any(map(self.state.touches, step.kept))

    def _signed(
        self, added: Mapping[Predicate, FactSet], removed: Mapping[Predicate, FactSet]
    ) -> dict[Predicate, FactSet]:
        """E- := (E- in E) \\ E+ with -1, E+ := E+ \\ E with +1."""
        signed = {}
        for p in dict.fromkeys((*added, *removed)):
            table, nothing = self.state.table(p), self.engine.no_facts(p.arity)
            come, go = added.get(p, nothing), removed.get(p, nothing)
            if p in removed:
                go = self.engine.opposite(self.engine.asserted(table, self.engine.minus(go, come)))
            if p in added:
                come = self.engine.minus(come, self.engine.asserted(table, come))
            total = self.engine.keep(self.engine.plus([come, go], p.arity))
            if not self.engine.is_empty(total):
                signed[p] = total
        return signed

    def _steps_with(self, added: Mapping[Predicate, FactSet]) -> Steps:
        """The steps, and one for each predicate that no rule names."""
        known = {p for step in self.steps for p in step.predicates}
        new = tuple(Step((p,), ()) for p in added if p not in known)
        self.steps = new + self.steps
        return self.steps

    def _module(self, rule: Rule) -> Module:
        if any(isinstance(item, Aggregate) for item in rule.body):
            return AggregateModule(self.engine, rule)
        return StandardModule(self.engine, rule, self.tuning)

    def _components(self, program: Program, gone: list[Module]) -> Steps:
        graph = DependencyGraph(program)
        steps = []
        for component in graph.components:
            kept = tuple(self.modules[program.rules[n]] for n in component.rules)
            # Aggregates are always counted: they are no monotone functions of what they read.
            uncounted = not self.tuning.counting and not any(isinstance(m, AggregateModule) for m in kept)
            steps.append(Step(component.predicates, tuple(dict.fromkeys(kept)), uncounted=uncounted))
        known = {p for step in steps for p in step.predicates}
        tables = [p for p in self.state.tables if p not in self.decompositions.nodes]
        others = dict.fromkeys((*tables, *(h.predicate for m in gone for h in m.rule.heads)))
        rest = (Step((p,), (), uncounted=not self.tuning.counting) for p in others if p not in known)
        return (*rest, *steps)

    def _reclassify(self, old: Steps, new: Steps) -> None:
        """Move supports between the two kinds where a rule has become recursive, or is so no more."""
        before = {(m.rule, p): s.is_recursive(m) for s in old for m in s.kept for p in s.predicates}
        for step in new:
            for module in (*step.kept, *step.gone):
                for number, head in enumerate(module.rule.heads):
                    was = before.get((module.rule, head.predicate))
                    now = step.is_recursive(module)
                    if head.predicate in step.predicates and was is not None and was is not now:
                        self._move(module, number, head.predicate, now)

    def _move(self, module: Module, number: int, predicate: Predicate, to_recursive: bool) -> None:
        found = module.derive_all({key: self.state.new(*key) for key in module.sources})
        if number in found:
            table, facts = self.state.table(predicate), found[number]
            source, target = ("nonrecursive", "recursive") if to_recursive else ("recursive", "nonrecursive")
            self.engine.adjust(table, self.engine.opposite(facts), source)  # type: ignore[arg-type]
            self.engine.adjust(table, facts, target)  # type: ignore[arg-type]
