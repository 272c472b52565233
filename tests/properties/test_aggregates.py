"""Aggregated values follow the facts: after every update they are those of the definition, on values of every kind."""

from __future__ import annotations

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from hdlog.program.functions import NoValue, aggregate
from hdlog.program.model import AggregateCall, AggregateFunction, Predicate
from hdlog.program.summaries import Extremes, OutOfSight, Summary, Total
from hdlog.program.terms import (
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    Constant,
    Iri,
    Literal,
    Variable,
    double,
    integer,
    string,
)
from hdlog.tuning import Tuning
from tests.engines import ON_SPARK, Reasoner

INTEGERS: list[Constant] = [integer(n) for n in (0, 1, -1, 2, 3, 5, 8, 2**40, 2**61, -(2**62), 2**63 - 1)]
DOUBLES: list[Constant] = [double(x) for x in (0.0, -0.0, 0.1, 1.0, -2.5, 1e300, -1e300, 1.7e308)]
DECIMALS: list[Constant] = [Literal(t, XSD_DECIMAL) for t in ("0.1", "2.50", "3.0")]
OTHERS: list[Constant] = [
    Literal("01", XSD_INTEGER),
    Literal("1", XSD_DOUBLE),
    Literal("INF", XSD_DOUBLE),
    Literal("NaN", XSD_DOUBLE),
    string("a"),
    string("b"),
    Iri("http://e/a"),
]
KINDS = [
    INTEGERS,
    INTEGERS[:7],
    DOUBLES,
    INTEGERS + DOUBLES,
    INTEGERS + DECIMALS,
    INTEGERS + DOUBLES + OTHERS,
]
FUNCTIONS: list[AggregateFunction] = ["count", "sum", "min", "max", "avg", "mean"]
VALUES = Predicate("value", 3)
RULES = "".join(
    f"{name}{'_' * distinct}[?g, ?r] :- AGGREGATE(value[?g, ?k, ?v] ON ?g BIND {name.upper()}({'DISTINCT ' * distinct}?v) AS ?r) .\n"
    for name in FUNCTIONS
    for distinct in (False, True)
)
Row = tuple[Constant, ...]


@pytest.mark.slow
@settings(max_examples=max(3, settings().max_examples // 4))
@given(st.data())
def test_values_of_groups_follow_the_facts(data: st.DataObject) -> None:
    values = data.draw(st.sampled_from(KINDS))
    rows = st.tuples(st.sampled_from(INTEGERS[:2]), st.sampled_from(INTEGERS[:8]), st.sampled_from(values))
    # Small groups have summaries, too, and those of extremes see but a part of them.
    tuning = Tuning().steered(
        large_group=data.draw(st.sampled_from([0, 3, 1024])),
        kept_extremes=data.draw(st.sampled_from([1, 2, 1024])),
    )
    reasoner = Reasoner(RULES, tuning=tuning)
    present: set[Row] = set()
    for _ in range(3 if ON_SPARK else data.draw(st.integers(1, 8))):
        add = set(data.draw(st.lists(rows, max_size=8)))
        delete = set(
            data.draw(st.lists(st.sampled_from(sorted(present, key=str)), max_size=6)) if present else []
        )
        note(f"add {[tuple(map(str, r)) for r in add]}, delete {[tuple(map(str, r)) for r in delete]}")
        reasoner.update([(VALUES, r) for r in add], [(VALUES, r) for r in delete])
        present = (present - delete) | add
        for name in FUNCTIONS:
            for distinct in (False, True):
                call = AggregateCall(name, Variable("v"), Variable("r"), distinct)
                stored = reasoner.tables().get(Predicate(name + "_" * distinct, 2), [])
                assert {row for row, _, _ in stored} == expected(call, present), call


def expected(call: AggregateCall, rows: set[Row]) -> set[Row]:
    groups: dict[Constant, list[Constant]] = {}
    for group, _, value in rows:
        groups.setdefault(group, []).append(value)
    found: set[Row] = set()
    for group, values in groups.items():
        try:
            found.add((group, aggregate(call, values)))
        except NoValue:
            continue
    return found


@settings(max_examples=2 * settings().max_examples)
@given(st.data(), st.sampled_from(["sum", "avg", "mean", "min", "max"]))
def test_a_summary_gives_the_value_or_says_that_it_does_not_know(
    data: st.DataObject, name: AggregateFunction
) -> None:
    call = AggregateCall(name, Variable("v"), Variable("r"))
    values = data.draw(st.sampled_from(KINDS))
    bag: list[Constant] = list(data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=12)))
    try:
        summary = summarise(call, bag, data.draw(st.integers(1, 4)))
        for _ in range(data.draw(st.integers(0, 5))):
            goes = data.draw(st.booleans())
            if bag and goes:
                gone = data.draw(st.sampled_from(bag))
                bag.remove(gone)
                summary.change([(gone, -1)])
            else:
                bag.append(data.draw(st.sampled_from(values)))
                summary.change([(bag[-1], 1)])
            found = summary.value()
            assert found == (defined(call, bag) if bag else None)
    except OutOfSight:
        return


def summarise(call: AggregateCall, bag: list[Constant], kept: int) -> Summary:
    if call.function in ("min", "max"):
        if defined(call, bag) is None:
            raise OutOfSight
        from hdlog.program.functions import total_order_key

        ordered = sorted(set(bag), key=total_order_key, reverse=call.function == "max")
        chosen = {t: bag.count(t) for t in ordered[:kept]}
        return Extremes(call, chosen, len(chosen) == len(ordered))
    total = Total(call)
    total.change((t, 1) for t in bag)
    return total


def defined(call: AggregateCall, bag: list[Constant]) -> Constant | None:
    try:
        return aggregate(call, bag)
    except NoValue:
        return None
