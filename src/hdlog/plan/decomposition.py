"""Complete hypertree decompositions as values, and the conditions they meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from hdlog.plan.hypergraph import Hypergraph


class InvalidDecomposition(Exception):
    """A tree that is no complete hypertree decomposition; the message names the condition it violates."""


@dataclass(frozen=True, slots=True)
class Node:
    """chi(p) is `bag`, a set of vertices; lambda(p) is `cover`, numbers of edges."""

    bag: frozenset[str]
    cover: tuple[int, ...]
    children: tuple[Node, ...] = ()

    def subtree(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.subtree()


@dataclass(frozen=True)
class Decomposition:
    hypergraph: Hypergraph
    root: Node

    @property
    def width(self) -> int:
        return max(len(node.cover) for node in self.nodes())

    @cached_property
    def _nodes(self) -> tuple[Node, ...]:
        return tuple(self.root.subtree())

    @cached_property
    def _parents(self) -> tuple[int | None, ...]:
        parents: list[int | None] = []

        def visit(node: Node, parent: int | None) -> None:
            number = len(parents)
            parents.append(parent)
            for child in node.children:
                visit(child, number)

        visit(self.root, None)
        return tuple(parents)

    def nodes(self) -> tuple[Node, ...]:
        """In preorder: the number of a node is its place here, the root is 0."""
        return self._nodes

    def parent_of(self, number: int) -> int | None:
        """The number of the parent of a node; None for the root."""
        return self._parents[number]

    def cover_vertices(self, node: Node) -> frozenset[str]:
        """var(lambda(p))"""
        return frozenset().union(*(self.hypergraph.edges[e] for e in node.cover))

    def is_home(self, node: Node, edge: int) -> bool:
        return edge in node.cover and self.hypergraph.edges[edge] <= node.bag


def verify(decomposition: Decomposition, guards: Iterable[frozenset[str]] = ()) -> None:
    """`InvalidDecomposition` unless the tree is a complete decomposition with each guard in a bag."""
    edges = decomposition.hypergraph.edges
    nodes = decomposition.nodes()
    for number, node in enumerate(nodes):
        if not all(0 <= e < len(edges) for e in node.cover) or len(set(node.cover)) < len(node.cover):
            raise InvalidDecomposition(f"cover: that of node {number}, {node.cover}, is no set of edges")
    for number, edge in enumerate(edges):
        if not any(edge <= node.bag for node in nodes):
            raise InvalidDecomposition(f"condition 1: no bag contains edge {number} {_show(edge)}")
    for vertex in sorted(set().union(*(node.bag for node in nodes))):
        tops = [
            n
            for n, node in enumerate(nodes)
            if vertex in node.bag and not _is_in_parent(decomposition, n, vertex)
        ]
        if len(tops) > 1:
            raise InvalidDecomposition(
                f"condition 2, connectedness: the nodes of {vertex} are not connected, see nodes {tops[0]} and {tops[1]}"
            )
    for number, node in enumerate(nodes):
        covered = decomposition.cover_vertices(node)
        if not node.bag <= covered:
            raise InvalidDecomposition(
                f"condition 3: the cover of node {number} lacks {_show(node.bag - covered)} of its bag"
            )
        dropped = (covered - node.bag) & frozenset().union(*(below.bag for below in node.subtree()))
        if dropped:
            raise InvalidDecomposition(
                f"condition 4, the special condition: {_show(dropped)} of the cover of node {number} "
                "comes back below it and is not in its bag"
            )
    for number, edge in enumerate(edges):
        if not any(decomposition.is_home(node, number) for node in nodes):
            raise InvalidDecomposition(f"completeness: edge {number} {_show(edge)} has no home")
    for guard in guards:
        if not any(guard <= node.bag for node in nodes):
            raise InvalidDecomposition(f"guard: no bag contains {_show(guard)}")


def _is_in_parent(decomposition: Decomposition, number: int, vertex: str) -> bool:
    parent = decomposition.parent_of(number)
    return parent is not None and vertex in decomposition.nodes()[parent].bag


def _show(vertices: Iterable[str]) -> str:
    return "{" + ", ".join(sorted(vertices)) + "}"
