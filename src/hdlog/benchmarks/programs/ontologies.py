"""Reasoning over taxonomies: classification in EL, as for GALEN; RDFS; rules of OWL RL."""

from __future__ import annotations

import numpy as np

from hdlog.benchmarks.programs.program import Chance, Program, Tables, facts

EL = """
sub(a, a) :- concept(a).
sub(a, c) :- sub(a, b), told(b, c).
sub(a, d) :- sub(a, b), sub(a, c), both(b, c, d).
some(a, r, b) :- sub(a, c), exists(c, r, b).
some(a, s, b) :- some(a, r, b), subRole(r, s).
sub(a, d) :- some(a, r, b), sub(b, c), implied(r, c, d).
some(a, t, c) :- some(a, r, b), some(b, s, c), chain(r, s, t).
"""
RDFS = """
subClass(a, c) :- told(a, c).
subClass(a, c) :- subClass(a, b), told(b, c).
subProperty(p, r) :- toldProperty(p, r).
subProperty(p, r) :- subProperty(p, q), toldProperty(q, r).
triple(s, q, o) :- triple(s, p, o), subProperty(p, q).
type(s, c) :- triple(s, p, o), hasDomain(p, c).
type(o, c) :- triple(s, p, o), hasRange(p, c).
type(s, d) :- type(s, c), subClass(c, d).
"""
OWL = """
triple(o, q, s) :- triple(s, p, o), inverse(p, q).
triple(o, p, s) :- triple(s, p, o), symmetric(p).
triple(s, p, u) :- triple(s, p, o), triple(o, p, u), transitive(p).
triple(s, q, o) :- triple(s, p, o), toldProperty(p, q).
triple(s, r, u) :- triple(s, p, o), triple(o, q, u), chain(p, q, r).
type(s, c) :- triple(s, p, o), type(o, d), someValuesFrom(c, p, d).
type(s, d) :- type(s, c), told(c, d).
type(s, c) :- triple(s, p, o), hasDomain(p, c).
type(o, c) :- triple(s, p, o), hasRange(p, c).
type(s, e) :- type(s, c), type(s, d), both(c, d, e).
same(o, u) :- functional(p), triple(s, p, o), triple(s, p, u), o != u.
"""


def _taxonomy(classes: int, chance: Chance) -> list[np.ndarray]:
    """Each class below one or two that came before it, most of them near the top."""
    below = np.repeat(np.arange(1, classes), 1 + chance.happens(classes - 1, 0.2))
    above = (below * chance.draw.random(len(below)) ** 2).astype(np.int64)
    return facts(below, np.minimum(above, below - 1))


def generate_el(size: float, chance: Chance) -> Tables:
    concepts, roles = int(12_000 * size), 40
    count = int(25_000 * size)
    left = chance.uniform(count, concepts)
    general = 40  # concepts: what follows from others is general, as in GALEN
    return {
        "concept": facts(np.arange(concepts)),
        "told": _taxonomy(concepts, chance),
        "both": facts(
            chance.skewed(count // 4, concepts, 0.4),
            chance.skewed(count // 4, concepts, 0.4),
            chance.uniform(count // 4, general),
        ),
        "exists": facts(left, chance.skewed(count, roles, 0.8), chance.near(left, concepts, concepts / 30)),
        "implied": facts(
            chance.skewed(count // 2, roles, 0.8),
            chance.uniform(count // 2, concepts),
            chance.uniform(count // 2, general),
        ),
        "subRole": facts(np.arange(1, roles), np.arange(1, roles) // 3),
        "chain": facts([30, 31, 35], [30, 33, 36], [30, 31, 35]),
    }


def generate_rdfs(size: float, chance: Chance) -> Tables:
    classes, properties, things = int(3_000 * size**0.5), int(300 * size**0.5), int(25_000 * size)
    count = int(60_000 * size)
    return {
        "told": _taxonomy(classes, chance),
        "toldProperty": _taxonomy(properties, chance),
        "hasDomain": facts(np.arange(properties), chance.uniform(properties, classes)),
        "hasRange": facts(np.arange(properties), chance.uniform(properties, classes)),
        "triple": facts(
            chance.uniform(count, things),
            chance.skewed(count, properties, 0.7),
            chance.skewed(count, things, 0.5),
        ),
        "type": facts(np.arange(things), chance.skewed(things, classes, 0.3)),
    }


def generate_owl(size: float, chance: Chance) -> Tables:
    classes, properties, things = int(1_500 * size**0.5), 60, int(30_000 * size)
    count = int(60_000 * size)
    subjects = chance.uniform(count, things)
    return {
        "told": _taxonomy(classes, chance),
        "toldProperty": facts(np.arange(40, 60), np.arange(40, 60) // 2),
        "inverse": facts(np.arange(0, 10), np.arange(0, 10) + 10),
        "symmetric": facts([20, 21, 22]),
        "transitive": facts([23, 24]),
        "functional": facts([25, 26, 27]),
        "chain": facts([28, 29, 30], [31, 32, 33], [34, 35, 36]),
        "someValuesFrom": facts(
            chance.uniform(200, classes), chance.uniform(200, properties), chance.uniform(200, classes)
        ),
        "both": facts(
            chance.uniform(200, classes), chance.uniform(200, classes), chance.uniform(200, classes)
        ),
        "hasDomain": facts(np.arange(properties), chance.uniform(properties, classes)),
        "hasRange": facts(np.arange(properties), chance.uniform(properties, classes)),
        "triple": facts(subjects, chance.uniform(count, properties), chance.near(subjects, things, 400.0)),
        "type": facts(np.arange(things), chance.skewed(things, classes, 0.3)),
    }


PROGRAMS = (
    Program("el", EL, generate_el, (0.3, 1.5)),
    Program("rdfs", RDFS, generate_rdfs, (1.0, 10.0)),
    Program("owl-rl", OWL, generate_owl, (1.0, 6.0)),
)
