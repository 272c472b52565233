"""The algebra every engine implements, against the same operation on Python counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdlog.engines.protocol import Version
from hdlog.program.model import Call
from hdlog.program.ntriples import parse_term
from hdlog.program.terms import Constant, Term, Variable, integer
from tests.engines import make_engine

Row = tuple[int, ...]
Bag = dict[Row, int]
ENGINES: list[Callable[[], Any]] = [make_engine]
X, Y, Z, W = (Variable(n) for n in "xyzw")
every_engine = pytest.mark.parametrize("make", ENGINES)


def bags(arity: int) -> st.SearchStrategy[Bag]:
    rows = st.tuples(*[st.integers(0, 3)] * arity)
    return st.dictionaries(rows, st.sampled_from([1, 1, 2, -1]), max_size=8)


def facts(engine: Any, arity: int, bag: Bag) -> Any:
    """Facts with multiplicities, through the algebra itself."""
    parts = []
    for row, count in bag.items():
        one = engine.facts_from_columns([engine.dictionary.encode_terms([integer(v)]) for v in row], 1)
        parts += [one if count > 0 else engine.negate(one)] * abs(count)
    return engine.plus(parts, arity)


def table(engine: Any, arity: int, rows: Bag) -> Any:
    made = engine.table(arity)
    engine.begin()
    engine.recount(made, facts(engine, arity, dict.fromkeys(rows, 1)), engine.no_facts(arity))
    engine.commit()
    return made


def bag(engine: Any, found: Any) -> Bag:
    return {tuple(_value(t) for t in row): n for row, n in engine.weights(found).items()}


def _value(term: Constant) -> int:
    return int(term.lexical)  # type: ignore[union-attr]


def naive_scan(given_bag: Bag, terms: tuple[Term, ...]) -> list[tuple[dict[str, int], int]]:
    found = []
    for row, count in given_bag.items():
        binding: dict[str, int] = {}
        if all(
            binding.setdefault(t.name, v) == v if isinstance(t, Variable) else _value(t) == v
            for t, v in zip(terms, row, strict=True)
        ):
            found.append((binding, count))
    return found


def naive_join(
    a: list[tuple[dict[str, int], int]], b: list[tuple[dict[str, int], int]]
) -> list[tuple[dict[str, int], int]]:
    return [({**x, **y}, m * n) for x, m in a for y, n in b if all(y[k] == v for k, v in x.items() if k in y)]


def naive_project(rows: list[tuple[dict[str, int], int]], terms: tuple[Term, ...]) -> Bag:
    total: Counter[Row] = Counter()
    for binding, count in rows:
        key = tuple(binding[t.name] if isinstance(t, Variable) else _value(t) for t in terms)
        total[key] += count
    return {row: n for row, n in total.items() if n}


TERMS: st.SearchStrategy[Term] = st.sampled_from([X, Y, Z, W, integer(1)])
ARITIES = st.integers(0, 3)
FACTORS: list[tuple[Term, ...]] = [(X, Z), (Z, X), (Y, Z), (Z, integer(1)), (Z,), (X, Z, Y)]


@every_engine
@given(st.data())
def test_rows_are_collected_with_their_multiplicities(make: Callable[[], Any], data: st.DataObject) -> None:
    engine = make()
    rows = data.draw(bags(2))
    names = data.draw(st.sampled_from([["x", "y"], ["y"], []]))
    columns, counts = engine.collect(engine.scan(facts(engine, 2, rows), (X, Y)), names)
    found: Counter[Row] = Counter()
    values = [[_value(parse_term(t)) for t in engine.dictionary.texts(c)] for c in columns]
    for *row, count in zip(*values, counts.tolist(), strict=True):
        found[tuple(row)] += count
    places = {"x": 0, "y": 1}
    expected: Counter[Row] = Counter()
    for whole, count in rows.items():
        expected[tuple(whole[places[n]] for n in names)] += count
    assert {r: n for r, n in found.items() if n} == {r: n for r, n in expected.items() if n}


@every_engine
@given(st.data())
def test_joins_multiply_and_projections_add_multiplicities(
    make: Callable[[], Any], data: st.DataObject
) -> None:
    engine = make()
    n, m = data.draw(ARITIES), data.draw(ARITIES)
    left, stored = data.draw(bags(n)), data.draw(bags(m))
    plus, minus = data.draw(bags(m)), data.draw(bags(m))
    a, b = (tuple(data.draw(TERMS) for _ in range(k)) for k in (n, m))
    version = Version(table(engine, m, stored), (facts(engine, m, plus),), (facts(engine, m, minus),))
    found = engine.join(engine.scan(facts(engine, n, left), a), version, b)
    total = Counter(dict.fromkeys(stored, 1))
    for row, count in plus.items():
        total[row] += count
    for row, count in minus.items():
        total[row] -= count
    expected = naive_join(naive_scan(left, a), naive_scan(dict(total), b))
    head: tuple[Term, ...] = tuple(dict.fromkeys(t for t in (*a, *b) if isinstance(t, Variable)))
    head = (*head[:3], integer(2)) if len(head) < 4 else head
    assert bag(engine, engine.project(found, head)) == naive_project(expected, head)


@every_engine
@given(st.data())
def test_a_flat_version_has_the_same_facts(make: Callable[[], Any], data: st.DataObject) -> None:
    engine = make()
    arity = data.draw(ARITIES)
    stored, plus, minus, gone = (data.draw(bags(arity)) for _ in range(4))
    made = table(engine, arity, stored)
    engine.begin()
    withdrawn = facts(engine, arity, {row: -1 for row in gone if row in stored})
    engine.recount(made, withdrawn, engine.no_facts(arity))
    engine.commit()
    version = Version(made, (facts(engine, arity, plus),), (facts(engine, arity, minus),))
    terms = tuple(Variable(f"v{i}") for i in range(arity))
    whole, flat = (
        engine.join(engine.unit(), v, terms) for v in (version, engine.hints.in_one_piece(version))
    )
    assert bag(engine, engine.project(flat, terms)) == bag(engine, engine.project(whole, terms))


@every_engine
@given(st.data())
def test_antijoin_keeps_rows_without_a_fact(make: Callable[[], Any], data: st.DataObject) -> None:
    engine = make()
    left, stored = data.draw(bags(2)), data.draw(bags(2))
    known = table(engine, 2, stored)
    found = engine.antijoin(engine.scan(facts(engine, 2, left), (X, Y)), Version(known), (Y, X))
    expected = {(x, y): n for (x, y), n in left.items() if (y, x) not in stored}
    assert bag(engine, engine.project(found, (X, Y))) == expected


@every_engine
@given(bags(2), bags(2))
def test_sets_of_facts(make: Callable[[], Any], a: Bag, b: Bag) -> None:
    engine = make()
    x, y = facts(engine, 2, a), facts(engine, 2, b)
    total = Counter(a)
    for row, count in b.items():
        total[row] += count
    assert bag(engine, engine.plus([x, y], 2)) == {r: n for r, n in total.items() if n}
    assert bag(engine, engine.minus(x, y)) == {r: n for r, n in a.items() if r not in b}
    assert set(bag(engine, engine.union(engine.distinct(x), engine.distinct(y)))) == {*a, *b}
    assert bag(engine, engine.negate(x)) == {r: -n for r, n in a.items()}


@every_engine
@given(bags(1))
def test_filter_and_extend(make: Callable[[], Any], rows: Bag) -> None:
    engine = make()
    relation = engine.scan(facts(engine, 1, rows), (X,))
    kept = engine.filter(relation, Call("lt", (X, integer(2))))
    assert bag(engine, engine.project(kept, (X,))) == {r: n for r, n in rows.items() if r[0] < 2}
    more = engine.extend(relation, Call("mul", (X, X)), "y")
    assert bag(engine, engine.project(more, (X, Y))) == {(x, x * x): n for (x,), n in rows.items()}


@every_engine
def test_relations_without_columns_and_without_rows(make: Callable[[], Any]) -> None:
    engine = make()
    nothing = engine.no_facts(2)
    assert engine.is_empty(engine.scan(nothing, (X, Y)))
    assert engine.count(engine.project(engine.unit(), ())) == 1
    assert engine.is_empty(engine.join(engine.unit(), Version(engine.table(1)), (X,)))
    holds = table(engine, 0, {(): 1})
    assert engine.count(engine.join(engine.unit(), Version(holds), ())) == 1
    assert engine.is_empty(engine.keep(engine.antijoin(engine.unit(), Version(holds), ())))


@every_engine
@given(st.lists(st.tuples(st.booleans(), bags(2).map(set)), max_size=6))
def test_a_table_keeps_supports_and_liveness(
    make: Callable[[], Any], steps: list[tuple[bool, set[Row]]]
) -> None:
    """grow and shrink against a counter; a shrunk fact without foundation dies, supports stay."""
    engine = make()
    made = engine.table(2)
    engine.join(engine.unit(), Version(made), (X, integer(0)))  # the embedded engine makes an index now
    support: Counter[Row] = Counter()
    live: set[Row] = set()
    for grows, rows in steps:
        engine.begin()
        chosen = rows if grows else {r for r in rows if support[r]}
        given_facts = facts(engine, 2, dict.fromkeys(chosen, 1))
        if grows:
            assert set(bag(engine, engine.grow(made, given_facts, "recursive"))) == chosen - live
            live |= chosen
        else:
            assert set(bag(engine, engine.shrink(made, given_facts, "recursive"))) == chosen & live
            live -= chosen
        engine.commit()
        support.update(dict.fromkeys(chosen, 1 if grows else -1))
        assert set(bag(engine, engine.facts(made))) == live
        by_second = engine.join(engine.unit(), Version(made), (X, Y))
        assert set(bag(engine, engine.project(by_second, (X, Y)))) == live
        for value in range(4):
            found = engine.join(engine.unit(), Version(made), (X, integer(value)))
            assert set(bag(engine, engine.project(found, (X,)))) == {(a,) for a, b in live if b == value}


@every_engine
@given(st.data())
def test_a_meeting_is_a_join_with_all_factors(make: Callable[[], Any], data: st.DataObject) -> None:
    """Whatever is needed of it, and whether rows are many or few against the factors."""
    engine = make()
    left = data.draw(bags(2))
    atoms = data.draw(st.lists(st.sampled_from(FACTORS), min_size=1, max_size=3))
    factors, expected = [], naive_scan(left, (X, Y))
    for terms in atoms:
        stored, plus = data.draw(bags(len(terms))), data.draw(bags(len(terms)))
        taken = dict.fromkeys(data.draw(st.sets(st.sampled_from(sorted(stored)))), 1) if stored else {}
        version = Version(
            table(engine, len(terms), stored),
            (facts(engine, len(terms), plus),),
            (facts(engine, len(terms), taken),),
        )
        factors.append((version, terms))
        total = Counter(dict.fromkeys(stored, 1))
        total.update(plus)
        total.subtract(taken)
        expected = naive_join(expected, naive_scan(dict(total), terms))
    head = data.draw(st.sampled_from([(X, Y, Z), (X, Z), (Z,), (Y,), (X, Y), ()]))
    relation = engine.scan(facts(engine, 2, left), (X, Y))
    found = engine.meet(relation, "z", factors, [v.name for v in head])
    if not engine.is_empty(found):
        assert bag(engine, engine.project(found, head)) == naive_project(expected, head)
        together = engine.collapse(found)
        assert bag(engine, engine.project(together, head)) == naive_project(expected, head)
    else:
        assert naive_project(expected, head) == {}


@every_engine
@given(bags(2), bags(2))
def test_statistics_of_a_meeting_and_rising_facts(make: Callable[[], Any], a: Bag, b: Bag) -> None:
    engine = make()
    pairs = sum(1 for _, y in a for x, _ in b if x == y)
    first: Version[Any, Any] = Version(table(engine, 2, a))
    second: Version[Any, Any] = Version(table(engine, 2, b))
    same = sum(1 for x, _ in a for v, _ in a if x == v)
    assert engine.agreeing_pairs([((first, 1), (second, 0)), ((first, 0), (first, 0))]) == [pairs, same]
    assert bag(engine, engine.positive(facts(engine, 2, a))) == {r: n for r, n in a.items() if n > 0}
