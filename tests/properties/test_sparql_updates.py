"""Random updates in SPARQL, with rules beside them: the assertions are those that pyoxigraph has, and the rest is evaluation from scratch."""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest

from hdlog import Predicate
from hdlog.program.ntriples import term_text
from tests.engines import ON_SPARK, Reasoner
from tests.sparql import GRAPHS, LITERALS, NODES, PREFIX, PROPERTIES, TYPE, VARIABLES, QueryMaker, make_quads

RULES = """
PREFIX e: <http://e/>
e:linked[?x, ?y] :- e:p[?x, ?y] .
e:linked[?x, ?z] :- e:linked[?x, ?y], e:q[?y, ?z] .
e:p[?x, ?y] :- e:r[?x, ?y], e:z[?y, ?y] .
e:quoted[?s, ?g] :- [?s, ?p, ?o] ?g .
"""


class UpdateMaker(QueryMaker):
    """Operations whose patterns ask only for what is asserted: rules are applied by us alone."""

    def operation(self) -> str:
        kind = self.chance.random()
        if kind < 0.25:
            return f"INSERT DATA {{ {self.quads(data=True)} }}"
        if kind < 0.4:
            return f"DELETE DATA {{ {self.quads(data=True)} }}"
        if kind < 0.5:
            return f"DELETE WHERE {{ {self.quads(data=False)} }}"
        if kind < 0.8:
            given = self.pick("", "", f"WITH {self.pick(*GRAPHS)} ")
            parts = [f"DELETE {{ {self.quads(data=False)} }}", f"INSERT {{ {self.quads(data=False)} }}"]
            chosen = parts if self.chance.random() < 0.5 else [self.pick(*parts)]
            return f"{given}{' '.join(chosen)} WHERE {self.group(1)}"
        graph = self.pick("DEFAULT", "NAMED", "ALL", *(f"GRAPH {g}" for g in GRAPHS))
        if kind < 0.84:
            return f"{self.pick('CLEAR', 'DROP')} SILENT {graph}"
        if kind < 0.92:
            source, target = (self.pick("DEFAULT", *(f"GRAPH {g}" for g in GRAPHS)) for _ in range(2))
            return f"{self.pick('ADD', 'COPY', 'MOVE')} SILENT {source} TO {target}"
        return f"CREATE SILENT GRAPH {self.pick(*GRAPHS)}"

    def quads(self, data: bool) -> str:
        lines = []
        for _ in range(self.chance.randrange(1, 4)):
            triple = self.plain_triple(data)
            where = self.chance.random()
            lines.append(triple if where < 0.7 else f"GRAPH {self.pick(*GRAPHS)} {{ {triple} }}")
        return " ".join(lines)

    def plain_triple(self, data: bool) -> str:
        names = [] if data else [*VARIABLES, *VARIABLES]
        s = self.pick(*names, *NODES)
        o = self.pick(*names, *NODES, self.pick(*LITERALS))
        if self.chance.random() < 0.15:
            return f"{s} a {self.pick(f'<{PREFIX}C>', f'<{PREFIX}D>')} ."
        return f"{s} {self.pick(*PROPERTIES)} {o} ."

    def path(self, depth: int) -> str:
        return str(self.pick(*PROPERTIES, f"<{TYPE}>"))


def asserted(reasoner: Reasoner) -> set[str]:
    """What is asserted, as lines of N-Quads."""
    lines = set()
    for predicate in reasoner.core.predicates():
        table = reasoner.core.driver.kept.find(predicate)
        if table is None:  # rules name it, and it has no facts
            continue
        engine = reasoner.core.engine
        facts = engine.keep(engine.select_asserted(table, engine.facts(table)))
        for row in reasoner.core.decode(predicate, facts).rows():
            lines.add(_quad(predicate, [term_text(term) for term in row]))
    return lines


def _quad(predicate: Predicate, terms: list[str]) -> str:
    graph = [terms.pop()] if predicate.has_graph else []
    plain = predicate.without_graph()
    if plain.arity == 1:
        terms = [terms[0], f"<{TYPE}>", f"<{plain.name}>"]
    else:
        terms = [terms[0], f"<{plain.name}>", terms[1]]
    return " ".join([*terms, *graph])


def check(seed: int, updates: int) -> int:
    chance = random.Random(seed)
    data = make_quads(chance, 15)
    store = ox.Store()
    store.load(data.encode(), format=ox.RdfFormat.N_QUADS)
    with_rules = chance.random() < 0.5
    reasoner = Reasoner(RULES if with_rules else None)
    reasoner.update(add=list(ox.parse(data.encode(), format=ox.RdfFormat.N_QUADS)))
    maker = UpdateMaker(chance)
    compared = 0
    for _ in range(updates):
        operations = [maker.operation() for _ in range(chance.choice([1, 1, 2]))]
        if with_rules:  # a pattern sees what was derived, and so it would change other assertions
            operations = [o for o in operations if "WHERE" not in o]
        text = " ;\n".join(operations)
        if not text:
            continue
        try:
            store.update(text)
        except SyntaxError:
            continue
        reasoner.sparql_update(text)
        compared += 1
        found = asserted(reasoner)
        expected = _quads(store)
        assert found == expected, f"{text}\nmissing {expected - found}\nmore {found - expected}"
    again = Reasoner(RULES if with_rules else None)
    again.update(add=list(store))
    assert again.counts() == reasoner.counts()
    return compared


def _quads(store: ox.Store) -> set[str]:
    return {
        " ".join(map(str, quad.triple))
        + ("" if isinstance(quad.graph_name, ox.DefaultGraph) else f" {quad.graph_name}")
        for quad in store
    }


@pytest.mark.skipif(ON_SPARK, reason="as on the other engine")
@pytest.mark.parametrize("seed", range(8))
def test_assertions_are_those_of_pyoxigraph(seed: int) -> None:
    assert check(seed, 25) > 0
