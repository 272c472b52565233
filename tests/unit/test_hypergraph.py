"""Bodies as hypergraphs: acyclicity and components."""

from __future__ import annotations

import pytest

from hdlog.plan.hypergraph import Hypergraph, of_body
from hdlog.program.model import Atom
from hdlog.text import parse


def graph(*edges: str) -> Hypergraph:
    """One edge per word, one vertex per letter."""
    return Hypergraph(tuple(frozenset(edge) for edge in edges))


def body(text: str) -> Hypergraph:
    return of_body([item for item in parse(text).rules[0].body if isinstance(item, Atom)])


def test_vertices_are_those_of_all_edges() -> None:
    assert graph("ab", "", "bc").vertices == frozenset("abc")
    assert graph().vertices == frozenset()


def test_a_body_has_an_edge_per_atom_and_a_vertex_per_variable() -> None:
    assert body("h[?x] :- p[?x, ?y, ?x], q[?y, 1], p[?x, ?y, ?x], r[2] .") == Hypergraph(
        (frozenset("xy"), frozenset("y"), frozenset("xy"), frozenset())
    )


def test_wildcards_link_nothing() -> None:
    assert body("h[?x] :- p[?x, _], q[?x, _, _] .") == graph("x", "x")


@pytest.mark.parametrize(
    "edges",
    [
        (),
        ("",),
        ("", ""),
        ("a",),
        ("ab", "ab"),
        ("ab", "bc", "cd"),
        ("ab", "ac", "ad"),
        ("ab", "cd"),
        ("ab", "cd", "", "a", "abe"),
        ("ab", "bc", "ca", "abc"),  # the large edge takes the triangle in
        ("abc", "cde", "efa", "ace"),
        ("abc", "bcd", "cde"),
    ],
)
def test_acyclic(edges: tuple[str, ...]) -> None:
    assert graph(*edges).is_acyclic()


@pytest.mark.parametrize(
    "edges",
    [
        ("ab", "bc", "ca"),
        ("ab", "bc", "cd", "da"),
        ("abc", "cde", "efa"),
        ("ab", "bc", "ca", "cd", "de", ""),
        ("xy", "ab", "bc", "ca"),
        ("abc", "abd", "acd", "bcd"),
        ("ab", "bc", "ca", "ab", "abd"),
    ],
)
def test_cyclic(edges: tuple[str, ...]) -> None:
    assert not graph(*edges).is_acyclic()


def test_components_are_linked_outside_the_separator() -> None:
    path = graph("ab", "bc", "cd", "de", "ac")
    assert path.components(frozenset()) == (frozenset({0, 1, 2, 3, 4}),)
    assert path.components(frozenset("c")) == (frozenset({0, 1, 4}), frozenset({2, 3}))
    assert path.components(frozenset("ac")) == (frozenset({0, 1}), frozenset({2, 3}))


def test_edges_within_the_separator_are_in_no_component() -> None:
    assert graph("ab", "", "c").components(frozenset("ab")) == (frozenset({2}),)


def test_components_among_some_edges() -> None:
    assert graph("ab", "bc", "cd").components(frozenset(), [2, 0]) == (frozenset({0}), frozenset({2}))


def test_an_edge_can_join_several_components() -> None:
    assert graph("ab", "cd", "ef", "bde").components(frozenset()) == (frozenset({0, 1, 2, 3}),)
