"""Terms and pairs that nothing refers to go, and nobody notices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.tuning import Numbers
from tests.engines import ON_SPARK, Reasoner
from tests.properties.test_maintenance import check_state, maintain, told, tunings, wide_covers
from tests.strategies import Fact, Features

pytestmark = pytest.mark.skipif(ON_SPARK, reason="Spark keeps texts in files and frames")
FEATURES = [Features(nested=True, cycles=True), Features(skolems=True, correlated=False)]


@pytest.mark.slow
@given(st.data())
def test_updates_are_exact_where_every_one_is_tidied_after(data: st.DataObject) -> None:
    with wide_covers(data):
        tuning = data.draw(tunings()).steered(worth_tidying=-1_000_000)
        maintain(data, data.draw(st.sampled_from(FEATURES)), tuning=tuning)


PROGRAM = """
    long[?x, ?n] :- p[?x, ?y, ?z], BIND(STRLEN(?y) AS ?n) .
    key[?k] :- p[?x, ?y, ?z], FILTER(?z > 5), BIND(SKOLEM("k", ?x, SKOLEM("z", ?z)) AS ?k) .
    many[?x, ?n] :- AGGREGATE(p[?x, ?y, ?z] ON ?x BIND COUNT(?y) AS ?n) .
    ring[?x] :- e[?x, ?y], e[?y, ?z], e[?z, ?x] .
"""


@pytest.mark.slow
def test_what_comes_and_goes_leaves_nothing_behind() -> None:
    columnar = ColumnarEngine(numbers=Numbers(worth_tidying=1000))
    reasoner = Reasoner(PROGRAM, method="hd", engine=columnar)
    reasoner.update(add={"p": [(1, "stays", 9)], "e": [(1, 2), (2, 3), (3, 1)]})
    first = reasoner.facts("key")
    before = told_rows(reasoner)
    sizes = []
    for number in range(20):
        facts = [(i, f"text {number} {i}", i + number) for i in range(500)]
        change = reasoner.update(add={"p": facts})
        went = reasoner.update(delete={"p": facts})
        assert told(change)[0] == told(went)[1]
        sizes.append(len(columnar.dictionary) + columnar.pairs.size)
    assert max(sizes[10:]) <= max(sizes[:10])
    assert told_rows(reasoner) == before
    # Facts that were given out before still tell what they were.
    assert first.rows() == reasoner.facts("key").rows()
    check_state(reasoner, reasoner.program, {f for f in told_rows(reasoner) if f[0].name in "pe"})


def told_rows(reasoner: Reasoner) -> set[Fact]:
    return {(p, row) for p in reasoner.counts() for row, _, _ in reasoner.tables()[p]}
