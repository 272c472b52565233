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
    mask: int
    """the columns, as the planner has them"""
    is_virtual: bool
    """whether it is just an atom"""

    def nodes(self) -> Iterator[ViewNode]:
        yield self
        for child in self.children:
            yield from child.nodes()


class ViewPlanner:
    """The best view trees of a rule, for sets of output variables. Sets of variables are bits of numbers in here."""

    def __init__(
        self,
        items: Sequence[BodyItem],
        estimator: Estimator,
        meets: bool = True,
        recursive: bool = False,
        budget: int | None = None,
        most: float = inf,
    ) -> None:
        """Trees that cost `most` or more are passed over."""
        self.numbers = estimator.numbers
        self.updates = self.numbers.often if recursive else self.numbers.once
        self.estimator = estimator
        self.meets = meets
        self.items = items
        self.names = sorted(frozenset().union(*map(item_variables, items)))
        self.masks = [self._mask(item_variables(item)) for item in items]
        self.factors = {
            number: estimator.factor(item) for number, item in enumerate(items) if isinstance(item, Atom)
        }
        self.output = 0
        self._known: dict[tuple[int, int], ViewNode | None] = {}
        self._sets: dict[int, frozenset[str]] = {}
        self._seen = 0
        self._budget = self.numbers.view_budget if budget is None else budget
        self._most = most

    def _mask(self, names: Iterable[str]) -> int:
        return sum(1 << self.names.index(name) for name in names)

    def _names(self, mask: int) -> frozenset[str]:
        if mask not in self._sets:
            self._sets[mask] = frozenset(name for i, name in enumerate(self.names) if mask >> i & 1)
        return self._sets[mask]

    def find_best(self, output: frozenset[str]) -> ViewNode | None:
        """The tree over all variables for some of them; what has nothing to do with them is worked out once."""
        self.output = self._mask(output)
        ground = [n for n, mask in enumerate(self.masks) if not mask]
        return self._find_best((1 << len(self.names)) - 1, 0, ground)

    def _tree(self, variables: int) -> ViewNode | None:
        key = (variables, variables & self.output)
        if key not in self._known:
            touched = 0
            for mask in self.masks:
                if mask & variables:
                    touched |= mask
            self._known[key] = self._find_best(variables, touched & ~variables, ())
        return self._known[key]

    def _find_best(self, variables: int, separator: int, ground: Sequence[int]) -> ViewNode | None:
        touching = [n for n, mask in enumerate(self.masks) if mask & variables]
        best: ViewNode | None = None
        for kept in _subsets(variables, self.numbers.wide_bag):
            node = self._node(variables, separator, kept, touching, ground, best.cost if best else self._most)
            if node is not None and (best is None or node.cost < best.cost):
                best = node
        return best

    def _node(
        self,
        variables: int,
        separator: int,
        kept: int,
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
        for below in self._split_apart(variables & ~kept, touching):
            child = self._tree(below)
            if child is None or child.is_virtual:
                return None
            children.append(child)
            cost += child.cost + self.numbers.kept_row * max(1, len(child.columns) - 1) * child.view.rows
            if cost >= limit:
                return None
        self._seen += 4  # what follows takes so much longer
        here = [*ground, *(n for n in touching if not self.masks[n] & ~bag)]
        needed = columns
        given = 0
        for n in here:
            needed |= self.masks[n]
            given |= self.masks[n] if n in self.factors else 0
        for child in children:
            given |= child.mask
        if needed & ~given:
            return None
        factors = [self.factors[n] for n in here if n in self.factors] + [c.view for c in children]
        most = (limit - cost) / self.updates
        names = self._names(columns)
        shortest, average = self.estimator.evaluation(factors, names, self.meets, most)
        cost += shortest + self.updates * average
        if cost >= limit:
            return None
        view = self.estimator.project(factors, names)
        items = tuple(self.items[n] for n in here)
        # A single atom without projection: the parent had better use the atom.
        only_atom = not children and len(here) == 1 and not isinstance(items[0], Negation)
        is_virtual = only_atom and not self.masks[here[0]] & ~columns
        return ViewNode(self._names(bag), names, items, tuple(children), cost, view, columns, is_virtual)

    def _split_apart(self, variables: int, touching: Iterable[int]) -> list[int]:
        """The connected parts of some variables, by the first of each."""
        parts: list[int] = []
        rest = variables
        while rest:
            part = rest & -rest
            before = 0
            while part != before:
                before = part
                for number in touching:
                    if self.masks[number] & part:
                        part |= self.masks[number] & variables
            parts.append(part)
            rest &= ~part
        return parts


def _subsets(variables: int, wide: int) -> Iterator[int]:
    """All non-empty subsets, small ones first; of many variables only small ones."""
    bits = [1 << i for i in range(variables.bit_length()) if variables >> i & 1]
    largest = len(bits) if len(bits) <= wide else 3
    for size in range(1, largest + 1):
        yield from map(sum, combinations(bits, size))
