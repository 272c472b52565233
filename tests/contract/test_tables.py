"""Maintained facts, aggregates, updates and facts in and out, on every engine, against plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdlog.engines import protocol
from hdlog.engines.protocol import Support, Version
from hdlog.program.functions import NoValue, aggregate
from hdlog.program.model import AggregateCall, AggregateFunction, Predicate, Program
from hdlog.program.terms import Constant, Iri, Variable, integer, string
from hdlog.reading.files import find_splits, read_splits
from hdlog.reading.objects import Collector
from tests.contract.test_algebra import Bag, Row, X, Y, Z, bag, bags, every_engine, facts, table
from tests.engines import ON_SPARK

SUPPORTS: tuple[Support, ...] = get_args(Support)
ROWS: list[Row] = [(x, y) for x in range(3) for y in range(3)]


@dataclass
class Model:
    """What a table must know: supports of each fact, and which facts are live."""

    supports: dict[Support, Counter[Row]] = field(default_factory=lambda: {s: Counter() for s in SUPPORTS})
    live: set[Row] = field(default_factory=set)

    def founded(self, row: Row) -> bool:
        return bool(self.supports["asserted"][row] or self.supports["nonrecursive"][row])

    def supported(self, row: Row) -> bool:
        return any(self.supports[s][row] for s in SUPPORTS)

    def change_foundations(self, asserted: Bag, signed: Bag) -> tuple[set[Row], set[Row]]:
        """The live facts that are left unfounded, and the founded ones that are not live."""
        self.supports["asserted"].update(asserted)
        self.supports["nonrecursive"].update(signed)
        touched = asserted.keys() | signed.keys()
        lost = {r for r in touched if r in self.live and not self.founded(r)}
        gained = {r for r in touched if r not in self.live and self.founded(r)}
        return lost, gained


def draw_change(data: st.DataObject, model: Model) -> tuple[Bag, Bag]:
    """Assertions that are made or withdrawn, and derivations that come or go."""
    chosen = data.draw(st.sets(st.sampled_from(ROWS), max_size=5))
    asserted = {r: -1 if model.supports["asserted"][r] else 1 for r in chosen}
    signed = {}
    for row in data.draw(st.sets(st.sampled_from(ROWS), max_size=5)):
        least = -min(2, model.supports["nonrecursive"][row])
        change = data.draw(st.integers(least, 2))
        if change:
            signed[row] = change
    return asserted, signed


@every_engine
@given(st.data())
def test_supports_and_liveness_of_a_table(make: Callable[[], Any], data: st.DataObject) -> None:
    engine = make()
    made, model = engine.table(2), Model()
    for _ in range(2 if ON_SPARK else data.draw(st.integers(1, 6))):
        engine.begin()
        match data.draw(st.sampled_from(["recount", "change foundations", "adjust", "flip"])):
            case "recount":
                asserted, signed = draw_change(data, model)
                came, went = engine.recount(made, facts(engine, 2, asserted), facts(engine, 2, signed))
                lost, gained = model.change_foundations(asserted, signed)
                assert (set(bag(engine, came)), set(bag(engine, went))) == (gained, lost)
                model.live = (model.live - lost) | gained
            case "change foundations":
                asserted, signed = draw_change(data, model)
                found = engine.change_foundations(made, facts(engine, 2, asserted), facts(engine, 2, signed))
                lost, gained = model.change_foundations(asserted, signed)
                assert tuple(set(bag(engine, f)) for f in found) == (lost, gained)
            case "adjust":
                support = data.draw(st.sampled_from(SUPPORTS[1:]))
                more = dict.fromkeys(data.draw(st.sets(st.sampled_from(ROWS), max_size=4)), 1)
                engine.adjust(made, facts(engine, 2, more), support)
                model.supports[support].update(more)
            case "flip":
                rise = {r for r in ROWS if model.supported(r) and r not in model.live}
                chosen = data.draw(st.sets(st.sampled_from(sorted(rise)))) if rise else set()
                engine.insert(made, facts(engine, 2, dict.fromkeys(chosen, 1)))
                model.live |= chosen
                fall = data.draw(st.sets(st.sampled_from(sorted(model.live)))) if model.live else set()
                engine.delete(made, facts(engine, 2, dict.fromkeys(fall, 1)))
                model.live -= fall
        engine.commit()
        check(engine, made, model)


def check(engine: Any, made: Any, model: Model) -> None:
    asked = facts(engine, 2, dict.fromkeys(ROWS, 1))
    assert engine.size(made) == len(model.live)
    assert engine.bytes(made) >= 0
    assert set(bag(engine, engine.facts(made))) == model.live
    assert set(bag(engine, engine.select_supported(made, asked))) == {r for r in ROWS if model.supported(r)}
    assert set(bag(engine, engine.select_asserted(made, asked))) == {
        r for r in ROWS if model.supports["asserted"][r]
    }
    told = {tuple(int(t.lexical) for t in row): (a, n) for row, a, n in engine.supports(made)}
    derived = {r: model.supports["nonrecursive"][r] + model.supports["recursive"][r] for r in model.live}
    assert told == {r: (bool(model.supports["asserted"][r]), n) for r, n in derived.items()}


@every_engine
@given(bags(2).map(set), bags(2).map(set))
def test_disjoint_sets(make: Callable[[], Any], a: set[Row], b: set[Row]) -> None:
    engine = make()
    x, y = (facts(engine, 2, dict.fromkeys(rows, 1)) for rows in (a, b - a))
    assert set(bag(engine, engine.disjoint_union([x, y], 2))) == a | b
    merged = engine.hints.merge_parts([x, y], 2)
    assert set(bag(engine, engine.disjoint_union(merged, 2))) == a | b


@every_engine
def test_rows_stacked_and_without_columns(make: Callable[[], Any]) -> None:
    engine = make()
    one, two = (engine.scan(facts(engine, 2, {(1, n): 1, (2, n): 3}), (X, Y)) for n in (5, 6))
    both = engine.stack([one, two])
    assert bag(engine, engine.project(both, (X, Y))) == {(1, 5): 1, (2, 5): 3, (1, 6): 1, (2, 6): 3}
    narrow = engine.keep_columns(both, ["x"])
    assert bag(engine, engine.project(narrow, (X,))) == {(1,): 2, (2,): 6}


CALLS: list[AggregateFunction] = ["count", "sum", "min", "max", "avg"]


@every_engine
@given(st.data())
def test_aggregates_from_scratch_and_from_changes(make: Callable[[], Any], data: st.DataObject) -> None:
    engine = make()
    call = AggregateCall(data.draw(st.sampled_from(CALLS)), Variable("v"), Variable("r"))
    aggregator = engine.aggregator(call, (X,), (X, Y, Variable("v")))
    rows = st.sets(st.tuples(*[st.integers(0, 2)] * 3), max_size=8)
    before, more, less = data.draw(rows), data.draw(rows), data.draw(rows)
    made = table(engine, 3, dict.fromkeys(before, 1))
    values = engine.keep(aggregator.values(Version(made)))
    assert shown(engine, values) == expected(call, before)
    present = engine.table(2)
    engine.begin()
    engine.recount(present, engine.no_facts(2), values)
    came, went = engine.recount(
        made,
        facts(engine, 3, {**dict.fromkeys(more - before, 1), **dict.fromkeys(less & before, -1)}),
        engine.no_facts(3),
    )
    delta = engine.plus([came, engine.negate(went)], 3)
    after = (before - less) | (more - before)
    if engine.count(delta):
        signed = aggregator.change(delta, Version(made), Version(present))
        engine.recount(present, engine.no_facts(2), signed)
    engine.commit()
    assert shown(engine, engine.facts(present)) == expected(call, after)


ATOMS = [(X, Y, Variable("v")), (Variable("v"), X, Y), (X, integer(1), Variable("v")), (X, X, Variable("v"))]


@every_engine
@given(st.data())
def test_aggregates_of_facts_that_count_several_times(make: Callable[[], Any], data: st.DataObject) -> None:
    """As a view has them: a sum of sets with multiplicities, some of which are negative."""
    engine = make()
    call = AggregateCall(data.draw(st.sampled_from(CALLS)), Variable("v"), Variable("r"))
    group = data.draw(st.sampled_from([(X,), ()]))
    terms = data.draw(st.sampled_from(ATOMS))
    aggregator = engine.aggregator(call, group, terms)
    weights = st.dictionaries(st.tuples(*[st.integers(0, 2)] * 3), st.integers(1, 3), max_size=6)
    before = data.draw(weights)
    wanted = data.draw(weights)
    change = {r: wanted.get(r, 0) - before.get(r, 0) for r in before.keys() | wanted}
    delta = {r: n for r, n in change.items() if n}
    nothing = engine.table(3)
    old = Version(nothing, (facts(engine, 3, before),) if before else ())
    signed = facts(engine, 3, delta)
    values = engine.keep(aggregator.values(old))
    assert shown(engine, values) == expected_of_matches(call, len(group), terms, before)
    if delta:
        new = Version(nothing, (*old.plus, signed))
        present = Version(engine.table(len(group) + 1), (values,))
        total = engine.keep(engine.plus([values, aggregator.change(signed, new, present)], len(group) + 1))
        assert shown(engine, total) == expected_of_matches(call, len(group), terms, wanted)
        assert set(engine.weights(total).values()) <= {1}


def expected_of_matches(
    call: AggregateCall, width: int, terms: tuple[Any, ...], rows: dict[Row, int]
) -> set[tuple[Constant, ...]]:
    groups: dict[tuple[Constant, ...], list[Constant]] = {}
    for row, times in rows.items():
        match: dict[str, int] = {}
        fits = all(
            match.setdefault(t.name, value) == value if isinstance(t, Variable) else t == integer(value)
            for t, value in zip(terms, row, strict=True)
        )
        if fits:
            key = (integer(match["x"]),)[:width]
            groups.setdefault(key, []).extend([integer(match["v"])] * times)
    return {(*key, aggregate(call, values)) for key, values in groups.items()}


def shown(engine: Any, found: Any) -> set[tuple[Constant, ...]]:
    return set(engine.weights(found))


def expected(call: AggregateCall, rows: set[Row]) -> set[tuple[Constant, ...]]:
    groups: dict[int, list[Constant]] = {}
    for group, _, value in rows:
        groups.setdefault(group, []).append(integer(value))
    made: set[tuple[Constant, ...]] = set()
    for group, values in groups.items():
        try:
            made.add((integer(group), aggregate(call, values)))
        except NoValue:
            continue
    return made


@every_engine
def test_an_update_is_taken_back_whole(make: Callable[[], Any]) -> None:
    engine = make()
    made = table(engine, 2, {(1, 2): 1, (2, 3): 1})
    order: list[int] = []
    engine.begin()
    engine.note(lambda: order.append(1))
    engine.note(lambda: order.append(2))
    engine.recount(made, facts(engine, 2, {(1, 2): -1, (7, 8): 1}), engine.no_facts(2))
    engine.grow(made, facts(engine, 2, {(2, 3): 1, (9, 9): 4}), "recursive")
    engine.delete(made, facts(engine, 2, {(2, 3): 1}))
    engine.roll_back()
    assert order == [2, 1]
    assert set(bag(engine, engine.facts(made))) == {(1, 2), (2, 3)}
    assert {n for _, _, n in engine.supports(made)} == {0}
    engine.begin()
    engine.recount(made, facts(engine, 2, {(5, 5): 1}), engine.no_facts(2))
    engine.commit()
    engine.tidy([made], [])
    assert set(bag(engine, engine.facts(made))) == {(1, 2), (2, 3), (5, 5)}
    engine.close()


@every_engine
@given(bags(2).map(set), bags(2).map(set))
def test_statistics_and_hints(make: Callable[[], Any], a: set[Row], b: set[Row]) -> None:
    engine = make()
    stored = table(engine, 2, dict.fromkeys(a, 1))
    more = engine.keep(facts(engine, 2, dict.fromkeys(b - a, 1)))
    version = Version(stored, (more,))
    assert engine.fan_out(version, ()) == len(a | b)
    assert 0 <= engine.fan_out(version, (0, 1)) <= 1
    assert 0 <= engine.fan_out(version, (0,)) <= len(a | b)
    if not b and a:
        assert engine.fan_out(version, (0,)) == pytest.approx(len(a) / len({x for x, _ in a}), rel=0.2)
    assert engine.hints.workers([more]) >= 1
    engine.hints.look_ahead([(stored, more)])
    engine.hints.announce("what follows")
    assert engine.hints.side_of(stored) in ("", "in the process", "on Spark")
    engine.hints.take_care()  # and everything goes on as before
    asked: list[int] = []
    engine.join(engine.scan(more, (X, Y)), Version(stored), (Y, Z), asked.append)
    assert not asked or engine.hints.counts_rows
    assert engine.hints.known_rows(more) in (0, len(b - a))
    scanned = engine.scan(more, (X, Y))
    assert not engine.hints.is_counted(scanned) or engine.count(scanned) == len(b - a)
    nothing = engine.no_facts(2)
    came = facts(engine, 2, dict.fromkeys(a, 1))
    assert not engine.hints.was_empty(stored, nothing, nothing) or not a
    assert not a or not engine.hints.was_empty(stored, nothing, came)
    core = engine.hints.core([(Version(stored), (X, Y)), (Version(stored), (Y, Z))])
    if core is not None:
        seconds, firsts = {y for _, y in a}, {x for x, _ in a}
        assert core[0][0] >= len([r for r in a if r[1] in firsts and r in reach(a)])
        assert core[1][0] >= len([r for r in a if r[0] in seconds and r in reach(a)])


def reach(rows: set[Row]) -> set[Row]:
    """Rows of which both a row before and a row after them are there: those of a core at least."""
    return {(x, y) for x, y in rows if any(b == x for _, b in rows) and any(a == y for a, _ in rows)}


@every_engine
def test_facts_in_and_out(make: Callable[[], Any]) -> None:
    engine = make()
    rows: list[tuple[Any, ...]] = [(1, "one", Iri("http://e/1")), (2**70, 'a "quote"', 1.5), (True, "", "é")]
    collector = Collector(Program(), lambda paths, name: [])
    collector.take({"p": rows})
    predicate = Predicate("p", 3)
    read = engine.encode_chunks(collector.chunks())
    assert list(read) == [predicate]
    decoded = engine.decode(read[predicate])
    assert len(decoded) == 3
    assert (integer(1), string("one"), Iri("http://e/1")) in decoded.rows()
    assert engine.show(read[predicate], ["a", "b", "c"]) is not None
    assert not engine.owns([("p", 1)])
    twice = engine.facts_from_columns([engine.dictionary.encode_integers(_array([4, 4]))], 2)
    assert bag(engine, twice) == {(4,): 1}


@every_engine
def test_files_that_are_read_at_once_share_their_terms(make: Callable[[], Any], tmp_path: Path) -> None:
    engine = make()
    engine.dictionary.encode(["<http://e/1>"])
    text = "".join(f"<http://e/{i % 7}>\tnode {i % 5}\t{i}\n" for i in range(500))
    (tmp_path / "a.facts").write_text(text)
    (tmp_path / "b.nt").write_text("".join(f'_:x{i % 3} <http://e/p> "node {i % 5}" .\n' for i in range(500)))
    splits = find_splits([tmp_path / "a.facts", tmp_path / "b.nt"], 2000)
    apart = make()
    facts = engine.encode_chunks(read_splits(splits, shared=engine.share_terms()))
    assert {p: engine.weights(f) for p, f in facts.items()} == {
        p: apart.weights(f) for p, f in apart.encode_chunks(read_splits(splits)).items()
    }
    assert {p: engine.count(f) for p, f in facts.items()} == {
        Predicate("a", 3): 500,
        Predicate("http://e/p", 2): 15,
    }


def _array(values: list[int]) -> Any:
    import numpy as np

    return np.array(values, np.int64)


@pytest.mark.skipif(not ON_SPARK, reason="the embedded engine has no tables of its own kind")
@every_engine
def test_a_table_of_the_engine_s_own_kind(make: Callable[[], Any]) -> None:
    engine = make()
    frame = engine.spark.createDataFrame([(1, "a"), (2, "b"), (2, "b")], "n BIGINT, s STRING")
    assert engine.owns(frame)
    rows = engine.weights(engine.encode_table(frame, ["", ""]))
    assert rows == {(integer(1), string("a")): 1, (integer(2), string("b")): 1}


def test_every_operation_of_the_seam_has_a_contract_test() -> None:
    tests = "".join(p.read_text() for p in Path(__file__).parent.glob("test_*.py"))
    groups = (
        protocol.Relations,
        protocol.FactSets,
        protocol.Tables,
        protocol.Statistics,
        protocol.Updates,
        protocol.InAndOut,
    )
    for group in groups:
        for name in (n for n in vars(group) if not n.startswith("_")):
            assert f"engine.{name}" in tests, f"{group.__name__}.{name} has no contract test"
    for name in (n for n in vars(protocol.Hints) if not n.startswith("_")):
        assert f"engine.hints.{name}" in tests, f"Hints.{name} has no contract test"
    for name in (n for n in vars(protocol.Aggregator) if not n.startswith("_")):
        assert f"aggregator.{name}" in tests, f"Aggregator.{name} has no contract test"
