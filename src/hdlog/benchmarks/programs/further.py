"""Programs that were written when plans had been tuned, and after which nothing was tuned: taint, supply chains, citations, networks, families."""

from __future__ import annotations

import numpy as np

from hdlog.benchmarks.programs.program import Chance, Program, Tables, facts

TAINT = """
seed(p, v) :- main(p), tracked(v).
reach(p, d, n, d) :- seed(p, d), entry(p, n).
reach(p, d, m, f) :- reach(p, d, n, e), next(n, m), !call(n, _), transfer(n, e, f).
seed(q, f) :- reach(p, d, n, e), call(n, q), pass(n, e, f).
reach(p, d, m, h) :- reach(p, d, n, e), call(n, q), pass(n, e, f), reach(q, f, x, g), exit(q, x), back(n, g, h), next(n, m).
leak(n, e) :- reach(_, _, n, e), sink(n, e).
leaks(p, c) :- main(p), c = count : { leak(_, _) }.
"""
SUPPLY = """
includes(a, b) :- part(a, b).
includes(a, c) :- includes(a, b), part(b, c).
needs(f, p) :- makes(f, a), includes(a, p).
sources(p, c) :- critical(p), c = count : { supplies(_, p) }.
scarce(p) :- sources(p, c), c < 3.
local(f, p) :- needs(f, p), supplies(s, p), within(f, r), within(s, r).
exposed(f, p) :- needs(f, p), scarce(p), !local(f, p).
rivals(f, g) :- exposed(f, p), exposed(g, p), makes(f, a), makes(g, b), alike(a, b), f != g.
partners(s, t) :- supplies(s, p), supplies(t, q), part(a, p), part(a, q), within(s, r), within(t, r), s < t.
"""
CITATIONS = """
coauthor(a, b) :- wrote(a, p), wrote(b, p), a != b.
builds(p, q) :- cites(p, q).
builds(p, r) :- builds(p, q), cites(q, r), about(p, t), about(r, t).
school(a, b) :- coauthor(a, b), coauthor(b, c), coauthor(a, c).
mutual(a, b) :- wrote(a, p), wrote(b, q), cites(p, q), wrote(a, r), wrote(b, s), cites(s, r).
ring(a, b, c) :- wrote(a, p), wrote(b, q), wrote(c, r), cites(p, q), cites(q, r), about(p, t), about(q, t), about(r, t), coauthor(a, c).
outsider(a) :- wrote(a, _), !school(a, _).
"""
NETWORK = """
link(x, y) :- cable(x, y).
link(y, x) :- cable(x, y).
carries(x, y, c) :- link(x, y), route(x, c, y), !blocked(x, y, c).
reach(x, y, c) :- carries(x, y, c).
reach(x, z, c) :- reach(x, y, c), carries(y, z, c).
loop(x, c) :- reach(x, x, c).
exposed(h, g) :- host(h, x, c), host(g, y, c), reach(x, y, c), zone(h, a), zone(g, b), trusts(b, a).
detour(x, y, c) :- carries(x, z, c), carries(z, y, c), link(x, y), !carries(x, y, c).
square(x, z) :- link(x, y), link(y, z), link(z, w), link(w, x), x < z, y < w.
"""
FAMILIES = """
ancestor(x, y) :- parent(x, y).
ancestor(x, z) :- ancestor(x, y), parent(y, z).
sibling(x, y) :- parent(x, p), parent(y, p), x != y.
cousin(x, y) :- parent(x, a), parent(y, b), sibling(a, b).
cousin(x, y) :- parent(x, a), parent(y, b), cousin(a, b).
inLaw(x, y) :- married(x, a), sibling(a, b), married(y, b).
kin(x, y) :- cousin(x, y), lives(x, t), lives(y, t), bears(x, n), bears(y, n).
feud(x, y) :- kin(x, y), owns(x, f), owns(y, g), beside(f, g), !inLaw(x, y).
pair(x, y) :- lives(x, t), lives(y, t), parent(x, a), parent(y, b), lives(a, s), lives(b, s), friend(a, b), x < y.
"""


def generate_taint(size: float, chance: Chance) -> Tables:
    """Procedures of 40 statements each that call each other mostly nearby; values pass through most statements as they are."""
    procedures, length, values = int(500 * size), 40, 12
    nodes = procedures * length
    node = np.arange(nodes)
    inside = node % length < length - 1
    jumps = chance.uniform(nodes // 8, nodes)
    jumps = jumps[jumps % length < length - 3]
    calling = node[chance.happens(nodes, 0.08) & inside & (node % length > 0)]
    calling = calling[calling // length < procedures - 1]
    called = np.minimum(calling // length + 1 + chance.skewed(len(calling), 30, 0.5), procedures - 1)
    every, kept = np.repeat(node, values), np.tile(np.arange(values), nodes)
    stays = (kept == 0) | chance.happens(len(every), 0.93)
    copied = chance.uniform(nodes // 2, nodes)
    passed, back = np.repeat(calling, 3), np.repeat(calling, 3)
    return {
        "main": facts(np.arange(5)),
        "tracked": facts(np.arange(values)),
        "entry": facts(np.arange(procedures), np.arange(procedures) * length),
        "exit": facts(np.arange(procedures), np.arange(procedures) * length + length - 1),
        "next": facts(
            np.concatenate([node[inside], jumps]),
            np.concatenate([node[inside] + 1, jumps + 2]),
        ),
        "transfer": facts(
            np.concatenate([every[stays], copied]),
            np.concatenate([kept[stays], chance.uniform(len(copied), values)]),
            np.concatenate([kept[stays], chance.uniform(len(copied), values)]),
        ),
        "call": facts(calling, called),
        "pass": facts(
            np.concatenate([passed, calling]),
            np.concatenate([chance.uniform(len(passed), values), np.zeros(len(calling), np.int64)]),
            np.concatenate([chance.uniform(len(passed), values), np.zeros(len(calling), np.int64)]),
        ),
        "back": facts(
            np.concatenate([back, calling]),
            np.concatenate([chance.uniform(len(back), values), np.zeros(len(calling), np.int64)]),
            np.concatenate([chance.uniform(len(back), values), np.zeros(len(calling), np.int64)]),
        ),
        "sink": facts(chance.uniform(nodes // 50, nodes), chance.uniform(nodes // 50, values)),
    }


def generate_supply(size: float, chance: Chance) -> Tables:
    """Assemblies above parts above parts; a few suppliers have most parts."""
    parts, factories, suppliers = int(20_000 * size), int(2_000 * size), int(3_000 * size)
    below = np.repeat(np.arange(parts // 20, parts), 2)
    above = (below * chance.draw.random(len(below)) ** 0.5 * 0.9).astype(np.int64)
    count = int(35_000 * size)
    alike = chance.uniform(parts // 2, parts // 20)
    return {
        "part": facts(above, below),
        "makes": facts(chance.uniform(2 * factories, factories), chance.uniform(2 * factories, parts // 20)),
        "supplies": facts(chance.skewed(count, suppliers, 0.7), chance.uniform(count, parts)),
        "critical": facts(chance.uniform(parts // 8, parts)),
        "within": facts(
            np.arange(factories + suppliers) * 7 % (factories + suppliers),
            chance.skewed(factories + suppliers, 40, 0.6),
        ),
        "alike": facts(alike, chance.near(alike, parts // 20, 8.0)),
    }


def generate_citations(size: float, chance: Chance) -> Tables:
    """Papers of one to five authors who write with those near them, and cite what came before, some of it far more than the rest."""
    papers, people = int(12_000 * size), int(9_000 * size)
    number = np.repeat(np.arange(papers), 1 + chance.skewed(papers, 5, 0.8))
    lead = chance.skewed(papers, people, 0.4)
    citing = np.repeat(np.arange(papers), 1 + chance.skewed(papers, 8, 0.3))
    cited = np.minimum(citing - 1, citing - 1 - chance.skewed(len(citing), max(2, papers // 4), 0.8))
    topics = max(5, int(60 * size**0.5))
    return {
        "wrote": facts(chance.near(lead[number], people, 4.0), number),
        "cites": facts(citing[cited >= 0], cited[cited >= 0]),
        "about": facts(np.arange(papers), chance.skewed(papers, topics, 0.5)),
    }


def generate_network(size: float, chance: Chance) -> Tables:
    """Leaves, spines and cores, with classes of traffic that some links do not carry."""
    leaves, spines, classes = int(160 * size**0.5), int(24 * size**0.25), 12
    leaf = np.repeat(np.arange(leaves), spines // 2)
    spine = leaves + chance.uniform(len(leaf), spines)
    cores = leaves + spines + np.arange(4)
    x = np.concatenate([leaf, np.repeat(leaves + np.arange(spines), 4), np.arange(leaves - 1)])
    y = np.concatenate([spine, np.tile(cores, spines), np.arange(1, leaves)])
    count, hosts = int(60_000 * size), int(8_000 * size)
    at = chance.uniform(count, len(x))
    turned = chance.happens(count, 0.5)
    from_, to = np.where(turned, y[at], x[at]), np.where(turned, x[at], y[at])
    barred = chance.uniform(count // 10, count)
    kind = chance.uniform(count, classes)
    place = chance.skewed(hosts, leaves, 0.3)
    return {
        "cable": facts(x, y),
        "route": facts(from_, kind, to),
        "blocked": facts(from_[barred], to[barred], kind[barred]),
        "host": facts(np.arange(hosts), place, chance.uniform(hosts, classes)),
        "zone": facts(np.arange(hosts), chance.skewed(hosts, 30, 0.5)),
        "trusts": facts(chance.uniform(40, 30), chance.uniform(40, 30)),
    }


def generate_families(size: float, chance: Chance) -> Tables:
    """Six generations in towns; children stay where their parents live, mostly."""
    each = int(5_000 * size)
    people = 6 * each
    child = np.arange(people - each)
    first = child + each + chance.uniform(len(child), 40) - 20
    first = np.clip(first, (child // each + 1) * each, (child // each + 2) * each - 1)
    second = np.minimum(first + 1, people - 1)
    towns = max(4, each // 60)
    town = (np.arange(people) % each) * towns // each
    town = np.where(chance.happens(people, 0.15), chance.uniform(people, towns), town)
    fields = np.arange(people)
    return {
        "parent": facts(np.concatenate([child, child]), np.concatenate([first, second])),
        "married": facts(np.arange(0, people - 1, 2), np.arange(1, people, 2)),
        "lives": facts(np.arange(people), town),
        "bears": facts(np.arange(people), chance.skewed(people, 300, 0.6)),
        "owns": facts(chance.near(fields, people, 30.0), fields),
        "beside": facts(fields[:-1], fields[1:]),
        "friend": facts(
            chance.uniform(2 * people, people),
            chance.near(chance.uniform(2 * people, people), people, 50.0),
        ),
    }


PROGRAMS = (
    Program("taint", TAINT, generate_taint, (0.25, 2.0)),
    Program("supply", SUPPLY, generate_supply, (1.0, 8.0)),
    Program("citations", CITATIONS, generate_citations, (1.0, 8.0)),
    Program("network", NETWORK, generate_network, (1.0, 6.0)),
    Program("families", FAMILIES, generate_families, (0.5, 4.0)),
)
