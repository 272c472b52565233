"""What maintenance works on: the tables, and how each predicate has changed so far in an update."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from hdlog.engines.protocol import Engine, FactSet, Table, Version
from hdlog.errors import HdlogError
from hdlog.maintenance.module import Changes, LaterChange, Module
from hdlog.maintenance.nodes import Counts, Node
from hdlog.program.model import Predicate, Rule

_MUCH = 8
"""A version is brought into one piece if more than one in so many of its facts has changed in the update."""


class NetChange:
    """Facts that came and facts that went, disjoint; the table has the new state already.

    Worked out when first asked for: after the last component nobody may ask.
    """

    def __init__(self, find: Callable[[], tuple[FactSet, FactSet]], is_empty: bool) -> None:
        self._find = find
        self.is_empty = is_empty

    @cached_property
    def _both(self) -> tuple[FactSet, FactSet]:
        return self._find()

    @property
    def added(self) -> FactSet:
        return self._both[0]

    @property
    def removed(self) -> FactSet:
        return self._both[1]


def net_change(engine: Engine, added: FactSet, removed: FactSet) -> NetChange:
    return NetChange(lambda: (added, removed), engine.is_empty(added) and engine.is_empty(removed))


@dataclass(frozen=True)
class Step:
    """One component's part in an update: its predicates, and the modules with a head among them."""

    predicates: tuple[Predicate, ...]
    kept: tuple[Module, ...]
    gone: tuple[Module, ...] = ()
    fresh: tuple[Module, ...] = ()
    nodes: tuple[Node, ...] = ()
    """nodes that read predicates of the component, children first"""
    uncounted: bool = False
    """whether all rules are treated as recursive ones"""

    @cached_property
    def _members(self) -> frozenset[Predicate]:
        return frozenset(self.predicates)

    @cached_property
    def _recursive(self) -> frozenset[Module]:
        every = (*self.kept, *self.gone, *self.fresh)
        return frozenset(m for m in every if self.uncounted or any(p in self._members for p, _ in m.sources))

    @property
    def recursive(self) -> bool:
        return bool(self._recursive)

    def is_recursive(self, module: Module) -> bool:
        """Whether a body atom belongs to this very component."""
        return module in self._recursive

    def part(self, modules: Sequence[Module], recursive: bool) -> list[Module]:
        return [m for m in modules if (m in self._recursive) is recursive]

    def has(self, predicate: Predicate) -> bool:
        return predicate in self._members


@dataclass
class State:
    engine: Engine
    tables: dict[Predicate, Table] = field(default_factory=dict)
    net: dict[Predicate, NetChange] = field(default_factory=dict)
    """the changes of this update, for the predicates of finished components"""
    views: dict[Predicate, Counts] = field(default_factory=dict)
    derived: dict[tuple[Module, str], Mapping[int, FactSet]] = field(default_factory=dict)
    """of this update, for rules with several heads"""
    flat: dict[tuple[str, Predicate, bool], Version] = field(default_factory=dict)
    """versions of this update, in one piece where much has changed"""
    spent: dict[Rule, float] = field(default_factory=lambda: defaultdict(float))
    """seconds, by rule and by the rule of a node"""

    def forget_update(self) -> None:
        """What an update leaves behind, finished or not."""
        self.net, self.derived, self.flat = {}, {}, {}

    def table(self, predicate: Predicate) -> Table:
        if predicate not in self.tables:
            self.tables[predicate] = self.engine.table(predicate.arity)
        return self.tables[predicate]

    def change(self, predicate: Predicate) -> NetChange:
        if predicate in self.net:
            return self.net[predicate]
        nothing = self.engine.no_facts(predicate.arity)
        return net_change(self.engine, nothing, nothing)

    def has_changed(self, predicate: Predicate) -> bool:
        """Whether a finished predicate or view has changed in this update."""
        if predicate in self.views:
            return self.views[predicate].finished and bool(self.views[predicate].changes)
        return predicate in self.net and not self.net[predicate].is_empty

    # Evaluation.

    def derivations(
        self, modules: Sequence[Module], changes: Changes, step: Step
    ) -> dict[Predicate, FactSet]:
        """What modules derive from changed facts, for the predicates of a step."""
        if not modules:
            return {}
        results = self.engine.each(
            lambda m: self._once(m, "changes", step, lambda m: m.derive(changes)),
            modules,
            (change.delta for change in changes.values()),
        )
        return self._gathered(modules, results, step)

    def _once(
        self, module: Module, what: str, step: Step, derive: Callable[[Module], Mapping[int, FactSet]]
    ) -> Mapping[int, FactSet]:
        """A rule with heads in several components is evaluated for all of them when the first is reached.

        That is right where it reads nothing of the component: what it reads is finished, for the others too.
        """
        if len(module.rule.heads) == 1 or step.is_recursive(module):
            return self._guarded(module, derive)
        if (module, what) not in self.derived:
            self.derived[(module, what)] = self._guarded(module, derive)
        return self.derived[(module, what)]

    def all_derivations(
        self, modules: Sequence[Module], moment: Callable[[Predicate, bool], Version], step: Step
    ) -> dict[Predicate, FactSet]:
        """What modules derive at a moment, whatever has changed; of old moments only the sources are known."""

        def derive(module: Module) -> Mapping[int, FactSet]:
            keys = module.sources if moment == self.old else module.reads
            return module.derive_all({key: moment(*key) for key in keys})

        return self._gathered(modules, [self._once(m, moment.__name__, step, derive) for m in modules], step)

    def difference(self, step: Step, recursive: bool) -> dict[Predicate, FactSet]:
        """The signed difference of the bodies of a step's rules, old to new."""
        kept = [m for m in step.part(step.kept, recursive) if self.touches(m)]
        changed = self.derivations(kept, self.counted(literals_of(kept)), step)
        if not step.fresh and not step.gone:
            return changed
        parts = [changed, self.all_derivations(step.part(step.fresh, recursive), self.new, step)]
        for p, facts in self.all_derivations(step.part(step.gone, recursive), self.old, step).items():
            parts.append({p: self.engine.opposite(facts)})
        return {
            p: self.engine.plus([part[p] for part in parts if p in part], p.arity)
            for p in step.predicates
            if any(p in part for part in parts)
        }

    def _guarded(
        self, module: Module, derive: Callable[[Module], Mapping[int, FactSet]]
    ) -> Mapping[int, FactSet]:
        started = time.perf_counter()
        try:
            return derive(module)
        except HdlogError as error:
            place = f" ({module.rule.span})" if module.rule.span else ""
            error.args = (f"while evaluating {shown(module.rule)}{place}:\n{error}",)
            raise
        finally:
            self.spent[module.rule] += time.perf_counter() - started

    def node_change(self, node: Node, changes: Changes) -> FactSet:
        """The rows that a node gains or loses."""
        found = self._guarded(node, lambda n: n.derive(changes))
        return self.engine.keep(found.get(0, self.engine.no_facts(node.predicate.arity)))

    def _gathered(
        self, modules: Sequence[Module], results: Sequence[Mapping[int, FactSet]], step: Step
    ) -> dict[Predicate, FactSet]:
        parts: dict[Predicate, list[FactSet]] = {}
        for module, heads in zip(modules, results, strict=True):
            for number, facts in heads.items():
                predicate = module.rule.heads[number].predicate
                if step.has(predicate):
                    parts.setdefault(predicate, []).append(facts)
        if all(len(found) == 1 for found in parts.values()):
            return {p: found[0] for p, found in parts.items()}
        sums = self.engine.each(
            lambda item: self.engine.plus(item[1], item[0].arity),
            list(parts.items()),
            (f for found in parts.values() for f in found),
        )
        return dict(zip(parts, sums, strict=True))

    # Moments of a predicate: before the update, after it, and what holds before and after.

    def old(self, predicate: Predicate, positive: bool = True) -> Version:
        return self._flat("old", predicate, True, self._old)

    def new(self, predicate: Predicate, positive: bool = True) -> Version:
        return self._flat("new", predicate, True, self._new)

    def lasting(self, predicate: Predicate, positive: bool = True) -> Version:
        """For a negative literal, what does not hold before and after: the facts of either."""
        return self._flat("lasting", predicate, positive, self._lasting)

    def _flat(
        self, moment: str, predicate: Predicate, positive: bool, find: Callable[[Predicate, bool], Version]
    ) -> Version:
        """What has changed a lot, and does not change any more, is brought into one piece once."""
        key = (moment, predicate, positive)
        if key in self.flat:
            return self.flat[key]
        version = find(predicate, positive)
        if not self._has_changed_much(predicate):
            return version
        self.flat[key] = self.engine.flat(version)
        return self.flat[key]

    def _has_changed_much(self, predicate: Predicate) -> bool:
        if not self.has_changed(predicate):
            return False
        count = self.engine.count
        if predicate in self.views:
            view = self.views[predicate]
            return _MUCH * count(view.total()) > sum(map(count, view.runs))
        net = self.net[predicate]
        return _MUCH * (count(net.added) + count(net.removed)) > self.engine.size(self.table(predicate))

    def _old(self, predicate: Predicate, _: bool) -> Version:
        if predicate in self.views:
            return self.views[predicate].before()
        net, table, engine = self.change(predicate), self.table(predicate), self.engine
        if engine.was_empty(table, net.added, net.removed):
            # Nothing held, and a sum that cancels out is dear to join.
            return Version(engine.table(predicate.arity))
        return Version(table, (net.removed,), (net.added,))

    def _new(self, predicate: Predicate, _: bool) -> Version:
        if predicate in self.views:
            return self.views[predicate].now()
        return Version(self.table(predicate))

    def _lasting(self, predicate: Predicate, positive: bool) -> Version:
        if predicate in self.views:
            return self.views[predicate].lasting()
        net = self.change(predicate)
        if positive:
            return Version(self.table(predicate), (), (net.added,))
        return Version(self.table(predicate), (net.removed,), ())

    # How a literal over a finished predicate changes, in each of the three kinds of step.

    def counted(self, literals: Iterable[tuple[Predicate, bool]]) -> Changes:
        """All at once, signed: from the old to the new."""
        return {key: self._counted(*key) for key in literals}

    def touches(self, module: Module) -> bool:
        """Whether a finished predicate that the module reads has changed."""
        return any(self.has_changed(p) for p, _ in module.sources)

    def _counted(self, predicate: Predicate, positive: bool) -> LaterChange:
        sides = partial(self.old, predicate), partial(self.new, predicate)
        if predicate in self.views:
            return LaterChange(self.views[predicate].total(), *sides)
        came, went = self._came_and_went(predicate, positive)
        delta = came
        if not self.engine.is_empty(went):
            delta = self.engine.plus([came, self.engine.opposite(went)], predicate.arity)
        return LaterChange(delta, *sides)

    def shrinking(self, predicate: Predicate, positive: bool, first_round: bool) -> LaterChange:
        """From the old to what lasts: only losses, all in the first round."""
        _, went = self._came_and_went(predicate, positive)
        rest = partial(self.lasting, predicate, positive)
        if first_round:
            return LaterChange(went, rest, partial(self.old, predicate))
        return LaterChange(self.engine.no_facts(predicate.arity), rest, rest)

    def growing(self, predicate: Predicate, positive: bool, first_round: bool) -> LaterChange:
        """From what lasts to the new: only gains, all in the first round."""
        came, _ = self._came_and_went(predicate, positive)
        new = partial(self.new, predicate)
        if first_round:
            return LaterChange(came, partial(self.lasting, predicate, positive), new)
        return LaterChange(self.engine.no_facts(predicate.arity), new, new)

    def _came_and_went(self, predicate: Predicate, positive: bool) -> tuple[FactSet, FactSet]:
        if predicate in self.views:
            return self.views[predicate].rising(), self.views[predicate].falling()
        net = self.change(predicate)
        return (net.added, net.removed) if positive else (net.removed, net.added)


def literals_of(modules: Iterable[Module]) -> dict[tuple[Predicate, bool], None]:
    """The literals that modules read, each once."""
    return dict.fromkeys(key for module in modules for key in module.reads)


def shown(rule: Rule) -> str:
    """A rule in a message: its heads and how many body items it has."""
    heads = ", ".join(h.name for h in rule.heads)
    return f"the rule for {heads} with {len(rule.body)} body items"
