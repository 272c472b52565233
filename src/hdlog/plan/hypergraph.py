"""The body of a rule as a hypergraph: variables are vertices, atoms are edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from hdlog.program.model import Atom


@dataclass(frozen=True)
class Hypergraph:
    """Edges by number; they may be empty (ground atoms), equal, or contained in each other."""

    edges: tuple[frozenset[str], ...]

    @cached_property
    def vertices(self) -> frozenset[str]:
        return frozenset().union(*self.edges)

    def is_acyclic(self) -> bool:
        """Alpha-acyclicity, by GYO reduction: does a join tree exist, one node per edge?"""
        edges = set(self.edges)
        while True:
            counts = Counter(v for e in edges for v in e)
            shared = {frozenset(v for v in e if counts[v] > 1) for e in edges}
            kept = {e for e in shared if not any(e < other for other in shared)}
            if kept == edges:
                return len(edges) <= 1
            edges = kept

    def components(
        self, separator: frozenset[str], edges: Iterable[int] | None = None
    ) -> tuple[frozenset[int], ...]:
        """The [separator]-components among `edges` (all, unless given), by smallest edge number.

        Edges of one component are linked by vertices outside the separator; an edge within the
        separator belongs to none.
        """
        components: list[tuple[set[int], frozenset[str]]] = []
        for number in sorted(range(len(self.edges)) if edges is None else set(edges)):
            members, outside = {number}, self.edges[number] - separator
            if not outside:
                continue
            apart = []
            for other, vertices in components:
                if vertices & outside:
                    members |= other
                    outside |= vertices
                else:
                    apart.append((other, vertices))
            components = [*apart, (members, outside)]
        return tuple(sorted((frozenset(members) for members, _ in components), key=min))


def of_body(atoms: Sequence[Atom]) -> Hypergraph:
    """One edge per atom; a wildcard joins with nothing, so it is no vertex."""
    return Hypergraph(tuple(frozenset(v.name for v in a.variables() if not v.is_wildcard) for a in atoms))
