"""Programs over thousands of facts with hubs and cliques, under updates of every size, against DuckDB: facts, counts, net changes."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from hdlog.program.model import Predicate
from hdlog.program.terms import Literal
from hdlog.text import parse
from hdlog.tuning import Method
from tests.duck import Duck, Rows
from tests.engines import ON_SPARK, Reasoner

pytestmark = [pytest.mark.slow, pytest.mark.skipif(ON_SPARK, reason="its own size is in the benchmarks")]
EDGE, LABEL, MARK = Predicate("e", 2), Predicate("f", 2), Predicate("m", 1)
NODES = 2500
BODIES = [
    "e[?x, ?y], f[?y, ?z]",
    "e[?x, ?y], e[?y, ?z], e[?z, ?x]",
    "e[?x, ?y], f[?y, ?z], e[?z, ?w], f[?w, ?x]",
    "e[?x, ?y], e[?y, ?z], e[?x, ?z], FILTER(?x < ?y), FILTER(?y < ?z)",
    "e[?x, ?y], f[?x, ?z], m[?x], FILTER(?y != ?z)",
    "e[?x, ?y], NOT f[?y, ?x], m[?y]",
    "e[?x, ?y], f[?y, ?z], e[?z, ?w], f[?w, ?u], e[?u, ?x]",
    "f[?x, ?y], f[?x, ?z], f[?x, ?w], FILTER(?y < ?z), FILTER(?z < ?w), m[?w]",
    "e[?x, ?y], f[3, ?y], m[?x]",
    "e[?x, ?y], m[?z], f[?z, 1]",
]
RECURSIVE = [
    "r[?x] :- m[?x] . r[?y] :- r[?x], e[?x, ?y] .",
    "s[?x, ?y] :- f[?x, ?y], m[?x] . s[?x, ?z] :- s[?x, ?y], f[?y, ?z] .",
    "g[?x, ?y] :- e[?p, ?x], e[?p, ?y], m[?p] . g[?x, ?y] :- e[?p, ?x], g[?p, ?q], e[?q, ?y], m[?x] .",
    "t[?x, ?y] :- e[?x, ?y], m[?x] . t[?x, ?y] :- t[?x, ?z], e[?z, ?w], f[?w, ?y], f[?x, ?z] .",
]


def random_program(chance: random.Random) -> str:
    rules = []
    for number, body in enumerate(chance.sample(BODIES, 4)):
        names = sorted(set(re.findall(r"\?\w", body)))
        heads = chance.sample(names, min(len(names), chance.choice([1, 2])))
        rules.append(f"p{number}[{', '.join(heads)}] :- {body} .")
    rules.append(chance.choice(RECURSIVE))
    return "\n".join(rules)


def random_graph(chance: random.Random, edges: int) -> dict[Predicate, Rows]:
    """Sparse, with a few hubs."""
    hubs = [chance.randrange(NODES) for _ in range(3)]

    def node() -> int:
        return chance.choice(hubs) if chance.random() < 0.04 else chance.randrange(NODES)

    return {
        EDGE: {(node(), chance.randrange(NODES)) for _ in range(edges)},
        LABEL: {(chance.randrange(NODES), node()) for _ in range(edges)},
        MARK: {(chance.randrange(NODES),) for _ in range(40)},
    }


def changes(
    chance: random.Random, present: dict[Predicate, Rows], edges: int
) -> Iterator[tuple[dict[Predicate, Rows], dict[Predicate, Rows]]]:
    """A graph, then a clique comes, single facts come and go, a hub goes, a quarter goes, most of it comes back, everything goes."""
    yield random_graph(chance, edges), {}
    first = chance.randrange(NODES)
    clique: Rows = {(first + a, first + b) for a in range(14) for b in range(14) if a != b}
    yield {EDGE: clique, LABEL: clique}, {}
    for _ in range(3):
        one: tuple[int, ...] = (chance.randrange(NODES), chance.randrange(NODES))
        yield {EDGE: {one}}, {LABEL: {chance.choice(sorted(present[LABEL]))}}
    hub = max({a for a, _ in present[EDGE]}, key=lambda n: sum(a == n for a, _ in present[EDGE]))
    yield {}, {EDGE: {row for row in present[EDGE] if row[0] == hub}}
    quarter = {p: set(chance.sample(sorted(rows), len(rows) // 4)) for p, rows in present.items()}
    yield {}, quarter
    yield {p: set(chance.sample(sorted(rows), len(rows) // 2)) for p, rows in quarter.items()}, {EDGE: clique}
    yield {}, {p: set(rows) for p, rows in present.items()}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ["combined", "hd"])
def test_large_updates_against_duckdb(seed: int, method: Method) -> None:
    check(seed, method, 1500)


def check(seed: int, method: Method, edges: int) -> int:
    """How many facts were compared."""
    chance = random.Random(seed)
    text = random_program(chance)
    program = parse(text)
    reasoner = Reasoner(program, method=method)
    present: dict[Predicate, Rows] = {EDGE: set(), LABEL: set(), MARK: set()}
    duck = Duck(program)
    before = duck.materialise(present)
    compared = 0
    for add, delete in changes(chance, present, edges):
        change = reasoner.update(add, delete)
        for predicate, rows in delete.items():
            present[predicate] -= rows
        for predicate, rows in add.items():
            present[predicate] |= rows
        after = duck.materialise(present)
        for predicate, rows in after.items():
            came, went = (side.get(predicate, ()) for side in (change.added, change.removed))
            assert set(came) == rows - before.get(predicate, set()), (text, predicate)
            assert set(went) == before.get(predicate, set()) - rows, (text, predicate)
        supports = {
            (p, _numbers(row)): support
            for p, found in reasoner.tables().items()
            if p in after
            for row, _, support in found
            if support
        }
        assert supports == {
            key: n for key, n in duck.derivations().items() if not _rewritten(text, key[0])
        } | {key: n for key, n in supports.items() if _rewritten(text, key[0])}
        before = after
        compared += sum(map(len, after.values()))
    return compared


def _numbers(row: tuple[object, ...]) -> tuple[int, ...]:
    return tuple(int(t.lexical) for t in row if isinstance(t, Literal))


def _rewritten(text: str, predicate: Predicate) -> bool:
    """Whether a rule for it has a part that is only asked whether it matches, and so counts once."""
    return any(
        line.startswith(f"{predicate.name}[") and "m[?z], f[?z, 1]" in line for line in text.splitlines()
    )
