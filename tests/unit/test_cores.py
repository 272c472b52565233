"""The core of a join, against one worked out by hand and one worked out naively."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.protocol import Version
from hdlog.program.terms import Iri, Term, Variable

A, B, C = Variable("a"), Variable("b"), Variable("c")
NODES = [Iri(f"n{i}") for i in range(6)]
Rows = set[tuple[int, ...]]


def core(atoms: list[tuple[Rows, tuple[Term, ...]]]) -> list[tuple[float, dict[str, float]]]:
    engine = ColumnarEngine()
    engine.dictionary.encode_terms(NODES)
    versions = []
    for rows, terms in atoms:
        columns = [np.array(c, np.uint32) for c in zip(*sorted(rows), strict=True)] or [
            np.empty(0, np.uint32) for _ in terms
        ]
        facts = engine.facts_from_columns(columns, len(rows))
        versions.append((Version(engine.table(len(terms)), (facts,)), terms))
    return engine.hints.core(versions)


def consistent(atoms: list[tuple[Rows, tuple[Variable, ...]]]) -> list[Rows]:
    """The facts that are left when nothing more can be ruled out."""
    left = [rows for rows, _ in atoms]
    while True:
        values: dict[str, set[int]] = {}
        for rows, (_, terms) in zip(left, atoms, strict=True):
            for i, term in enumerate(terms):
                here = {row[i] for row in rows}
                values[term.name] = values.get(term.name, here) & here
        fewer = [
            {r for r in rows if all(r[i] in values[t.name] for i, t in enumerate(terms))}
            for rows, (_, terms) in zip(left, atoms, strict=True)
        ]
        if fewer == left:
            return left
        left = fewer


PAIRS = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)
SINGLES = st.sets(st.tuples(st.integers(0, 5)), max_size=5)


@given(PAIRS, PAIRS, PAIRS, SINGLES)
def test_nothing_that_could_match_is_left_out(x: Rows, y: Rows, z: Rows, w: Rows) -> None:
    atoms: list[tuple[Rows, tuple[Variable, ...]]] = [(x, (A, B)), (y, (B, C)), (z, (C, A)), (w, (A,))]
    found = core([(rows, tuple(terms)) for rows, terms in atoms])
    for least, (rows, _), (size, values) in zip(consistent(atoms), atoms, found, strict=True):
        assert len(least) <= size <= len(rows)
        assert all(n <= len(NODES) for n in values.values())


def test_a_chain_that_closes_once_has_one_fact_in_each_atom() -> None:
    chain: Rows = {(0, 1), (2, 3), (4, 5)}
    found = core([(chain, (A, B)), ({(1, 0), (3, 3)}, (B, C)), ({(0, 0), (1, 4)}, (C, A))])
    assert found == [(1.0, {"a": 1.0, "b": 1.0}), (1.0, {"b": 1.0, "c": 1.0}), (1.0, {"c": 1.0, "a": 1.0})]


def test_constants_and_repeated_variables_count() -> None:
    found = core([({(0, 0), (1, 2), (3, 3)}, (A, A)), ({(0, 4), (3, 5)}, (A, NODES[4]))])
    assert found == [(1.0, {"a": 1.0}), (1.0, {"a": 1.0})]
