"""Closures of several shapes, and what is recursive in more than one place: same generation, dependencies, access control."""

from __future__ import annotations

import numpy as np

from hdlog.benchmarks.programs.program import Chance, Program, Tables, facts

CLOSURE = """
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
DOUBLING = """
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
"""
GENERATION = """
sg(x, y) :- up(x, p), up(y, p).
sg(x, y) :- up(x, a), sg(a, b), up(y, b).
"""
PACKAGES = """
candidate(p, v) :- version(p, v), !yanked(p, v).
requires(p, v, q, w) :- candidate(p, v), depends(p, v, q, low, high), candidate(q, w), w >= low, w <= high.
reached(p, v) :- installed(p, v), candidate(p, v).
reached(q, w) :- reached(p, v), requires(p, v, q, w).
conflict(p, v, q, w) :- reached(p, v), excludes(p, v, q, w), reached(q, w).
diamond(p, q, r) :- reached(p, v), requires(p, v, q, a), requires(p, v, r, b), requires(q, a, s, c), requires(r, b, s, d), c != d, q < r.
"""
ACCESS = """
member(u, g) :- joins(u, g).
member(u, h) :- member(u, g), within(g, h).
under(f, f) :- folder(f).
under(f, d) :- under(f, e), parent(e, d).
role(u, r, d) :- member(u, g), grants(g, r, d).
role(u, s, d) :- role(u, r, d), includes(r, s).
may(u, a, f) :- role(u, r, d), allows(r, a), under(f, d), !denied(u, f).
denied(u, f) :- denies(u, d), under(f, d).
shared(u, v) :- owns(u, f), may(v, a, f), writes(a), u != v.
"""


def generate_sparse(size: float, chance: Chance) -> Tables:
    """Edges to what comes soon, in many components: paths are long and few."""
    start = chance.uniform(int(100_000 * size), int(100_000 * size))
    return {"edge": facts(start, start + 1 + chance.uniform(len(start), 4) * 25_000)}


def generate_long(size: float, chance: Chance) -> Tables:
    """Chains of 400 vertices."""
    start = np.arange(int(20_000 * size))
    return {"edge": facts(start[start % 400 < 399], start[start % 400 < 399] + 1)}


def generate_chains(size: float, chance: Chance) -> Tables:
    """Chains of 60 vertices."""
    start = np.arange(int(60_000 * size))
    return {"edge": facts(start[start % 60 < 59], start[start % 60 < 59] + 1)}


def generate_dense(size: float, chance: Chance) -> Tables:
    """A graph in which most vertices reach most others."""
    vertices = int(900 * size**0.5)
    return {"edge": facts(chance.uniform(4 * vertices, vertices), chance.skewed(4 * vertices, vertices, 0.4))}


def generate_tree(size: float, chance: Chance) -> Tables:
    """A forest of families; some parents have many children."""
    people = int(40_000 * size)
    children = np.arange(people)
    place = children % 100
    parents = children - place + (place * chance.draw.random(people) ** 1.5 / 2).astype(np.int64)
    return {"up": facts(children[place > 0], parents[place > 0])}


def generate_packages(size: float, chance: Chance) -> Tables:
    packages, versions = int(2_000 * size), 8
    names = np.repeat(np.arange(packages), versions)
    numbers = np.tile(np.arange(versions), packages)
    count = 5 * len(names) // 2
    at = chance.uniform(count, len(names))
    target = np.minimum(chance.skewed(count, packages, 0.6), packages - 1)
    low = chance.uniform(count, versions)
    gone = chance.happens(len(names), 0.05)
    chosen = chance.uniform(packages // 20, len(names))
    other, others = chance.uniform(count // 10, len(names)), chance.uniform(count // 10, len(names))
    return {
        "version": facts(names, numbers),
        "yanked": facts(names[gone], numbers[gone]),
        "depends": facts(names[at], numbers[at], target, low, low + chance.uniform(count, 3)),
        "installed": facts(names[chosen], numbers[chosen]),
        "excludes": facts(names[other], numbers[other], names[others], numbers[others]),
    }


def generate_access(size: float, chance: Chance) -> Tables:
    users, groups, folders = int(4_000 * size), int(400 * size), int(20_000 * size)
    numbers = np.arange(folders)
    parents = np.where(numbers > 0, numbers // 5, 0)
    joined = int(12_000 * size)
    granted = int(900 * size)
    return {
        "joins": facts(chance.uniform(joined, users), chance.skewed(joined, groups, 0.5)),
        "within": facts(np.arange(1, groups), (np.arange(1, groups) - 1) // 4),
        "folder": facts(numbers),
        "parent": facts(numbers[1:], parents[1:]),
        "grants": facts(
            chance.uniform(granted, groups),
            chance.uniform(granted, 6),
            chance.near(chance.uniform(granted, folders), folders, 50.0) // 2 + folders // 2,
        ),
        "includes": facts(np.arange(5), np.arange(5) + 1),
        "allows": facts(np.arange(6), np.arange(6) % 3),
        "writes": facts(np.array([0, 1])),
        "denies": facts(chance.uniform(users // 10, users), chance.uniform(users // 10, folders)),
        "owns": facts(chance.uniform(folders, users), numbers),
    }


PROGRAMS = (
    Program("closure-sparse", CLOSURE, generate_sparse, (1.0, 8.0)),
    Program("closure-long", CLOSURE, generate_long, (1.0, 4.0)),
    Program("closure-dense", CLOSURE, generate_dense, (1.0, 8.0)),
    Program("closure-doubling", DOUBLING, generate_chains, (1.0, 4.0)),
    Program("same-generation", GENERATION, generate_tree, (1.0, 4.0)),
    Program("packages", PACKAGES, generate_packages, (1.0, 8.0)),
    Program("access", ACCESS, generate_access, (1.0, 8.0)),
)
