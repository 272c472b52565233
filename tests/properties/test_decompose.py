"""Widths and cheapest decompositions against searches that share nothing with the implementation.

The width is compared with the definition of hypertree decompositions on tiny hypergraphs, and with
the robber and marshals game (Gottlob, Leone, Scarcello 2003) on larger ones. The cost is compared
with the cheapest of all decompositions in normal form, listed one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from hdlog.plan.decompose import Costs, decompose, hypertree_width
from hdlog.plan.decomposition import Decomposition, Node, verify
from hdlog.plan.hypergraph import Hypergraph

Set = frozenset[str]


def sets(vertices: str, least: int = 0) -> st.SearchStrategy[Set]:
    return st.frozensets(st.sampled_from(vertices), min_size=least, max_size=3)


@st.composite
def hypergraphs(draw: st.DrawFn, vertices: str, pairs: int, others: int) -> Hypergraph:
    """Different pairs make cycles; the other edges may be empty, equal, or within each other."""
    some = st.sampled_from([frozenset(pair) for pair in combinations(vertices, 2)])
    least = draw(st.integers(0, pairs))
    edges = draw(st.lists(some, min_size=least, max_size=pairs, unique=True))
    edges += draw(st.lists(sets(vertices), min_size=not edges, max_size=others))
    return Hypergraph(tuple(draw(st.permutations(edges))))


@dataclass(frozen=True)
class Drawn:
    """A whole number for each node and each pair of nodes, at random."""

    seed: int

    def number(self, *key: object) -> float:
        return float(Random(f"{self.seed} {key}").choice((0, 1, 2, 5, 10, 40)))

    def node(self, bag: Set, cover: tuple[int, ...]) -> float:
        return self.number(sorted(bag), cover)

    def edge(
        self, parent_bag: Set, parent_cover: tuple[int, ...], child_bag: Set, child_cover: tuple[int, ...]
    ) -> float:
        return self.number(sorted(parent_bag), parent_cover, sorted(child_bag), child_cover)


def total(node: Node, costs: Costs) -> float:
    below = sum(costs.edge(node.bag, node.cover, c.bag, c.cover) + total(c, costs) for c in node.children)
    return costs.node(node.bag, node.cover) + below


def union(found: Iterable[Set]) -> Set:
    return frozenset().union(*found)


def subsets(found: Iterable[str]) -> Iterator[Set]:
    everything = sorted(found)
    return (frozenset(s) for n in range(len(everything) + 1) for s in combinations(everything, n))


def covers(hypergraph: Hypergraph, width: int) -> list[tuple[int, ...]]:
    return [c for n in range(1, width + 1) for c in combinations(range(len(hypergraph.edges)), n)]


def has_decomposition(hypergraph: Hypergraph, width: int, guards: list[Set]) -> bool:
    """By the four conditions: grow trees by one child at a time, until nothing new comes.

    Of a tree only this matters: the bag and the covered vertices of its root, the vertices of all its
    bags, and which edges and guards its bags contain.
    """
    inside = [*hypergraph.edges, *guards]
    trees: set[tuple[Set, Set, Set, frozenset[int]]] = set()
    for cover in covers(hypergraph, width):
        covered = union(hypergraph.edges[e] for e in cover)
        for bag in subsets(covered):  # condition 3
            trees.add((bag, covered, bag, frozenset(i for i, s in enumerate(inside) if s <= bag)))
    new = trees
    while new:
        found = set()
        for tree, child in (*product(trees, new), *product(new, trees - new)):
            bag, covered, below, held = tree
            child_bag, _, child_below, child_held = child
            if child_held <= held:
                continue
            if not below & child_below <= bag & child_bag:  # condition 2
                continue
            if covered & child_below <= bag:  # condition 4
                found.add((bag, covered, below | child_below, held | child_held))
        new = found - trees
        trees = trees | new
    return any(len(held) == len(inside) for *_, held in trees)  # condition 1


def marshals_win(hypergraph: Hypergraph, width: int) -> bool:
    """Can this many marshals, each on an edge, corner a robber without ever giving up a vertex?"""
    places = [union(hypergraph.edges[e] for e in cover) for cover in covers(hypergraph, width)]

    @cache
    def spaces(blocked: Set) -> list[Set]:
        free = {v: {v} for v in hypergraph.vertices - blocked}
        for edge in hypergraph.edges:
            merged = set().union(*(free[v] for v in edge - blocked))
            for v in merged:
                free[v] = merged
        return sorted({frozenset(s) for s in free.values()}, key=sorted)

    @cache
    def wins(blocked: Set, robber: Set) -> bool:
        return any(moves(blocked, robber, place) for place in places)

    def moves(blocked: Set, robber: Set, place: Set) -> bool:
        (run,) = (s for s in spaces(blocked & place) if robber <= s)
        after = [s for s in spaces(place) if s <= run]
        return all(s < robber for s in after) and all(wins(place, s) for s in after)

    return all(wins(frozenset(), robber) for robber in spaces(frozenset()))


def normal_forms(hypergraph: Hypergraph, width: int, guards: list[Set]) -> Iterator[Node]:
    """Every complete decomposition in normal form, from one vertex more in every edge."""
    own = {n: edge | {f"own {n}"} for n, edge in enumerate(hypergraph.edges)}
    links = [*own.values(), *guards]

    def trees(component: Set, above: Set) -> Iterator[Node]:
        scope = union(link for link in links if link & component)
        connector = scope & above
        for cover in covers(hypergraph, width):
            bag = union(own[e] for e in cover) & scope
            if not connector <= bag or not bag & component:
                continue
            foreign = [e for e in cover if not own[e] & component]
            if any(connector <= union(own[e] for e in cover if e != f) for f in foreign):
                continue
            below = [list(trees(c, bag)) for c in split(component - bag)]
            for children in product(*below):
                yield Node(bag & hypergraph.vertices, cover, children)

    def split(vertices: Set) -> list[Set]:
        """The components of the vertices; links through others do not count."""
        found = {v: frozenset({v}) for v in vertices}
        for link in links:
            merged = union(found[v] for v in link & vertices)
            found |= dict.fromkeys(merged, merged)
        return sorted(set(found.values()), key=sorted)

    return trees(union([*links, hypergraph.vertices]), frozenset())


@given(hypergraphs("abcd", 4, 1), st.lists(sets("abcd", least=2), max_size=1))
def test_the_width_is_that_of_the_definition(hypergraph: Hypergraph, guards: list[Set]) -> None:
    guards = [g & hypergraph.vertices for g in guards]
    width = hypertree_width(hypergraph, guards=guards)
    assert width
    assert has_decomposition(hypergraph, width, guards)
    assert width == 1 or not has_decomposition(hypergraph, width - 1, guards)


@given(hypergraphs("abcdef", 12, 2))
def test_the_width_is_the_number_of_marshals_that_corner_a_robber(hypergraph: Hypergraph) -> None:
    width = hypertree_width(hypergraph)
    assert width
    assert marshals_win(hypergraph, width)
    assert width == 1 or not marshals_win(hypergraph, width - 1)


@given(hypergraphs("abcdef", 12, 2))
def test_width_one_is_acyclicity(hypergraph: Hypergraph) -> None:
    found = decompose(hypergraph, Drawn(0), 1)
    assert (found is not None) == hypergraph.is_acyclic()


@given(
    hypergraphs("abcdef", 7, 2),
    st.lists(sets("abcdef", least=2), max_size=2),
    st.integers(1, 3),
    st.integers(0),
)
def test_what_is_found_is_a_decomposition_and_exists_from_the_width_on(
    hypergraph: Hypergraph, guards: list[Set], width: int, seed: int
) -> None:
    found = decompose(hypergraph, Drawn(seed), width, guards)
    least = hypertree_width(hypergraph, at_most=width, guards=guards)
    assert (found is None) == (least is None)
    if found and least:
        verify(found, guards)
        assert least <= found.width <= width


@given(
    hypergraphs("abcd", 4, 1),
    st.lists(sets("abcd", least=2), max_size=1),
    st.integers(1, 3),
    st.integers(0),
)
def test_no_decomposition_in_normal_form_is_cheaper(
    hypergraph: Hypergraph, guards: list[Set], width: int, seed: int
) -> None:
    assume(all(g <= hypergraph.vertices for g in guards))
    costs = Drawn(seed)
    found = decompose(hypergraph, costs, width, guards)
    everything = list(normal_forms(hypergraph, width, guards))
    assert (found is not None) == bool(everything)
    if found:
        assert total(found.root, costs) == min(total(tree, costs) for tree in everything)
    for tree in everything:
        verify(Decomposition(hypergraph, tree), guards)
