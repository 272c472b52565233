"""A graph with labelled edges and Zipf degrees as columns of ids, and five cyclic rules over it.

The same vertices are hubs at both ends of an edge, so that cycles close in many ways, and a join of neighbouring
edges is far larger than the set of facts it is for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdlog.program.model import Predicate

Ids = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Shape:
    """A rule: edges (label, subject, object) of the body, pairs of the heads, over numbered variables."""

    name: str
    body: tuple[tuple[int, int, int], ...]
    heads: tuple[tuple[int, int], ...]

    def head_names(self) -> list[str]:
        return [f"{self.name}_{x}_{y}" for x, y in self.heads]

    def __str__(self) -> str:
        heads = [f"<{n}>[?v{x}, ?v{y}]" for n, (x, y) in zip(self.head_names(), self.heads, strict=True)]
        body = [f"<{edge(label).name}>[?v{s}, ?v{o}]" for label, s, o in self.body]
        return f"{', '.join(heads)} :- {', '.join(body)} ."


SHAPES = (
    Shape(
        "cycle", ((0, 0, 5), (2, 1, 0), (2, 1, 2), (3, 2, 3), (4, 4, 3), (0, 4, 5)), ((0, 1), (2, 3), (4, 5))
    ),
    Shape(
        "ring", ((5, 0, 1), (4, 2, 1), (4, 2, 3), (5, 4, 3), (2, 5, 0), (2, 5, 4)), ((0, 1), (2, 3), (4, 5))
    ),
    Shape(
        "petal", ((3, 0, 2), (0, 0, 4), (5, 3, 1), (6, 3, 2), (5, 5, 1), (0, 5, 4)), ((0, 1), (2, 3), (4, 5))
    ),
    Shape(
        "flower", ((3, 0, 1), (4, 0, 2), (5, 0, 3), (4, 0, 4), (3, 5, 3), (4, 5, 4)), ((0, 1), (2, 3), (4, 5))
    ),
    Shape("clique", ((1, 0, 2), (2, 0, 3), (1, 1, 0), (1, 1, 3), (2, 2, 1), (2, 2, 3)), ((0, 1), (2, 3))),
)


def edge(label: int) -> Predicate:
    return Predicate(f"edge{label}", 2)


def rules(shapes: tuple[Shape, ...] = SHAPES) -> str:
    return "\n".join(map(str, shapes))


def generate(
    edges: int = 1_000_000,
    labels: int = 60,
    vertices: int = 6_000,
    label_exponent: float = 0.3,
    subject_exponent: float = 0.6,
    object_exponent: float = 0.8,
    seed: int = 1,
) -> dict[Predicate, list[Ids]]:
    """Exactly `edges` edges, none twice in a label; vertices are numbers, in random order of degree."""
    chance = np.random.default_rng(seed)
    order = chance.permutation(vertices).astype(np.uint64)
    subjects, objects = _zipf(vertices, subject_exponent), _zipf(vertices, object_exponent)

    def draw(shares: NDArray[np.float64], size: int) -> NDArray[np.uint64]:
        return order[np.searchsorted(shares[:-1], chance.random(size), "right")]

    tables = {}
    for label, size in enumerate(_sizes(edges, labels, label_exponent)):
        assert size <= vertices**2 / 2, f"{vertices} vertices are too few for {size} edges of a label"
        keys = np.empty(0, np.uint64)
        while len(keys) < size:
            drawn = draw(subjects, size) << np.uint64(32) | draw(objects, size)
            keys = np.unique(np.concatenate([keys, drawn]))
        keys = np.sort(chance.permutation(keys)[:size])
        tables[edge(label)] = [(keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)]
    return tables


def _zipf(count: int, exponent: float) -> NDArray[np.float64]:
    """Shares of the first 1, 2, ... of `count`, the n-th of which has weight n ** -exponent."""
    shares = np.cumsum(np.arange(1, count + 1) ** -exponent)
    return np.asarray(shares / shares[-1])


def _sizes(edges: int, labels: int, exponent: float) -> list[int]:
    """Edges by label, the largest first; they add up."""
    bounds = np.rint(edges * _zipf(labels, exponent)).astype(np.int64)
    return [int(size) for size in np.diff(bounds, prepend=0)]
