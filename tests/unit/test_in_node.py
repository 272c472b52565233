"""How many rows the evaluation of a node goes through."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hdlog.engines.columnar.context import ColumnarVersion
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.columnar.facts import Facts
from hdlog.engines.columnar.relation import Relation
from hdlog.engines.protocol import Allow, Version
from hdlog.maintenance.standard import StandardModule
from hdlog.program.model import Predicate
from hdlog.program.normalise import normalise
from hdlog.program.terms import Iri, Term
from hdlog.text import parse

MEMBERS, OTHERS, PETALS = 20, 200_000, 60


class Watched(ColumnarEngine):
    """Remembers the longest result of a join."""

    longest = 0

    def join(
        self, left: Relation, version: ColumnarVersion, terms: Sequence[Term], allow: Allow | None = None
    ) -> Relation:
        rows = super().join(left, version, terms, allow)
        self.longest = max(self.longest, len(rows))
        return rows


def test_rows_that_a_meeting_made_equal_are_added_up_before_the_next_join() -> None:
    # A community in a large sparse graph that has just changed: two sources, so its lists are not worth making.
    engine = Watched()
    engine.dictionary.encode_terms([Iri(f"n{i}") for i in range(OTHERS)])

    def facts(*columns: np.ndarray) -> Facts:
        return engine.facts_from_columns([c.astype(np.uint32) for c in columns], len(columns[0]))

    members, everyone = np.arange(MEMBERS), np.arange(MEMBERS, OTHERS)
    inside = np.repeat(members, MEMBERS), np.tile(members, MEMBERS)
    edges = np.concatenate([inside[0], everyone]), np.concatenate([inside[1], everyone])
    half = np.random.default_rng(1).random(len(edges[0])) < 0.5
    petals = facts(np.repeat(np.arange(PETALS), MEMBERS), np.tile(members, PETALS))
    start, edge, petal = engine.table(1), engine.table(2), engine.table(2)
    engine.grow(start, facts(members), "recursive")
    engine.grow(edge, facts(*(c[half] for c in edges)), "recursive")
    engine.grow(petal, petals, "recursive")
    program = parse("h[?a, ?c, ?d] :- s[?a], e[?d, ?a], e[?f, ?a], e[?d, ?g], e[?f, ?g], p[?c, ?a] .")
    (rule,) = normalise(program).rules
    module = StandardModule(engine, rule, in_node=True)
    found = module.derive_all(
        {
            (Predicate("s", 1), True): Version(start),
            (Predicate("e", 2), True): Version(edge, (facts(*(c[~half] for c in edges)),)),
            (Predicate("p", 2), True): Version(petal),
        }
    )
    matches = MEMBERS**4 * PETALS
    assert found[0].weights().sum() == matches
    assert engine.longest == MEMBERS**4
