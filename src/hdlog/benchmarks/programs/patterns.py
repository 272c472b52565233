"""Cyclic patterns on graphs with hubs: triangles, cycles, diamonds, cliques, and a cyclic rule that feeds itself."""

from __future__ import annotations

import numpy as np

from hdlog.benchmarks.programs.program import Chance, Program, Tables, facts

TRIANGLES = """
triangle(x, y, z) :- edge(x, y), edge(y, z), edge(x, z), x < y.
inTriangle(x) :- triangle(x, _, _).
closes(x, y) :- edge(x, y), !inTriangle(x).
"""
CYCLES = """
inFour(x, z) :- edge(x, y), edge(y, z), edge(z, w), edge(w, x).
inFive(x) :- edge(x, y), edge(y, z), edge(z, w), edge(w, v), edge(v, x).
"""
DIAMONDS = """
diamond(x, w) :- edge(x, y), edge(x, z), edge(y, w), edge(z, w), y < z.
tailed(x, u) :- edge(x, y), edge(y, z), edge(z, x), edge(x, u), edge(u, v), edge(v, x).
"""
CLIQUES = """
friend(x, y) :- edge(x, y), edge(y, x).
four(x, y) :- friend(x, y), friend(x, z), friend(x, w), friend(y, z), friend(y, w), friend(z, w).
"""
SUGGESTIONS = """
knows(x, y) :- edge(x, y).
knows(x, y) :- works(x, f), works(y, f), knows(x, z), knows(z, y), lives(x, c), lives(y, c).
"""
COLLABORATORS = """
pc(x, y) :- given(x, y).
pc(x, y) :- cw(x, z1), ca(x, z2), pc(z1, y), pc(z2, y).
"""


def _graph(edges: int, vertices: int, exponent: float, chance: Chance) -> list[np.ndarray]:
    """Vertices of high degree are so at both ends."""
    order = chance.shuffle(np.arange(vertices))
    x, y = (order[chance.skewed(edges, vertices, exponent)] for _ in range(2))
    return facts(x[x != y], y[x != y])


def generate_skewed(size: float, chance: Chance) -> Tables:
    return {"edge": _graph(int(100_000 * size), int(20_000 * size), 0.55, chance)}


def generate_small_world(size: float, chance: Chance) -> Tables:
    """Edges to what is near, and back, and a few anywhere."""
    vertices = int(12_000 * size)
    x = chance.uniform(int(50_000 * size), vertices)
    y = np.where(
        chance.happens(len(x), 0.05), chance.uniform(len(x), vertices), chance.near(x, vertices, 6.0)
    )
    both = x != y
    return {"edge": facts(np.concatenate([x[both], y[both]]), np.concatenate([y[both], x[both]]))}


def generate_people(size: float, chance: Chance) -> Tables:
    people = int(20_000 * size)
    x = chance.uniform(int(50_000 * size), people)
    return {
        "edge": facts(x, chance.near(x, people, 30.0)),
        "works": facts(np.arange(people), np.arange(people) // 25),
        "lives": facts(np.arange(people), (np.arange(people) // 50) * 3 + chance.uniform(people, 3)),
    }


def generate_collaborators(size: float, chance: Chance) -> Tables:
    """The shape of the paper's running example."""
    n, k = int(300 * size), 80
    owners = np.repeat(np.arange(n), k)
    first, second = 10**6 + np.arange(n * k), 2 * 10**6 + np.arange(n * k)
    targets = 3 * 10**6 + np.tile(np.arange(k), n)
    return {
        "cw": facts(np.append(owners, n), np.append(first, 2)),
        "ca": facts(np.append(owners, n), np.append(second, 3)),
        "given": facts(np.append(first, second), np.append(targets, targets)),
    }


PROGRAMS = (
    Program("triangles", TRIANGLES, generate_skewed, (1.0, 8.0)),
    Program("cycles", CYCLES, generate_small_world, (1.0, 8.0)),
    Program("cycles-hubs", CYCLES, generate_skewed, (0.2, 0.6)),
    Program("diamonds", DIAMONDS, generate_skewed, (0.3, 1.0)),
    Program("cliques", CLIQUES, generate_small_world, (1.0, 8.0)),
    Program("suggestions", SUGGESTIONS, generate_people, (1.0, 6.0)),
    Program("collaborators", COLLABORATORS, generate_collaborators, (1.0, 8.0)),
)
