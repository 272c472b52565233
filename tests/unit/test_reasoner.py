"""The reasoner as a Python user meets it."""

from __future__ import annotations

import contextlib
import gzip
import re
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox
import pytest
import rdflib

import hdlog
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.errors import (
    InputError,
    IntermediateTooLarge,
    LimitReached,
    ProgramError,
    TooManyDerivations,
    UsageError,
)
from hdlog.maintenance.trace import Event
from hdlog.memory import used_memory
from hdlog.program.model import Predicate
from hdlog.program.terms import Iri
from hdlog.tuning import Tuning
from tests.engines import OpenReasoner as Reasoner

CLOSURE = "path[?x, ?y] :- edge[?x, ?y] . path[?x, ?z] :- path[?x, ?y], edge[?y, ?z] ."
TYPES = "<u:A>[?x] :- <u:B>[?x] . <u:C>[?y] :- <u:p>[?x, ?y] ."
NT = "<u:1> <u:p> <u:2> .\n<u:1> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <u:B> .\n"


def rows(reasoner: Reasoner, name: str) -> set[tuple[object, ...]]:
    return set(reasoner.facts(name))


def test_facts_are_materialised_and_maintained() -> None:
    reasoner = Reasoner(CLOSURE)
    change = reasoner.update(add={"edge": [(1, 2), (2, 3)]})
    assert rows(reasoner, "path") == {(1, 2), (2, 3), (1, 3)}
    assert {p.name: len(t) for p, t in change.added.items()} == {"edge": 2, "path": 3}
    change = reasoner.update(delete=[("edge", 1, 2)])
    assert rows(reasoner, "path") == {(2, 3)}
    assert set(change.removed[Predicate("path", 2)]) == {(1, 2), (1, 3)}
    assert str(change) == "0 facts added, 3 facts removed"


def test_a_cycle_that_loses_its_foundation_goes() -> None:
    reasoner = Reasoner("p[?x] :- q[?x] . p[?x] :- r[?x] . r[?x] :- p[?x] .")
    reasoner.update(add=[("q", 1)])
    assert rows(reasoner, "r") == {(1,)}
    reasoner.update(delete=[("q", 1)])
    assert len(reasoner) == 0


def test_deleting_what_is_not_there_changes_nothing() -> None:
    reasoner = Reasoner(CLOSURE)
    reasoner.update(add=[("edge", 1, 2)])
    change = reasoner.update(delete=[("edge", 5, 6), ("path", 1, 2), ("other", 1)])
    assert (change.added, change.removed) == ({}, {})
    assert rows(reasoner, "path") == {(1, 2)}


def test_adding_twice_is_adding_once() -> None:
    reasoner = Reasoner(CLOSURE)
    reasoner.update(add=[("edge", 1, 2), ("edge", 1, 2)])
    assert reasoner.update(add=[("edge", 1, 2)]).added == {}
    reasoner.update(delete=[("edge", 1, 2)])
    assert len(reasoner) == 0


def test_a_derived_fact_that_is_also_asserted_stays_until_both_are_gone() -> None:
    reasoner = Reasoner(CLOSURE)
    reasoner.update(add=[("edge", 1, 2), ("path", 1, 2)])
    assert reasoner.update(delete=[("edge", 1, 2)]).removed.keys() == {Predicate("edge", 2)}
    assert reasoner.update(delete=[("path", 1, 2)]).removed.keys() == {Predicate("path", 2)}


def test_a_fact_both_added_and_deleted_is_added() -> None:
    reasoner = Reasoner(CLOSURE)
    reasoner.update(add=[("edge", 1, 2)], delete=[("edge", 1, 2)])
    assert rows(reasoner, "edge") == {(1, 2)}


def test_rules_and_facts_in_the_program_come_and_go() -> None:
    reasoner = Reasoner("edge[1, 2] . edge[2, 3] .")
    change = reasoner.add_rules(CLOSURE)
    assert {p.name for p in change.added} == {"path"}
    reasoner.remove_rules("path[?x, ?z] :- path[?x, ?y], edge[?y, ?z] .")
    assert rows(reasoner, "path") == {(1, 2), (2, 3)}
    reasoner.remove_rules("edge[1, 2] .")
    assert rows(reasoner, "path") == {(2, 3)}
    with pytest.raises(UsageError, match="not in the program"):
        reasoner.remove_rules("p[?x] :- q[?x] .")
    with pytest.raises(ProgramError, match="recursion through negation"):
        reasoner.add_rules("edge[?x, ?y] :- path[?y, ?x], NOT path[?x, ?y] .")
    assert rows(reasoner, "path") == {(2, 3)}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "d.nt").write_text(NT)
    (tmp_path / "d.ttl").write_text("@prefix u: <u:> . u:1 u:p u:2 ; a u:B .")
    (tmp_path / "d.nt.gz").write_bytes(gzip.compress(NT.encode()))
    (tmp_path / "edge.csv").write_text('a,b\n1,2\n2,"x, y"\n')
    (tmp_path / "edge.tsv").write_text("a\tb\n1\t2\n2\tx, y\n")
    (tmp_path / "edge.facts").write_text("1\t2\n2\tx, y\n")
    (tmp_path / "edge.facts.gz").write_bytes(gzip.compress(b"1\t2\n2\tx, y\n"))
    pq.write_table(pa.table({"a": ["1", "2"], "b": ["2", "x, y"]}), tmp_path / "edge.parquet")
    return tmp_path


@pytest.mark.parametrize("name", ["d.nt", "d.ttl", "d.nt.gz"])
def test_rdf_files_are_read(files: Path, name: str) -> None:
    reasoner = Reasoner(TYPES)
    reasoner.update(add=files / name)
    assert rows(reasoner, "u:A") == {(Iri("u:1"),)}
    assert rows(reasoner, "u:C") == {(Iri("u:2"),)}


@pytest.mark.parametrize("name", ["edge.csv", "edge.tsv", "edge.facts", "edge.facts.gz", "edge.parquet"])
def test_tables_are_read_under_the_name_of_the_file(files: Path, name: str) -> None:
    reasoner = Reasoner("@decl edge(a: symbol, b: symbol) .\n" + CLOSURE)
    reasoner.update(add=str(files / name))
    assert rows(reasoner, "path") == {("1", "2"), ("2", "x, y"), ("1", "x, y")}


EDGES = {"a": [1, 2], "b": [2, 3]}


@pytest.mark.parametrize(
    "given",
    [
        {"edge": pa.table(EDGES)},
        {"edge": pd.DataFrame(EDGES)},
        {"edge": pl.DataFrame(EDGES)},
        {"edge": [(1, 2), (2, 3)]},
        [("edge", 1, 2), ("edge", 2, 3)],
        [{"edge": [(1, 2)]}, ("edge", 2, 3)],
    ],
    ids=["arrow", "pandas", "polars", "rows", "tuples", "mixed"],
)
def test_tables_of_every_kind_are_taken(given: object) -> None:
    reasoner = Reasoner(CLOSURE)
    reasoner.update(add=given)
    assert rows(reasoner, "path") == {(1, 2), (2, 3), (1, 3)}


def test_graphs_of_rdflib_and_pyoxigraph_are_taken() -> None:
    graph = rdflib.Graph().parse(data=NT, format="nt")
    store = ox.Store()
    store.load(NT.encode(), format=ox.RdfFormat.N_TRIPLES)
    for given in (graph, store, list(store)):
        reasoner = Reasoner(TYPES)
        reasoner.update(add=given)
        assert reasoner.facts("u:C").rows() == [(Iri("u:2"),)]
        reasoner.update(delete=given)
        assert len(reasoner) == 0


def test_facts_go_out_as_arrow_pandas_and_polars() -> None:
    reasoner = Reasoner('p[1, 2.5e0, "a", true, <u:x>] .')
    table = reasoner.facts("p")
    assert pa.table(table).to_pylist() == [{"c0": 1, "c1": 2.5, "c2": "a", "c3": True, "c4": "u:x"}]
    assert table.to_pandas().shape == (1, 5)
    assert table.to_polars().shape == (1, 5)
    assert len(pa.table(Reasoner("@decl e(x: number) .").facts("e"))) == 0


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bad.nt", "<u:1> <u:p> .\n", "bad.nt:1"),
        ("edge.facts", "1\t2\n3\n", "edge.facts"),
        ("n.facts", "1\nx\n", "n.facts:2: 'x' is not a number"),
        ("edge.txt", "1 2", "unknown ending"),
    ],
)
def test_bad_input_is_told_with_its_place_and_changes_nothing(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    reasoner = Reasoner("@decl n(x: number) .\n" + CLOSURE)
    reasoner.update(add=[("edge", 7, 8)])
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        reasoner.update(add=[("edge", 1, 2), tmp_path / name])
    assert rows(reasoner, "path") == {(7, 8)}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"edge.csv", "cannot read facts from bytes"),
        (bytearray(), "cannot read facts from bytearray"),
        ({"edge": b"ab"}, "not bytes"),
        ([()], "a fact is a tuple of a predicate's name and values, not ()"),
        ({"edge": pd.DataFrame([[1, 2]], columns=["a", "a"])}, "several columns have the same name: a, a"),
        ({"one": pd.DataFrame({"a": pd.interval_range(0, 3)})}, "column a has the type .*interval"),
        ({"one": pd.DataFrame({"a": pd.period_range("2020", periods=2, freq="M")})}, "column a has the type"),
    ],
)
def test_what_holds_no_facts_is_refused_by_name(given: object, message: str) -> None:
    reasoner = Reasoner(CLOSURE)
    with pytest.raises(InputError, match=re.escape(message) if "()" in message else message):
        reasoner.update(add=given)
    assert len(reasoner) == 0


def test_what_a_question_and_a_program_cannot_be() -> None:
    with pytest.raises(UsageError, match="a number of arguments is a whole number, not '2'"):
        Reasoner(CLOSURE).facts("path", "2")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="half a character"):
        Reasoner('p["\ud800"] .')


def test_a_memory_budget_stops_a_join_and_leaves_everything_as_it_was() -> None:
    engine = ColumnarEngine()
    reasoner = Reasoner("p[?x, ?y] :- q[?x, ?k], r[?y, ?k] .", engine=engine)
    reasoner.update(add={"q": [(i, 0) for i in range(2000)]})
    before = reasoner.tables()
    engine.budget.memory = used_memory() + 80_000_000
    with pytest.raises(IntermediateTooLarge, match=r"rule for p .*\n.*4,000,000 rows"):
        reasoner.update(add={"r": [(i, 0) for i in range(2000)]})
    assert {p: t for p, t in reasoner.tables().items() if t} == {p: t for p, t in before.items() if t}


@pytest.mark.parametrize("options", [{"max_rounds": 5}, {"max_facts": 1000}])
def test_limits_stop_an_endless_program_and_leave_everything_as_it_was(options: dict[str, int]) -> None:
    reasoner = Reasoner("n[?y] :- n[?x], BIND(?x + 1 AS ?y) .", **options)  # type: ignore[call-overload]
    with pytest.raises(LimitReached, match="rules for n"):
        reasoner.update(add=[("n", 0)])
    assert len(reasoner) == 0
    assert reasoner.trace.events


def test_an_interrupt_in_mid_update_leaves_everything_as_it_was() -> None:
    """Interrupted after each round in turn, a deletion leaves facts and supports as they were."""
    edges = [("edge", i, i + 1) for i in range(12)] + [("edge", 12, 3)]
    for at in range(1, 60):
        count = 0

        def interrupt(event: Event, at: int = at) -> None:
            nonlocal count
            count += 1
            if count == at:
                raise KeyboardInterrupt

        reasoner = Reasoner(CLOSURE)
        reasoner.update(add=edges)
        before = reasoner.tables()
        reasoner.trace.listen = interrupt
        try:
            reasoner.update(add=[("edge", 20, 0)], delete=[("edge", 5, 6)])
        except KeyboardInterrupt:
            assert reasoner.tables() == before
            continue
        assert at > 5
        break
    reasoner.trace.listen = None
    reasoner.update(add=[("edge", 5, 6)], delete=[("edge", 20, 0)])
    assert reasoner.tables() == before


def test_what_an_interrupted_update_found_is_forgotten() -> None:
    """The rule for p becomes recursive after it, so that its supports are moved by what holds then."""
    edges = [("e", i, i + 1) for i in range(20)]

    def after(interrupted_at: int) -> tuple[object, bool]:
        reasoner = Reasoner("p[?x, ?z] :- e[?x, ?y], e[?y, ?z] . q[?x] :- p[?x, ?y], p[?y, ?x] .")
        reasoner.update(add=edges)
        left = interrupted_at

        def interrupt(event: Event) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise KeyboardInterrupt

        reasoner.trace.listen = interrupt
        if interrupted_at:
            with contextlib.suppress(KeyboardInterrupt):
                reasoner.update(delete=edges[:8])
                reasoner.update(add=edges[:8])
        reasoner.trace.listen = None
        reasoner.add_rules("e[?x, ?z] :- p[?x, ?z], go[?x] .")
        reasoner.update(delete=edges[:8])
        return reasoner.tables(), left == 0

    expected, _ = after(0)
    found = [after(at) for at in range(1, 5)]
    assert any(interrupted for _, interrupted in found)
    assert all(tables == expected for tables, _ in found)


def test_rules_and_their_steps_may_ask_for_threads_at_once() -> None:
    tuning = Tuning("hd").steered(worth_threads=1000, worth_halves=1000)
    rules = """
        t[?x] :- e[?x, ?y], e[?y, ?z], e[?z, ?x] .
        t[?y] :- e[?x, ?y], e[?y, ?z], e[?x, ?z] .
        t[?z] :- e[?y, ?x], e[?z, ?y], e[?z, ?x], e[?w, ?z], e[?w, ?x] .
    """
    drawn = np.random.default_rng(1).integers(0, 400, (20_000, 2)).tolist()
    counts = []

    def run(threads: int) -> None:
        reasoner = Reasoner(rules, threads=threads, tuning=tuning)
        reasoner.update(add=[("e", a, b) for a, b in drawn])
        counts.append(reasoner.tables())

    run(1)
    worker = threading.Thread(target=run, args=(2,), daemon=True)
    worker.start()
    worker.join(120)
    assert not worker.is_alive(), "threads wait for each other"
    assert counts[0] == counts[1]


def test_unknown_predicates_are_told_with_a_hint() -> None:
    with pytest.raises(UsageError, match="did you mean path"):
        Reasoner(CLOSURE).facts("pth")


def test_explain_and_counts() -> None:
    reasoner = Reasoner(CLOSURE)
    reasoner.update(add=[("edge", 1, 2)])
    assert reasoner.counts() == {Predicate("edge", 2): 1, Predicate("path", 2): 1}
    assert [c["recursive"] for c in reasoner.explain()["components"]] == [True]


def test_triples_derived_for_predicates_that_nothing_names() -> None:
    reasoner = Reasoner("[?x, ?q, ?y] :- <u:alias>[?p, ?q], [?x, ?p, ?y] .")
    reasoner.update(
        add=[
            (Predicate("u:alias", 2), (Iri("u:p"), Iri("u:q"))),
            (Predicate("u:p", 2), (Iri("u:1"), Iri("u:2"))),
        ]
    )
    assert reasoner.facts("u:q").rows() == [(Iri("u:1"), Iri("u:2"))]
    assert reasoner.counts()[Predicate("u:q", 2)] == 1


def test_the_version_is_told() -> None:
    assert hdlog.__version__


def test_more_derivations_than_32_bits_are_counted() -> None:
    reasoner = Reasoner("p[?x] :- a[?x, ?y], b[?x, ?z], c[?x, ?w] .")
    reasoner.update({n: [(0, i) for i in range(k)] for n, k in (("a", 2049), ("b", 2048), ("c", 1024))})
    reasoner.update(delete={"a": [(0, 2048)]})
    assert [n for _, _, n in reasoner.tables()[Predicate("p", 1)]] == [2**32]


@pytest.mark.parametrize("off", ["", "views"])
def test_more_derivations_than_can_be_counted_are_an_error(off: str) -> None:
    body = ", ".join(f"e[?x, ?y{i}]" for i in range(8))
    reasoner = Reasoner(f"p[?x] :- {body} .", tuning=Tuning("hd").without(off))
    with pytest.raises(TooManyDerivations, match="2\\^62"):
        reasoner.update({"e": [(0, i) for i in range(256)]})
    assert len(reasoner) == 0
    reasoner.update({"e": [(0, i) for i in range(4)]})
    assert [n for _, _, n in reasoner.tables()[Predicate("p", 1)]] == [4**8]
