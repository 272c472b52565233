"""Rules that change sides within an update: from a join plan to a tree where joins multiply, and back where nodes do.

Plans are made from estimates, and in a recursive component from facts that are mostly yet to come. So what joins and nodes really make is
metered. When the joins of a rule become many, a tree is looked for with what is known by then; if it looks cheaper it is tried, with a part
of what the joins have cost as its budget, so that a trial that fails costs little beside what was spent anyway. A tree in turn may make as
many rows as the joins would have made for what it has derived, and some times that; beyond, the rule goes back to joins. Each time a side
fails its rule is given some times as much before it is asked again. So no rule costs more than a few times the better of the two.

Both sides count the same derivations, so a rule changes its module between two rounds, or within one before any of its derivations
has been counted. Nodes it needs are filled for the moment it is in: from all facts before the update, and from those of now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Generic

from hdlog.engines.protocol import F, R, T, Version
from hdlog.maintenance.changes import Change, Changes, Heads, Module, is_void
from hdlog.maintenance.components import Component, nodes_of
from hdlog.maintenance.counting import count_view
from hdlog.maintenance.evaluation import Evaluation
from hdlog.maintenance.meters import Meter, TooManyRows
from hdlog.maintenance.moments import Moments
from hdlog.maintenance.nodes import Node
from hdlog.maintenance.planning import Planning
from hdlog.maintenance.rounds import Round
from hdlog.maintenance.standard import StandardModule
from hdlog.maintenance.views import ViewModule
from hdlog.plan.planner import RulePlan, plan_joins, plan_tree
from hdlog.program.model import Rule

if TYPE_CHECKING:
    from hdlog.maintenance.dred import Run


@dataclass
class Account:
    """Of one rule in one update."""

    bound: float
    """rows that are made without asking"""
    joined: float = 0.0
    """rows that its join plan made, or was about to make, when a tree took over"""
    yielded: int = 0
    """facts that it had derived by then, if any"""

    def raise_bound(self, rows: float, times: float) -> None:
        self.bound = max(2.0, times) * max(self.bound, rows, 1.0)

    def project(self, yielded: int) -> float:
        """Rows that the join plan would have made for what has been derived since."""
        return self.joined * max(1.0, yielded / self.yielded) if self.yielded else self.joined


class Revision(Generic[R, F, T]):
    def __init__(self, planning: Planning[R, F, T], evaluation: Evaluation[R, F, T]) -> None:
        self.planning = planning
        self.evaluation = evaluation
        self.engine = planning.engine
        self.numbers = planning.tuning.numbers
        self._accounts: dict[Rule, Account] = {}
        self._trees: dict[Rule, RulePlan] = {}
        """that rules are about to change to"""
        self._refused: Node[R, F, T] | None = None
        """that has become too large"""

    def begin(self) -> None:
        """A new update."""
        self._accounts, self._trees, self._refused = {}, {}, None

    # What may be made.

    def watch(self, component: Component[R, F, T]) -> None:
        """Meter the rules of a component that is about to be evaluated, and their nodes."""
        users: dict[Node[R, F, T], list[Rule]] = {}
        for module in (*component.kept, *component.fresh):
            for node in nodes_of(module):
                users.setdefault(self.planning.nodes.get(node.predicate, node), []).append(module.rule)
            if isinstance(module, StandardModule):
                module.meter.reset()
                if self.planning.may_go_over(module.rule):
                    ask = partial(self._ask_joins, module.rule, component.is_recursive(module))
                    module.meter.reset(self._account(module.rule).bound, ask)
        for node, rules in users.items():
            self._watch_node(node, rules)

    def _watch_node(self, node: Node[R, F, T], rules: Sequence[Rule]) -> None:
        node.meter.reset()
        if all(map(self.planning.is_revisable, rules)):
            most = max(self._account(rule).bound for rule in rules)
            node.meter.reset(most, partial(self._ask_node, node, rules))

    def _account(self, rule: Rule) -> Account:
        if rule not in self._accounts:
            plan = self.planning.rules[rule].plan
            estimate = plan.costs[0] if plan is not None and plan.costs is not None else 0.0
            known = self.planning.find_bound(rule)
            bound = max(self.numbers.few_rows, self.numbers.patience * estimate, known)
            self._accounts[rule] = Account(bound, joined=bound)
        return self._accounts[rule]

    def _ask_joins(self, rule: Rule, recursive: bool, rows: int) -> float:
        """The joins of a rule become many: whether a tree is better."""
        account = self._account(rule)
        # What is known of the facts of a body is found by looking at all of them.
        worth = self.numbers.worth_asking * sum(self.planning.find_sizes(rule).values())
        if rows < worth:
            account.bound = worth
            return worth
        tree = plan_tree(rule, self.planning.statistics({}), self.planning.tuning, recursive, rows)
        if tree is None:
            account.raise_bound(rows, self.numbers.patience)
            self.planning.keep_bound(rule, account.bound)
            return account.bound
        account.joined = rows
        account.yielded = self.evaluation.yielded[rule]
        why = f"a join plan was about to make {rows:,} rows, and a tree looked cheaper"
        self._trees[rule] = tree.because(why)
        raise TooManyRows

    def _ask_node(self, node: Node[R, F, T], rules: Sequence[Rule], rows: int) -> float:
        """A node has become large: whether joins would have made as much."""
        most = max(self._find_most(rule) for rule in rules)
        if rows > most:
            self._refused = node
            raise TooManyRows
        return most

    def _find_most(self, rule: Rule) -> float:
        account = self._account(rule)
        return max(account.bound, self.numbers.patience * account.project(self.evaluation.yielded[rule]))

    # Changing sides.

    def derive_otherwise(
        self,
        component: Component[R, F, T],
        moments: Moments[R, F, T],
        changes: Changes[F, T],
        module: Module[F, T],
    ) -> Heads[F]:
        """What a rule without recursion derives, after it was too much in the way that it was evaluated."""
        _refuse_nodes(module)
        while True:
            try:
                tree = self._trees.pop(module.rule, None)
                if tree is None:
                    return module.derive(changes)
                return self._try_tree(component, moments, module.rule, tree)
            except TooManyRows:
                self._give_up(module, moments)

    def _try_tree(
        self, component: Component[R, F, T], moments: Moments[R, F, T], rule: Rule, plan: RulePlan
    ) -> Heads[F]:
        module = self.planning.make_module(plan)
        assert isinstance(module, ViewModule)
        with _Trial(self, module):
            self._maintain(replace(component, kept=(module,), fresh=()), moments)
            heads = module.derive(moments.find_signed_changes(module.reads))
        self._adopt(rule, module, plan)
        return heads

    def derive_otherwise_in_round(
        self, run: Run[R, F, T], round_: Round[R, F, T], module: Module[F, T]
    ) -> Heads[F]:
        """Likewise a rule of a recursive component, in the midst of a round."""
        _refuse_nodes(module)
        while True:
            try:
                tree = self._trees.pop(module.rule, None)
                if tree is None:
                    return module.derive(round_)
                return self._try_tree_in_round(run, module, tree, round_)
            except TooManyRows:
                self._give_up(module, run.moments)

    def _try_tree_in_round(
        self, run: Run[R, F, T], before: Module[F, T], plan: RulePlan, round_: Round[R, F, T]
    ) -> Heads[F]:
        module = self.planning.make_module(plan)
        assert isinstance(module, ViewModule)
        alone = replace(run.component, kept=(module,), fresh=(), nodes=())
        inner = [n for n in module.nodes if self.planning.is_inner(n, run.component)]
        new = [n for n in inner if n.predicate not in run.inner]
        # Of rules that come later, for which they would be brought up to date then.
        borrowed = [n.predicate for n in new if n.predicate in self.planning.nodes]
        try:
            with _Trial(self, module):
                self._maintain(alone, run.moments)
                for node in inner:
                    if node.predicate in run.inner:
                        round_.evaluate(node)
                    else:
                        self._fill_in_round(run, node, round_)
                heads = module.derive(round_)
        except TooManyRows:
            run.moments.forget(borrowed)
            self.planning.give_back(borrowed)
            raise
        self._adopt(before.rule, module, plan)
        run.change_modules({before: module}, new)
        return heads

    def _fill_in_round(self, run: Run[R, F, T], node: Node[R, F, T], round_: Round[R, F, T]) -> None:
        """Have a node with what it kept before the update, what it has in this round, and how it changes by it."""
        engine, arity = self.engine, node.predicate.arity
        old = node.all_rows({read: run.find_old(read) for read in node.reads})
        changes = {read: round_[read] for read in node.reads}
        including = node.all_rows({read: change.including for read, change in changes.items()})
        if any(positive and is_void(engine, changes[p, positive].without) for p, positive in node.reads):
            delta, without = including, engine.no_facts(arity)
        else:
            delta = node.changed_rows(round_)
            without = engine.keep(engine.plus([including, engine.negate(delta)], arity))
        now = including if round_.grows else without
        self.planning.add_view(node, old)
        run.moments.add_to_view(node.predicate, engine.keep(engine.plus([now, engine.negate(old)], arity)))
        nothing = engine.table(arity)
        sides = Version(nothing, (without,)), Version(nothing, (including,))
        round_.set_change(node, Change(delta, lambda: sides[0], lambda: sides[1]))

    def _maintain(self, component: Component[R, F, T], moments: Moments[R, F, T]) -> None:
        """Bring the views over finished predicates up to date."""
        for node in self.planning.finished_nodes(component, moments):
            count_view(node, moments, self.evaluation)

    def _adopt(self, rule: Rule, module: Module[F, T], plan: RulePlan) -> None:
        self.planning.change_module(rule, module, plan)
        for node in nodes_of(module):
            users = self.planning.find_users(node.predicate)
            self._watch_node(self.planning.nodes[node.predicate], users)

    def _give_up(self, module: Module[F, T], moments: Moments[R, F, T]) -> None:
        """A tree that was tried is larger than it looked."""
        account = self._account(module.rule)
        account.raise_bound(account.joined, self.numbers.patience)
        assert isinstance(module, StandardModule)
        module.meter.most = account.bound
        moments.forget(self.planning.drop_unused())

    def leave_trees(self, component: Component[R, F, T], moments: Moments[R, F, T]) -> Component[R, F, T]:
        """All rules over the node that has become too large go back to join plans; the component with them."""
        node, self._refused = self._refused, None
        assert node is not None, "a node says that it has become too large"
        modules: dict[Module[F, T], Module[F, T]] = {}
        for rule in self.planning.find_users(node.predicate):
            account = self._account(rule)
            account.raise_bound(node.meter.rows, self.numbers.patience**2)
            why = f"a node of its tree had made {node.meter.rows:,} rows, more than a join plan would have"
            before = self.planning.rules[rule].module
            modules[before] = self.planning.make_standard(rule)
            self.planning.change_module(rule, modules[before], plan_joins(rule, why))
        moments.forget(self.planning.drop_unused())
        changed = component.change_modules(modules)
        kept_nodes = tuple(n for n in changed.nodes if n.predicate in self.planning.nodes)
        changed = replace(changed, nodes=kept_nodes)
        self.watch(replace(changed, kept=tuple(modules.values()), fresh=()))
        return changed


def _refuse_nodes(module: Module[F, T]) -> None:
    """A node of the paper's trees is maintained as a rule is; that it has become too large is its rules' business."""
    if isinstance(module, Node):
        raise TooManyRows


class _Trial(Generic[R, F, T]):
    """The nodes of a tree may make a part of the rows that the joins made, all together."""

    def __init__(self, revision: Revision[R, F, T], module: ViewModule[R, F, T]) -> None:
        self.revision = revision
        self.module = module
        known = revision.planning.nodes
        self.new: Sequence[Node[R, F, T]] = [n for n in module.nodes if n.predicate not in known]
        self.shared = [known[n.predicate] for n in module.nodes if n.predicate in known]
        """nodes of other rules, which are brought up to date whatever it takes"""
        self.budget = revision._account(module.rule).joined * revision.numbers.trial

    def __enter__(self) -> None:
        for node in self.shared:
            node.meter.reset()
        for meter in self._meters():
            meter.reset(-1.0, self._ask)

    def __exit__(self, kind: object, error: object, at: object) -> None:
        for meter in self._meters():
            meter.reset()

    def _meters(self) -> list[Meter]:
        return [n.meter for n in self.new] + [self.module.meter]

    def _ask(self, rows: int) -> float:
        if sum(meter.rows for meter in self._meters()) > self.budget or rows > self.budget:
            raise TooManyRows
        return -1.0
