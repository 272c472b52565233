"""A hypergraph and the costs of nodes and tree edges into its cheapest hypertree decomposition.

The minimum is over the complete decompositions in normal form of width at most k, after Scarcello,
Greco and Leone, "Weighted hypertree decompositions and optimal query plans" (2007). They get
completeness from a vertex of its own in every edge, which makes this normal form. A *part* is a set
of edges with its connector, the vertices it shares with the bag above; the root is the node of the
part with all edges and no connector. The node of a part C has

- a cover of at most k edges, at least one of them of C, whose vertices include the connector; an edge
  outside C is in the cover only if the connector needs it;
- the bag var(cover) & var(C), the largest that the special condition allows;
- one child per [bag]-component of C, and one leaf {e} per edge e of C within the bag but not in the
  cover. So an edge of C is at home in the topmost node whose bag contains it, or in a leaf below.

A decomposition of any width can be brought into this form without making it wider, so the width is
exact. A *guard*, the vertices of a negated atom, say, has to lie within a bag: it is an edge that links
the components and is in no cover. (An edge outside C adds nothing to the bag that the connector does
not have. The paper allows it even where it is not needed; that joins an atom twice to filter a node.)

The search is dynamic programming over the parts with branch and bound. Sets are bits of integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from operator import attrgetter
from typing import NamedTuple, Protocol

from hdlog.plan.decomposition import Decomposition, Node
from hdlog.plan.hypergraph import Hypergraph
from hdlog.tuning import Numbers


class BudgetExceeded(Exception):
    """A hypergraph too large or too dense for an exact answer."""


class Costs(Protocol):
    """Finite, and not negative."""

    def node(self, bag: frozenset[str], cover: tuple[int, ...]) -> float: ...

    def edge(
        self,
        parent_bag: frozenset[str],
        parent_cover: tuple[int, ...],
        child_bag: frozenset[str],
        child_cover: tuple[int, ...],
    ) -> float: ...


def hypertree_width(
    hypergraph: Hypergraph,
    at_most: int | None = None,
    guards: Iterable[frozenset[str]] = (),
    budget: int = Numbers.decomposition_budget,
) -> int | None:
    """The least width of a complete decomposition, 0 without edges; None if that is above `at_most`."""
    guards = tuple(guards)
    if not hypergraph.edges:
        return None if any(guards) else 0
    largest = len(hypergraph.edges) if at_most is None else min(at_most, len(hypergraph.edges))
    if largest and not guards and hypergraph.is_acyclic():
        return 1
    for width in range(1 if guards else 2, largest + 1):
        search = _Search(hypergraph, guards, width, budget)
        if search.succeeds():
            return width
        budget = search.budget
    return None


def decompose(
    hypergraph: Hypergraph,
    costs: Costs,
    width: int,
    guards: Iterable[frozenset[str]] = (),
    budget: int = Numbers.decomposition_budget,
) -> Decomposition | None:
    """The cheapest decomposition of width at most `width`, or None if there is none."""
    guards = tuple(guards)
    if not hypergraph.edges:
        return None if any(guards) else Decomposition(hypergraph, Node(frozenset(), ()))
    search = _Search(hypergraph, guards, width, budget)
    if not search.succeeds():
        return None
    return Decomposition(hypergraph, _Optimiser(search, costs).tree())


class _Part(NamedTuple):
    """Edges and guards that hang together, and the vertices they share with the bag above."""

    members: int
    connector: int


class _Search:
    """What covers a part can have, into which parts a bag splits it, and whether that succeeds."""

    def __init__(
        self, hypergraph: Hypergraph, guards: tuple[frozenset[str], ...], width: int, budget: int
    ) -> None:
        self.width = width
        self.budget = self._left = budget
        sets = (*hypergraph.edges, *(g for g in guards if g))
        self.names = sorted(frozenset().union(*sets))
        place = {name: 1 << i for i, name in enumerate(self.names)}
        self.vertices = {1 << i: sum(place[v] for v in members) for i, members in enumerate(sets)}
        self.incident = {
            v: sum(m for m, inside in self.vertices.items() if inside & v) for v in place.values()
        }
        self.edges = (1 << len(hypergraph.edges)) - 1
        self.whole = _Part((1 << len(sets)) - 1, 0)
        self.numbers = tuple(self.vertices)[: len(hypergraph.edges)]
        self._possible: dict[_Part, bool] = {}
        self._splits: dict[tuple[int, int], tuple[int, tuple[_Part, ...]]] = {}

    def least_width(self) -> int:
        """A lower bound: vertices linked with each other lie in one bag, which has to be covered."""
        linked = {v: self.scope(_Part(members, 0)) for v, members in self.incident.items()}
        least = 1
        for start in linked:
            clique, common = start, linked[start] & ~start
            while common:
                vertex = max(_bits(common), key=lambda v: (linked[v] & common).bit_count())
                clique |= vertex
                common &= linked[vertex] & ~vertex
            reach = max((self.vertices[e] & clique).bit_count() for e in self.numbers)
            least = max(least, -(-clique.bit_count() // max(reach, 1)))
        return least

    def scope(self, part: _Part) -> int:
        """var(C)"""
        vertices = 0
        for member in _bits(part.members):
            vertices |= self.vertices[member]
        return vertices

    def succeeds(self) -> bool:
        return self.least_width() <= self.width and self.is_possible(self.whole)

    def is_possible(self, part: _Part) -> bool:
        """Does the part have a decomposition at all?"""
        known = self._possible.get(part)
        if known is None:
            known = self._possible[part] = self._has_decomposition(part)
        return known

    def _has_decomposition(self, part: _Part) -> bool:
        tried = set()
        for _, bag in self.covers(part):
            if bag not in tried:
                tried.add(bag)
                if all(self.is_possible(p) for p in self.split(part, bag)[1]):
                    return True
        return False

    def covers(self, part: _Part) -> Iterator[tuple[int, int]]:
        """Every cover that the normal form allows for the node of a part, once, and its bag.

        Larger covers come before those they contain: they split a part into smaller ones.
        """
        members, connector = part
        own = members & self.edges
        scope = self.scope(part)
        vertices = self.vertices
        reach = max((vertices[e] & connector).bit_count() for e in self.numbers)
        # A cover, its vertices, what it leaves of the connector, the edges it may get and how many.
        stack = [(0, 0, connector, self.edges, self.width)]
        while stack:
            cover, bag, uncovered, allowed, left = stack.pop()
            if uncovered:
                if uncovered.bit_count() > left * reach:
                    continue
                choice = min((self.incident[v] & allowed for v in _bits(uncovered)), key=int.bit_count)
            elif left:
                stack.append((cover, bag, 0, 0, 0))
                choice = allowed & own
            else:
                self.look()
                if cover & own and (not cover & ~own or self._are_needed(cover & ~own, cover, connector)):
                    yield cover, bag & scope
                continue
            while choice:
                edge = choice & -choice
                choice ^= edge
                # A cover with this edge is not to be found again with one of the next.
                allowed &= ~edge
                inside = vertices[edge]
                stack.append((cover | edge, bag | inside, uncovered & ~inside, allowed, left - 1))

    def _are_needed(self, foreign: int, cover: int, connector: int) -> bool:
        for edge in _bits(foreign):
            others = 0
            for other in _bits(cover & ~edge):
                others |= self.vertices[other]
            if not connector & ~others:
                return False
        return True

    def look(self) -> None:
        self.budget -= 1
        if self.budget < 0:
            raise BudgetExceeded(
                f"gave up after {self._left} covers of parts of a body with {self.edges.bit_length()} atoms and "
                f"{len(self.names)} variables, looking for decompositions of width {self.width}"
            )

    def split(self, part: _Part, bag: int) -> tuple[int, tuple[_Part, ...]]:
        """The edges of a part within a bag, and the parts into which the bag splits the others."""
        key = (part.members, bag)
        known = self._splits.get(key)
        if known is None:
            known = self._splits[key] = self._split(part.members, bag)
        return known

    def _split(self, members: int, bag: int) -> tuple[int, tuple[_Part, ...]]:
        inside = 0
        parts = []
        rest = members
        while rest:
            seed = rest & -rest
            component, vertices = seed, self.vertices[seed]
            frontier = vertices & ~bag
            if not frontier:
                inside |= seed
            while frontier:
                vertex = frontier & -frontier
                frontier ^= vertex
                for member in _bits(self.incident[vertex] & members & ~component):
                    component |= member
                    frontier |= self.vertices[member] & ~bag & ~vertices
                    vertices |= self.vertices[member]
            rest &= ~component
            if component & ~inside:
                parts.append(_Part(component, vertices & bag))
        return inside & self.edges, tuple(parts)


@dataclass(slots=True, eq=False)
class _Candidate:
    """A node that a part may have."""

    label: tuple[int, int]
    bag: frozenset[str]
    cover: tuple[int, ...]
    leaves: int
    """The edges within the bag that are to be at home in leaves below."""
    parts: tuple[_Part, ...]
    cost: float
    """Of the node alone."""
    low: float
    """The subtree costs at least this; when `children` are chosen, it costs just this."""
    children: list[_Candidate] | None = field(default=None)


_low = attrgetter("low")


class _Optimiser:
    def __init__(self, search: _Search, costs: Costs) -> None:
        self.search = search
        self.costs = costs
        self._candidates: dict[_Part, list[_Candidate]] = {}
        self._node_costs: dict[tuple[int, int], float] = {}
        self._leaves_costs: dict[int, float] = {}
        self._edge_costs: dict[tuple[tuple[int, int], tuple[int, int]], float] = {}
        self._bags: dict[int, frozenset[str]] = {}
        self._covers: dict[int, tuple[int, ...]] = {}

    def tree(self) -> Node:
        best = self.find_cheapest(self.search.whole, None, inf)
        assert best, "a part that is possible has a cheapest subtree"
        return _tree(best[1])

    def find_cheapest(
        self, part: _Part, parent: _Candidate | None, bound: float
    ) -> tuple[float, _Candidate] | None:
        """The cheapest subtree of a part with the edge to its parent, unless it costs `bound` or more."""
        best = None
        candidates = self.candidates(part)
        for candidate in candidates:
            if candidate.low >= bound:
                break
            edge = self.edge_cost(parent, candidate) if parent else 0.0
            cost = self.subtree(candidate, bound - edge)
            if cost is not None and edge + cost < bound:
                bound = edge + cost
                best = (bound, candidate)
        if len(candidates) > 1:
            candidates.sort(key=_low)
        return best

    def subtree(self, candidate: _Candidate, bound: float) -> float | None:
        """The cost of the cheapest subtree under a candidate, or None if it is `bound` or more."""
        if candidate.children is None:
            candidate.low = max(candidate.low, self.find_least(candidate))
            if candidate.low < bound:
                self.choose(candidate, bound)
        return candidate.low if candidate.low < bound else None

    def choose(self, candidate: _Candidate, bound: float) -> None:
        """Give a candidate its cheapest children, or note that its subtree costs `bound` or more."""
        vertices = self.search.vertices
        parts = [*(_Part(e, vertices[e]) for e in _bits(candidate.leaves)), *candidate.parts]
        lows = [self.find_low(part) for part in parts]
        cost = candidate.cost
        children = []
        for i, part in enumerate(parts):
            best = self.find_cheapest(part, candidate, bound - cost - sum(lows[i + 1 :]))
            if best is None:
                candidate.low = bound
                return
            cost += best[0]
            children.append(best[1])
        candidate.low = cost
        candidate.children = children

    def find_least(self, candidate: _Candidate) -> float:
        """What its subtree costs at least, by what is known of its parts."""
        known = candidate.cost + self.leaves_cost(candidate.leaves)
        for part in candidate.parts:
            known += self.find_low(part)
        return known

    def find_low(self, part: _Part) -> float:
        """What the subtree of a part costs at least, without the edge to its parent."""
        known = self._candidates.get(part)
        return known[0].low if known else 0.0

    def leaves_cost(self, edges: int) -> float:
        cost = self._leaves_costs.get(edges)
        if cost is None:
            cost = sum(self.node_cost((e, self.search.vertices[e])) for e in _bits(edges))
            self._leaves_costs[edges] = cost
        return cost

    def candidates(self, part: _Part) -> list[_Candidate]:
        """The nodes that a part may have, by what their subtrees are known to cost at least."""
        known = self._candidates.get(part)
        if known is None:
            search = self.search
            known = self._candidates[part] = []
            for cover, bag in search.covers(part):
                inside, parts = search.split(part, bag)
                if all(search.is_possible(p) for p in parts):
                    known.append(self.candidate(cover, bag, inside & ~cover, parts))
            known.sort(key=lambda candidate: (candidate.low, candidate.cover))
        return known

    def candidate(self, cover: int, bag: int, leaves: int, parts: tuple[_Part, ...]) -> _Candidate:
        label = (cover, bag)
        cost = self.node_cost(label)
        candidate = _Candidate(label, self.vertices_of(bag), self.edges_of(cover), leaves, parts, cost, cost)
        candidate.low = self.find_least(candidate)
        return candidate

    def node_cost(self, label: tuple[int, int]) -> float:
        cost = self._node_costs.get(label)
        if cost is None:
            cover, bag = label
            cost = _check_cost(self.costs.node(self.vertices_of(bag), self.edges_of(cover)))
            self._node_costs[label] = cost
        return cost

    def edge_cost(self, parent: _Candidate, child: _Candidate) -> float:
        key = (parent.label, child.label)
        cost = self._edge_costs.get(key)
        if cost is None:
            self.search.look()
            cost = self.costs.edge(parent.bag, parent.cover, child.bag, child.cover)
            self._edge_costs[key] = _check_cost(cost)
        return cost

    def vertices_of(self, bag: int) -> frozenset[str]:
        if bag not in self._bags:
            self._bags[bag] = frozenset(self.search.names[v.bit_length() - 1] for v in _bits(bag))
        return self._bags[bag]

    def edges_of(self, cover: int) -> tuple[int, ...]:
        if cover not in self._covers:
            self._covers[cover] = tuple(e.bit_length() - 1 for e in _bits(cover))
        return self._covers[cover]


def _tree(candidate: _Candidate) -> Node:
    assert candidate.children is not None, "a chosen candidate has chosen children"
    return Node(candidate.bag, candidate.cover, tuple(_tree(child) for child in candidate.children))


def _check_cost(cost: float) -> float:
    assert 0 <= cost < inf, f"expected a cost that is finite and not negative, got {cost}"
    return cost


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest
        number ^= lowest
