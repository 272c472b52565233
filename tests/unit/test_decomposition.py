"""What verify rejects, and the decompositions of known families and of the paper's rules."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

import pytest

from hdlog.plan.decompose import BudgetExceeded, decompose, hypertree_width
from hdlog.plan.decomposition import Decomposition, InvalidDecomposition, Node, verify
from hdlog.plan.hypergraph import Hypergraph, of_body
from hdlog.program.model import Atom
from hdlog.text import read
from tests.unit.test_hypergraph import graph

RULES = Path(__file__).parents[3] / "shared" / "paper" / "rules"


class Rows:
    """A node of n atoms has 10^n rows, which a semi-join with it reads."""

    def node(self, bag: frozenset[str], cover: tuple[int, ...]) -> float:
        return 10.0 ** len(cover)

    def edge(
        self,
        parent_bag: frozenset[str],
        parent_cover: tuple[int, ...],
        child_bag: frozenset[str],
        child_cover: tuple[int, ...],
    ) -> float:
        return 2 * (10.0 ** len(parent_cover) + 10.0 ** len(child_cover))


def node(bag: str, cover: Iterable[int], *children: Node) -> Node:
    return Node(frozenset(bag), tuple(cover), children)


SQUARE = graph("ab", "bc", "cd", "da", "")
"""A cycle and a ground atom."""


def square(*children: Node) -> Decomposition:
    return Decomposition(SQUARE, node("abc", [0, 1], *children))


VALID = square(node("acd", [2, 3]), node("", [4]))


def test_a_complete_decomposition_is_verified() -> None:
    verify(VALID, guards=[frozenset("ac"), frozenset("abc"), frozenset()])


def test_nodes_are_numbered_in_preorder() -> None:
    chain = Decomposition(
        graph("a", "b", "c", "d"), node("a", [0], node("b", [1], node("c", [2])), node("d", [3]))
    )
    assert [n.cover for n in chain.nodes()] == [(0,), (1,), (2,), (3,)]
    assert [chain.parent_of(n) for n in range(4)] == [None, 0, 1, 0]
    assert (chain.width, VALID.width) == (1, 2)


def rejected(decomposition: Decomposition, message: str, guards: Iterable[frozenset[str]] = ()) -> None:
    with pytest.raises(InvalidDecomposition, match=message):
        verify(decomposition, guards)


def test_an_edge_in_no_bag_is_rejected() -> None:
    rejected(square(node("ad", [3]), node("", [4])), r"^condition 1: no bag contains edge 2 \{c, d\}$")


def test_a_vertex_in_nodes_apart_is_rejected() -> None:
    apart = square(node("cd", [2]), node("ad", [3]), node("", [4]))
    rejected(apart, "^condition 2, connectedness: the nodes of d are not connected, see nodes 1 and 2$")


def test_a_vertex_that_a_parent_lacks_is_rejected() -> None:
    below = square(node("cd", [2], node("ad", [3])), node("", [4]))
    rejected(below, "^condition 2, connectedness: the nodes of a are not connected, see nodes 0 and 2$")


def test_a_bag_beyond_its_cover_is_rejected() -> None:
    beyond = Decomposition(SQUARE, node("abc", [0], node("acd", [2, 3]), node("bc", [1]), node("", [4])))
    rejected(beyond, r"^condition 3: the cover of node 0 lacks \{c\} of its bag$")


def test_a_vertex_that_comes_back_below_its_cover_is_rejected() -> None:
    back = Decomposition(
        graph("bax", "xy", "ya"), node("ab", [0], node("abxy", [0, 2], node("xy", [1]), node("ya", [2])))
    )
    rejected(back, r"^condition 4, the special condition: \{x\} of the cover of node 0 comes back below it")


def test_an_edge_without_a_home_is_rejected() -> None:
    rejected(square(node("acd", [2, 3])), r"^completeness: edge 4 \{\} has no home$")
    rejected(
        Decomposition(graph("ab", "bc", "ac"), node("abc", [0, 1])),
        r"^completeness: edge 2 \{a, c\} has no home$",
    )


def test_a_cover_that_cuts_an_edge_is_no_home() -> None:
    cut = Decomposition(graph("ab", "bc"), node("b", [0, 1], node("bc", [1])))
    rejected(cut, r"^condition 1: no bag contains edge 0 \{a, b\}$")


def test_a_guard_in_no_bag_is_rejected() -> None:
    rejected(VALID, r"^guard: no bag contains \{b, d\}$", guards=[frozenset("a"), frozenset("bd")])


@pytest.mark.parametrize("cover", [[0, 5], [-1, 0], [0, 1, 1]])
def test_a_cover_that_is_no_set_of_edges_is_rejected(cover: list[int]) -> None:
    rejected(Decomposition(SQUARE, node("abc", cover)), "^cover: that of node 0, .* is no set of edges$")


def chain(n: int) -> Hypergraph:
    return Hypergraph(tuple(frozenset((f"x{i}", f"x{i + 1}")) for i in range(n)))


def cycle(n: int) -> Hypergraph:
    return Hypergraph(tuple(frozenset((f"x{i}", f"x{(i + 1) % n}")) for i in range(n)))


def star(n: int) -> Hypergraph:
    return Hypergraph(tuple(frozenset(("x", f"x{i}")) for i in range(n)))


def clique(n: int) -> Hypergraph:
    return Hypergraph(tuple(frozenset((f"x{i}", f"x{j}")) for i, j in combinations(range(n), 2)))


def grid(rows: int, columns: int) -> Hypergraph:
    down = [{f"x{i}.{j}", f"x{i + 1}.{j}"} for i in range(rows - 1) for j in range(columns)]
    along = [{f"x{i}.{j}", f"x{i}.{j + 1}"} for i in range(rows) for j in range(columns - 1)]
    return Hypergraph(tuple(map(frozenset, down + along)))


FAMILIES = [
    *((chain(n), 1) for n in (1, 2, 5, 20)),
    *((star(n), 1) for n in (1, 2, 5, 20)),
    *((cycle(n), 2) for n in (3, 4, 5, 6, 12, 20)),
    *((clique(n), (n + 1) // 2) for n in range(2, 7)),
    *((grid(2, n), 2) for n in (2, 3, 4)),
    (grid(3, 3), 2),
    (grid(3, 4), 2),
    (graph(""), 1),
    (graph("", ""), 1),
    (graph("ab", "cd", ""), 1),
    (graph("ab", "bc", "ca", "xy", "yz", "zx", ""), 2),
    (graph("abc", "abc", "ab", "c"), 1),
]


@pytest.mark.parametrize(("hypergraph", "width"), FAMILIES)
def test_families_have_their_width(hypergraph: Hypergraph, width: int) -> None:
    assert hypertree_width(hypergraph) == width
    assert hypertree_width(hypergraph, at_most=width) == width
    assert hypertree_width(hypergraph, at_most=width - 1) is None
    assert decompose(hypergraph, Rows(), width - 1) is None
    found = decompose(hypergraph, Rows(), width)
    assert found
    assert found.width <= width
    verify(found)


@pytest.mark.parametrize(
    ("hypergraph", "width"), [(clique(7), 4), (clique(8), 4), (grid(4, 4), 3), (clique(12), 6)]
)
def test_large_families_have_their_width(hypergraph: Hypergraph, width: int) -> None:
    assert hypertree_width(hypergraph) == width


def test_no_edges_need_no_cover() -> None:
    assert hypertree_width(graph()) == 0
    assert decompose(graph(), Rows(), 1) == Decomposition(graph(), node("", []))
    assert decompose(graph(), Rows(), 1, guards=[frozenset("a")]) is None
    assert hypertree_width(graph(), guards=[frozenset("a")]) is None


def test_a_guard_makes_a_bag_that_contains_it() -> None:
    path, ends = graph("ab", "bc", "cd"), frozenset("ad")
    assert hypertree_width(path, guards=[ends]) == 2
    assert decompose(path, Rows(), 1, guards=[ends]) is None
    found = decompose(path, Rows(), 2, guards=[ends])
    assert found
    verify(found, [ends])


def test_a_guard_with_a_variable_of_no_atom_fits_nowhere() -> None:
    assert decompose(graph("ab"), Rows(), 1, guards=[frozenset("az")]) is None
    assert hypertree_width(graph("ab"), guards=[frozenset("az")]) is None


def test_costs_choose_among_decompositions() -> None:
    class Dear(Rows):
        """Joins of neighbours in the cycle are dear, but for two of them."""

        def node(self, bag: frozenset[str], cover: tuple[int, ...]) -> float:
            return 1.0 if cover in ((1, 2), (0, 3)) else 100.0

        def edge(self, *_: object) -> float:
            return 1.0

    assert decompose(graph("ab", "bc", "cd", "da"), Dear(), 2) == Decomposition(
        graph("ab", "bc", "cd", "da"), node("abd", [0, 3], node("bcd", [1, 2]))
    )


def test_a_search_beyond_the_budget_says_so() -> None:
    message = "gave up after 10 covers .* 28 atoms and 8 variables, looking for decompositions of width 4"
    with pytest.raises(BudgetExceeded, match=message):
        decompose(clique(8), Rows(), 4, budget=10)
    with pytest.raises(BudgetExceeded):
        hypertree_width(cycle(5), budget=0)


def bodies(name: str) -> list[Hypergraph]:
    if not (RULES / name).exists():
        pytest.skip(f"{name} of the paper is not there")
    return [of_body([i for i in r.body if isinstance(i, Atom)]) for r in read(RULES / name).rules]


@pytest.mark.parametrize(
    ("name", "widths"),
    [
        ("YAGO_rules.dlog", {2: 23}),
        ("exp-rules.dlog", {2: 3}),
        ("LUBM_L.dlog", {1: 98}),
        ("LUBM_L-C.dlog", {1: 98, 2: 16}),
    ],
)
def test_the_rules_of_the_paper_have_the_width_it_says(name: str, widths: dict[int, int]) -> None:
    found = dict.fromkeys(widths, 0)
    for body in bodies(name):
        width = hypertree_width(body)
        assert width
        found[width] += 1
        for at_most in (width, width + 1):
            decomposition = decompose(body, Rows(), at_most)
            assert decomposition
            verify(decomposition)
    assert found == widths
