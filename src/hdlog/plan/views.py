"""View trees: decompositions whose nodes are covered by atoms and by what their children send them.

A node stands for a connected set C of variables. Its bag is the separator S, the other variables of the items that touch C,
with some K of C; what is left of C falls apart into the sets of its children. A child sends its view: the join of
its items and of its own children's views, projected to its separator and the output variables below it, with a count
for each row. So a node is covered by atoms and by views of any size, not by a few atoms (F-IVM of Nikolic and Olteanu; the
width is that of a tree decomposition). The tree of least estimated cost is found by dynamic programming over the sets C.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

from hdlog.plan.estimates import Estimator, Factor
from hdlog.plan.nodes import item_variables
from hdlog.program.model import Atom, BodyItem, Negation


class TooManyViews(Exception):
    """The search would take too long; the rule is evaluated in another way."""


@dataclass(frozen=True, eq=False)
class ViewNode:
    """A node of a view tree; its view has the `columns`."""

    bag: frozenset[str]
    columns: frozenset[str]
    items: tuple[BodyItem, ...]
    children: tuple[ViewNode, ...]
    cost: float
    """of its whole subtree"""
    view: Factor

    def nodes(self) -> Iterator[ViewNode]:
        yield self
        for child in self.children:
            yield from child.nodes()


class ViewPlanner:
    """The best view trees of a rule, for sets of output variables."""

    def __init__(
        self,
        items: Sequence[BodyItem],
        estimator: Estimator,
        meets: bool = True,
        recursive: bool = False,
        budget: int | None = None,
    ) -> None:
        self.output: frozenset[str] = frozenset()
        self.numbers = estimator.numbers
        self.updates = self.numbers.often if recursive else self.numbers.once
        self.estimator = estimator
        self.meets = meets
        self.items = [(item, item_variables(item)) for item in items]
        self.factors = {
            number: estimator.factor(item) for number, item in enumerate(items) if isinstance(item, Atom)
        }
        self._known: dict[tuple[frozenset[str], frozenset[str]], ViewNode | None] = {}
        self._seen = 0
        self._budget = self.numbers.view_budget if budget is None else budget

    def find_best(self, output: frozenset[str]) -> ViewNode | None:
        """The tree over all variables for some of them; what has nothing to do with them is worked out once."""
        self.output = output
        everything = frozenset().union(*(names for _, names in self.items))
        ground = [n for n, (_, names) in enumerate(self.items) if not names]
        return self._find_best(everything, frozenset(), ground)

    def _tree(self, variables: frozenset[str]) -> ViewNode | None:
        key = (variables, variables & self.output)
        if key not in self._known:
            touching = [names for _, names in self.items if names & variables]
            separator = frozenset().union(*touching) - variables
            self._known[key] = self._find_best(variables, separator, [])
        return self._known[key]

    def _find_best(
        self, variables: frozenset[str], separator: frozenset[str], ground: Sequence[int]
    ) -> ViewNode | None:
        touching = [n for n, (_, names) in enumerate(self.items) if names & variables]
        best: ViewNode | None = None
        for kept in _subsets(sorted(variables), self.numbers.wide_bag):
            node = self._node(variables, separator, kept, touching, ground, best.cost if best else inf)
            if node is not None and (best is None or node.cost < best.cost):
                best = node
        return best

    def _node(
        self,
        variables: frozenset[str],
        separator: frozenset[str],
        kept: frozenset[str],
        touching: Sequence[int],
        ground: Sequence[int],
        limit: float,
    ) -> ViewNode | None:
        """The node that keeps `kept` of the variables in its bag, if it is cheaper than the limit."""
        self._seen += 1
        if self._seen > self._budget:
            raise TooManyViews
        bag = separator | kept
        columns = separator | (variables & self.output)
        children = []
        cost = 0.0
        for below in self._split_apart(variables - kept, touching):
            child = self._tree(below)
            if child is None or self._is_virtual(child):
                return None
            children.append(child)
            cost += child.cost + self.numbers.kept_row * max(1, len(child.columns) - 1) * child.view.rows
            if cost >= limit:
                return None
        self._seen += 4  # what follows takes so much longer
        here = [*ground, *(n for n in touching if self.items[n][1] <= bag)]
        factors = [self.factors[n] for n in here if n in self.factors] + [c.view for c in children]
        factor_names = frozenset().union(*(f.distinct for f in factors))
        needed = columns | frozenset().union(*(self.items[n][1] for n in here))
        if not needed <= factor_names:
            return None
        most = (limit - cost) / self.updates
        shortest, average = self.estimator.evaluation(factors, columns, self.meets, most)
        cost += shortest + self.updates * average
        if cost >= limit:
            return None
        view = self.estimator.project(factors, columns)
        return ViewNode(bag, columns, tuple(self.items[n][0] for n in here), tuple(children), cost, view)

    def _split_apart(self, variables: frozenset[str], touching: Iterable[int]) -> list[frozenset[str]]:
        """The connected parts of some variables."""
        parts: list[frozenset[str]] = [frozenset((v,)) for v in sorted(variables)]
        for number in touching:
            names = self.items[number][1] & variables
            if len(names) > 1:
                joined = [p for p in parts if p & names]
                parts = [p for p in parts if not p & names] + [frozenset().union(*joined)]
        return parts

    def _is_virtual(self, node: ViewNode) -> bool:
        """A single atom without projection: the parent had better use the atom."""
        if node.children or len(node.items) != 1 or isinstance(node.items[0], Negation):
            return False
        return item_variables(node.items[0]) <= node.columns


def _subsets(names: Sequence[str], wide: int) -> Iterator[frozenset[str]]:
    """All non-empty subsets, small ones first; of many names only small ones."""
    largest = len(names) if len(names) <= wide else 3
    for size in range(1, largest + 1):
        yield from map(frozenset, combinations(names, size))
