"""For each rule the method that evaluates it, and the decomposition if that is a hypertree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Literal

from hdlog.plan.decompose import BudgetExceeded, decompose, hypertree_width
from hdlog.plan.decomposition import Decomposition
from hdlog.plan.decomposition import Node as HypertreeNode
from hdlog.plan.estimates import Estimator, PaperCosts, Statistics
from hdlog.plan.hypergraph import of_body
from hdlog.plan.nodes import NodeRule, item_variables, make_node
from hdlog.plan.views import TooManyViews, ViewNode, ViewPlanner
from hdlog.program.model import Aggregate, Atom, Bind, BodyItem, Filter, Negation, Predicate, Rule
from hdlog.program.terms import Variable
from hdlog.tuning import Method, Tuning

_MOST_VARIABLES = 62
"""Sets of variables are bits of one number where trees are looked for."""


@dataclass(frozen=True)
class TreeNode:
    """A node of a rule's tree: the atom by which it is matched (what it keeps, or one of the rule's), and the items in it."""

    bag: tuple[str, ...]
    atom: Atom
    items: tuple[BodyItem, ...]
    children: tuple[TreeNode, ...]
    estimate: float
    kept: Predicate | None
    """None where nothing is kept: the root of a view tree, or a node that is one atom"""

    def nodes(self) -> Iterator[TreeNode]:
        yield self
        for child in self.children:
            yield from child.nodes()


@dataclass(frozen=True)
class Root:
    """The tree for some heads of a rule; in a view tree also the rule that its root evaluates."""

    heads: tuple[int, ...]
    tree: TreeNode
    rule: Rule | None = None


@dataclass(frozen=True)
class RulePlan:
    rule: Rule
    method: Literal["standard", "hd"]
    why: str
    width: int | None = None
    roots: tuple[Root, ...] = ()
    nodes: tuple[NodeRule, ...] = ()
    """what the trees keep, children first"""
    decomposition: Decomposition | None = None
    last: tuple[BodyItem, ...] = ()
    """of a hypertree: filters, binds and negations that no single node can decide"""
    costs: tuple[float, float | None] | None = None
    """estimates for the standard method and for the tree; None for a tree that is not worth having, whatever it costs"""

    def because(self, why: str) -> RulePlan:
        return replace(self, why=why)

    @property
    def covers_are_views(self) -> bool:
        return any(root.rule is not None for root in self.roots)


def plan_rule(
    rule: Rule, statistics: Statistics, tuning: Tuning, recursive: bool = False, in_time: bool = False
) -> RulePlan:
    """The method for a rule; `in_time`: a tree is looked for no longer than a join plan would take."""
    method: Method = rule.method or tuning.method
    asked = f"the rule is marked {method}" if rule.method else f"the method is {method}"
    atoms = rule.atoms()
    if is_aggregate(rule):
        return plan_aggregate(rule, statistics, tuning)
    if len(atoms) < 2:
        return RulePlan(rule, "standard", "one atom to match" if atoms else "no atom to match", len(atoms))
    try:
        width = find_width(atoms)
    except BudgetExceeded as reason:
        return RulePlan(rule, "standard", str(reason))
    if method == "standard" or (method == "paper" and width == 1):
        return RulePlan(rule, "standard", asked if method == "standard" else "simple (width 1)", width)
    if method == "combined" and width == 1 and not may_multiply(rule):
        # Not worth even counting distinct values.
        return RulePlan(rule, "standard", "acyclic", width)
    planner = _RulePlanner(rule, statistics, tuning, width or 1, recursive)
    if method == "combined":
        kind = "acyclic" if width == 1 else f"cyclic (width {width})"
        if planner.standard_cost < tuning.numbers.few_rows:
            why = f"{kind}, but a join plan makes few rows, about {planner.standard_cost:,.0f}"
            return RulePlan(rule, "standard", why, width)
        if in_time:
            most = planner.standard_cost / tuning.numbers.rows_a_view
            planner.view_budget = int(min(most, planner.view_budget))
    if tuning.views:
        try:
            plan = planner.with_views(planner.most_for_tree if method == "combined" else inf)
            if plan is not None:
                return planner.decide(plan, method, asked)
            if method == "combined":
                return planner.stay_with_joins(None)
        except TooManyViews:
            if planner.view_budget < tuning.numbers.view_budget:
                why = f"{kind}, but a join plan takes less time than looking for a tree"
                return RulePlan(rule, "standard", why, width)
    try:
        plan = planner.with_nodes()
    except BudgetExceeded as reason:
        return RulePlan(rule, "standard", str(reason), width)
    if plan is None:
        return RulePlan(rule, "standard", "no decomposition has a place for all its negations", width)
    return planner.decide(plan, method, asked)


def is_aggregate(rule: Rule) -> bool:
    return any(isinstance(item, Aggregate) for item in rule.body)


def bag_of(rule: Rule) -> tuple[Aggregate, Rule]:
    """The aggregate of a normal rule, and the rule whose matches are aggregated: groups and values."""
    (item,) = rule.body
    assert isinstance(item, Aggregate), "an aggregate is alone in its rule"
    (call,) = item.calls
    value = (call.argument,) if isinstance(call.argument, Variable) else ()
    return item, Rule((Atom("#bag", tuple(dict.fromkeys((*item.group, *value)))),), item.body, rule.span)


def source_of(plan: RulePlan) -> Atom:
    """The atom whose facts an aggregate is of: the only one of its body, or that of a view of all matches."""
    if plan.roots:
        return plan.roots[0].tree.atom
    (item,) = bag_of(plan.rule)[1].body
    assert isinstance(item, Atom), "other bodies have a view"
    return item


def plan_aggregate(rule: Rule, statistics: Statistics | None, tuning: Tuning) -> RulePlan:
    """The view of an aggregate's matches, and the tree below it; a simple one as long as nothing is known of the facts."""
    _, bag = bag_of(rule)
    if len(bag.body) == 1 and isinstance(bag.body[0], Atom):
        return RulePlan(rule, "standard", "an aggregate of one atom", 1)
    inner = RulePlan(bag, "standard", "") if statistics is None else plan_rule(bag, statistics, tuning)
    items, below, nodes = _top_of(inner)
    estimate = 0.0 if statistics is None else _estimate_rows(bag, statistics, tuning)
    known = {node.predicate.name: node for node in nodes}
    columns = tuple(sorted(item_variables(bag.heads[0])))
    salt = "" if tuning.sharing else str(rule)
    top, atom = make_node(items, columns, known, True, estimate, salt, tuning.numbers.most_orders)
    own = tuple(item for item in items if not (isinstance(item, Atom) and item.name in known))
    tree = TreeNode(columns, atom, own, below, estimate, top.predicate)
    why = f"an aggregate; its matches: {inner.why}" if inner.why else "an aggregate"
    method: Literal["standard", "hd"] = "hd" if nodes else "standard"
    return RulePlan(rule, method, why, inner.width, (Root((0,), tree),), (*nodes, top), costs=inner.costs)


def _top_of(
    plan: RulePlan,
) -> tuple[tuple[BodyItem, ...], tuple[TreeNode, ...], tuple[NodeRule, ...]]:
    """What the root of a rule's view tree joins, its children, and all nodes; the body itself if there is no such tree."""
    if not plan.covers_are_views:
        return plan.rule.body, (), ()
    (root,) = plan.roots
    assert root.rule is not None
    return root.rule.body, root.tree.children, plan.nodes


def _estimate_rows(rule: Rule, statistics: Statistics, tuning: Tuning) -> float:
    """How many facts a rule derives, as far as atoms tell it."""
    estimator = Estimator(statistics, tuning.numbers)
    factors = [estimator.factor(atom) for atom in rule.atoms()]
    if len(of_body(rule.atoms()).vertices) > _MOST_VARIABLES:
        return max(f.rows for f in factors)
    names = frozenset().union(*(f.distinct for f in factors))
    return estimator.project(factors, item_variables(rule.heads[0]) & names).rows


def may_multiply(rule: Rule) -> bool:
    """Whether its joins may make many more rows than there are matches in the end: it takes three atoms that link variables."""
    return sum(len(item_variables(atom)) > 1 for atom in rule.atoms()) > 2


def plan_tree(
    rule: Rule, statistics: Statistics, tuning: Tuning, recursive: bool, rows: int
) -> RulePlan | None:
    """A view tree for a rule whose joins have made some rows, if one that is worth trying is found in a part of the time that took."""
    if not tuning.views:
        return None
    try:
        width = find_width(rule.atoms())
    except BudgetExceeded:
        return None
    planner = _RulePlanner(rule, statistics, tuning, width or 1, recursive)
    planner.view_budget = min(int(rows / tuning.numbers.rows_a_view), planner.view_budget)
    try:
        return planner.with_views(max(rows, tuning.numbers.worth_trying * planner.standard_cost))
    except TooManyViews:
        return None


def plan_joins(rule: Rule, why: str) -> RulePlan:
    """A join plan, whatever the facts are."""
    try:
        width = find_width(rule.atoms())
    except BudgetExceeded as reason:
        return RulePlan(rule, "standard", str(reason))
    return RulePlan(rule, "standard", why, width)


def find_width(atoms: Sequence[Atom]) -> int | None:
    """The hypertree width of a body; BudgetExceeded where that would take too long."""
    hypergraph = of_body(atoms)
    if len(hypergraph.vertices) > _MOST_VARIABLES:
        raise BudgetExceeded(f"more than {_MOST_VARIABLES} variables, so no tree was looked for")
    return hypertree_width(hypergraph)


class _RulePlanner:
    def __init__(
        self, rule: Rule, statistics: Statistics, tuning: Tuning, width: int, recursive: bool
    ) -> None:
        self.rule = rule
        self.recursive = recursive
        self.tuning = tuning
        self.numbers = tuning.numbers
        self.view_budget = tuning.numbers.view_budget
        self.width = width
        self.estimator = Estimator(statistics, tuning.numbers)
        self.atoms = rule.atoms()
        statistics.look_ahead(self.atoms)
        if width > 1:
            share = self.numbers.sure_core_share if recursive else self.numbers.core_share
            self.estimator.look_at_cores(self.atoms, share)
        self.nodes: dict[str, NodeRule] = {}
        atom_names = frozenset(v.name for atom in self.atoms for v in atom.variables())
        self.inner, self.last = self._divide_items(atom_names)
        """other items that one node can decide, and those that wait for the whole match"""
        needed = frozenset().union(*map(item_variables, self.last)) & atom_names
        self.outputs = [frozenset(v.name for v in h.variables()) & atom_names | needed for h in rule.heads]
        self.together = bool(self.last) or not tuning.root_per_head

    def _salt(self, bag: tuple[str, ...]) -> str:
        return "" if self.tuning.sharing else f"{self.rule}{bag}"

    def _divide_items(self, atom_names: frozenset[str]) -> tuple[list[BodyItem], tuple[BodyItem, ...]]:
        inner: list[BodyItem] = []
        last: list[BodyItem] = []
        edges = [item_variables(atom) for atom in self.atoms]
        for item in self.rule.body:
            match item:
                case Negation():
                    (inner if item_variables(item) <= atom_names else last).append(item)
                case Filter():
                    (inner if any(item_variables(item) <= e for e in edges) else last).append(item)
                case Bind():
                    last.append(item)
        return inner, tuple(last)

    def decide(self, plan: RulePlan, method: Method, asked: str) -> RulePlan:
        """The plan, or the standard method where that is as good."""
        assert plan.costs is not None
        _, tree = plan.costs
        assert tree is not None
        if method == "hd":
            return plan.because(asked)
        if method == "paper":
            return plan.because(f"complex (width {self.width})")
        if tree >= self.most_for_tree:
            return self.stay_with_joins(tree)
        if self.width > 1:
            return plan.because(f"cyclic (width {self.width}), and cheaper than a join plan")
        return plan.because("acyclic, but counting over a tree is much cheaper than a join plan")

    def stay_with_joins(self, tree: float | None) -> RulePlan:
        why = "acyclic" if self.width == 1 else f"cyclic (width {self.width}), but a join plan is as cheap"
        return RulePlan(self.rule, "standard", why, self.width, costs=(self.standard_cost, tree))

    @property
    def most_for_tree(self) -> float:
        """A tree that costs as much is not worth having."""
        return self.standard_cost / (self.numbers.simple_gain if self.width == 1 else 1.0)

    @cached_property
    def standard_cost(self) -> float:
        factors = [self.estimator.factor(a) for a in self.atoms]
        output = frozenset().union(*self.outputs)
        shortest, average = self.estimator.evaluation(factors, output, meets=False)
        return shortest + (self.numbers.often if self.recursive else self.numbers.once) * average

    # View trees.

    def with_views(self, most: float) -> RulePlan | None:
        """The best view tree, if it costs less than `most`; TooManyViews where there are too many variables to look at all trees."""
        groups = self._head_groups()
        roots, cost = [], 0.0
        planner = ViewPlanner(
            [*self.atoms, *self.inner],
            self.estimator,
            self.tuning.worst_case_optimal,
            self.recursive,
            self.view_budget,
            most,
        )
        best: list[tuple[tuple[int, ...], ViewNode]] = []
        for heads, output in groups:
            tree = planner.find_best(output)
            if tree is None:
                return None
            best.append((heads, tree))
            cost += tree.cost
            if cost >= most:
                return None
        for heads, tree in best:
            children = [self._view(child) for child in tree.children]
            body = (*tree.items, *(child.atom for child in children), *self.last)
            rule = Rule(tuple(self.rule.heads[h] for h in heads), body, self.rule.span)
            top = TreeNode(
                tuple(sorted(tree.bag)), rule.heads[0], tree.items, tuple(children), tree.view.rows, None
            )
            roots.append(Root(heads, top, rule))
        return RulePlan(
            self.rule,
            "hd",
            "",
            self.width,
            _merge_roots(roots),
            tuple(self.nodes.values()),
            costs=(self.standard_cost, cost),
        )

    def _head_groups(self) -> list[tuple[tuple[int, ...], frozenset[str]]]:
        """Heads that one tree serves, with the variables it has to give."""
        if self.together:
            return [(tuple(range(len(self.outputs))), frozenset().union(*self.outputs))]
        groups: dict[frozenset[str], list[int]] = {}
        for number, output in enumerate(self.outputs):
            groups.setdefault(output, []).append(number)
        return [(tuple(heads), output) for output, heads in groups.items()]

    def _view(self, node: ViewNode) -> TreeNode:
        children = tuple(self._view(child) for child in node.children)
        items = (*node.items, *(child.atom for child in children))
        bag = tuple(sorted(node.bag))
        kept, atom = self._keep_join(items, node.columns, True, node.view.rows, bag)
        return TreeNode(bag, atom, node.items, children, node.view.rows, kept)

    # Hypertrees, as in the paper.

    def with_nodes(self) -> RulePlan | None:
        if any(isinstance(item, Negation) for item in self.last):
            return None
        guards = [item_variables(item) for item in self.inner if isinstance(item, Negation)]
        hypergraph = of_body(self.atoms)
        costs = PaperCosts(self.estimator, [self.estimator.factor(a) for a in self.atoms])
        best: tuple[float, Decomposition] | None = None
        for width in range(self.width, self.width + self.numbers.wider + 1):
            candidate = decompose(hypergraph, costs, width, guards, self.numbers.decomposition_budget)
            if candidate is not None:
                cost = _total(candidate, costs)
                if best is None or cost < best[0]:
                    best = (cost, candidate)
        if best is None:
            return None
        cost, decomposition = best
        waiting = list(self.inner)
        tree = self._node(decomposition.root, waiting, costs)
        assert not waiting, "each filter and negation fits in a bag"
        heads = tuple(range(len(self.rule.heads)))
        return RulePlan(
            self.rule,
            "hd",
            "",
            self.width,
            (Root(heads, tree),),
            tuple(self.nodes.values()),
            decomposition,
            self.last,
            (self.standard_cost, cost),
        )

    def _node(self, node: HypertreeNode, waiting: list[BodyItem], costs: PaperCosts) -> TreeNode:
        children = tuple(self._node(child, waiting, costs) for child in node.children)
        mine = [item for item in waiting if item_variables(item) <= node.bag]
        for item in mine:
            waiting.remove(item)
        cover = [self.atoms[i] for i in node.cover]
        bag, size = tuple(sorted(node.bag)), costs.size(node.bag, node.cover)
        if self.tuning.virtual and len(cover) == 1 and not mine and item_variables(cover[0]) == node.bag:
            return TreeNode(bag, cover[0], tuple(cover), children, size, None)
        items = (*cover, *mine)
        kept, atom = self._keep_join(items, node.bag, False, size, bag)
        return TreeNode(bag, atom, items, children, size, kept)

    def _keep_join(
        self,
        items: Sequence[BodyItem],
        columns: frozenset[str],
        counted: bool,
        estimate: float,
        bag: tuple[str, ...],
    ) -> tuple[Predicate, Atom]:
        """What keeps the join of some items, and the atom by which it is matched."""
        node, atom = make_node(
            items, columns, self.nodes, counted, estimate, self._salt(bag), self.numbers.most_orders
        )
        self.nodes.setdefault(node.predicate.name, node)
        return node.predicate, atom


def _merge_roots(roots: Sequence[Root]) -> tuple[Root, ...]:
    """Heads whose roots have the same body as one."""
    by_body: dict[frozenset[BodyItem], Root] = {}
    for root in roots:
        assert root.rule is not None
        key = frozenset(root.rule.body)
        if key in by_body:
            before = by_body[key]
            assert before.rule is not None
            rule = Rule(before.rule.heads + root.rule.heads, before.rule.body, before.rule.span)
            by_body[key] = Root(before.heads + root.heads, before.tree, rule)
        else:
            by_body[key] = root
    return tuple(by_body.values())


def _total(decomposition: Decomposition, costs: PaperCosts) -> float:
    total = 0.0
    for node in decomposition.nodes():
        total += costs.node(node.bag, node.cover)
        for child in node.children:
            total += costs.edge(node.bag, node.cover, child.bag, child.cover)
    return total
