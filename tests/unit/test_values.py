"""One table of values (tests/values.py): whatever brings a value in gives its term, whatever takes it out gives it back."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdlog.operations.run import run_program
from hdlog.operations.stores import export_store, load
from hdlog.program.model import Predicate
from hdlog.program.ntriples import term_text
from hdlog.program.terms import Constant
from hdlog.tuning import Tuning
from tests.engines import ON_SPARK, Reasoner, make_engine, settings
from tests.values import KINDS, Pairs

P = Predicate("p", 2)
Terms = set[tuple[Constant, ...]]
PYTHON = list(KINDS)
ARROW = ["integers", "doubles", "decimals", "booleans", "dates", "times", "zoned times", "strings"]
WRITTEN = ["integers", "large integers", "booleans", "dates", "times", "zoned times", "IRIs"]
"""Kinds that a field of a text file shows by its look."""
WRITTEN_STRINGS = [
    s
    for s, _ in KINDS["strings"]
    if s not in ("10001", "1.5", "true", "2024-02-29", "<http://example.org/a>")
]
JSON = ["integers", "large integers", "booleans", "strings"]
GRAPH = [k for k in KINDS if k not in ("Skolem terms",)]


def expected(pairs: Pairs) -> Terms:
    """Each value beside its number, so that equal ones stay apart."""
    from hdlog.program.terms import integer

    return {(integer(n), term) for n, (_, term) in enumerate(pairs)}


def rows(reasoner: Any) -> Terms:
    return {row for row, _, _ in reasoner.tables()[P]}


def column(pairs: Pairs) -> list[Any]:
    return [value for value, _ in pairs]


def check(given: Any, pairs: Pairs) -> Reasoner:
    reasoner = Reasoner()
    reasoner.update(add={"p": given})
    assert rows(reasoner) == expected(pairs)
    return reasoner


# In.


@pytest.mark.parametrize("kind", PYTHON)
def test_python_values(kind: str) -> None:
    pairs = KINDS[kind]
    check(list(enumerate(column(pairs))), pairs)
    reasoner = Reasoner()
    reasoner.update(add=[("p", n, value) for n, value in enumerate(column(pairs))])
    assert rows(reasoner) == expected(pairs)
    reasoner = Reasoner()
    reasoner.update(add=[(P, row) for row in expected(pairs)])
    assert rows(reasoner) == expected(pairs)


def arrow_table(pairs: Pairs) -> pa.Table:
    return pa.table({"n": list(range(len(pairs))), "v": column(pairs)})


TABLES: dict[str, Callable[[Pairs], Any]] = {
    "arrow": arrow_table,
    "large arrow": lambda pairs: pa.table(
        {"n": range(len(pairs)), "v": pa.array(column(pairs)).dictionary_encode()}
    ),
    "pandas": lambda pairs: arrow_table(pairs).to_pandas(types_mapper=pd.ArrowDtype),
    "plain pandas": lambda pairs: pd.DataFrame({"n": range(len(pairs)), "v": column(pairs)}),
    "polars": lambda pairs: pl.from_arrow(arrow_table(pairs)),
}


@pytest.mark.parametrize("kind", ARROW)
@pytest.mark.parametrize("way", TABLES)
def test_tables(kind: str, way: str) -> None:
    pairs = KINDS[kind]
    if way == "plain pandas":
        pairs = without_nan(pairs)
    check(TABLES[way](pairs), pairs)


def without_nan(pairs: Pairs) -> Pairs:
    """In a column of pandas, NaN is a missing value, and refused as such."""
    return [(value, term) for value, term in pairs if value == value]


@pytest.mark.parametrize("kind", ARROW)
def test_a_parquet_file(kind: str, tmp_path: Path) -> None:
    pairs = KINDS[kind]
    pq.write_table(arrow_table(pairs), tmp_path / "p.parquet")
    check(tmp_path / "p.parquet", pairs)


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_csv_file_by_the_look_of_its_fields(kind: str, tmp_path: Path) -> None:
    pairs = KINDS[kind]
    fields = [plain(value) for value in column(pairs)]
    write_csv(tmp_path / "p.csv", fields)
    check(tmp_path / "p.csv", pairs)


def test_strings_in_a_csv_file(tmp_path: Path) -> None:
    pairs = [(s, t) for s, t in KINDS["strings"] if s in WRITTEN_STRINGS]
    write_csv(tmp_path / "p.csv", column(pairs))
    check(tmp_path / "p.csv", pairs)
    every = KINDS["strings"]
    write_csv(tmp_path / "p.csv", column(every))
    reasoner = Reasoner("@decl p(n: number, v: symbol) .")
    reasoner.update(add={"p": tmp_path / "p.csv"})
    assert rows(reasoner) == expected(every)


def plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if hasattr(value, "isoformat"):
        head, point, rest = value.isoformat().partition(".")
        text = f"{head}.{rest.rstrip('0')}" if point else head
        return text.replace("+00:00", "Z")
    return f"<{value.value}>" if hasattr(value, "value") else str(value)


def write_csv(path: Path, fields: list[str]) -> None:
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["n", "v"])
        writer.writerows(enumerate(fields))


@pytest.mark.parametrize("kind", JSON)
def test_json_lines(kind: str, tmp_path: Path) -> None:
    pairs = KINDS[kind]
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps({"n": n, "v": v}) + "\n" for n, v in enumerate(column(pairs))))
    check(path, pairs)


@pytest.mark.parametrize("kind", GRAPH)
def test_n_triples_in_and_out_through_a_store(kind: str, tmp_path: Path) -> None:
    pairs = KINDS[kind]
    if kind == "blank nodes":
        return  # a label belongs to its file
    lines = [f"<http://e/{n}> <http://e/p> {term_text(term)} .\n" for n, (_, term) in enumerate(pairs)]
    (tmp_path / "in.nt").write_text("".join(lines))
    load(tmp_path / "store", [tmp_path / "in.nt"], settings())
    export_store(tmp_path / "store", "nt", tmp_path / "out.nt", settings())
    assert sorted((tmp_path / "out.nt").read_text().splitlines(True)) == sorted(lines)
    reasoner = Reasoner()
    reasoner.update(add=tmp_path / "out.nt")
    told = {row[1] for row, _, _ in reasoner.tables()[Predicate("http://e/p", 2)]}
    assert told == {term for _, term in pairs}


@pytest.mark.skipif(not ON_SPARK, reason="DataFrames of Spark")
@pytest.mark.parametrize("kind", ["integers", "doubles", "decimals", "booleans", "dates", "strings"])
def test_dataframes_of_spark(kind: str) -> None:
    pairs = KINDS[kind]
    engine: Any = make_engine()
    types = {"integers": "BIGINT", "doubles": "DOUBLE", "decimals": "DECIMAL(9, 2)", "booleans": "BOOLEAN"}
    type_ = types.get(kind, "DATE" if kind == "dates" else "STRING")
    frame = engine.spark.createDataFrame(list(enumerate(column(pairs))), f"n INT, v {type_}")
    reasoner = Reasoner(engine=engine)
    reasoner.update(add={"p": frame})
    assert rows(reasoner) == expected(pairs)


# Out, and in again.


@pytest.mark.skipif(ON_SPARK, reason="facts on Spark are DataFrames")
@pytest.mark.parametrize("kind", PYTHON)
def test_what_a_reasoner_gives_it_takes_again(kind: str) -> None:
    pairs = KINDS[kind]
    reasoner = Reasoner()
    reasoner.update(add=[(P, row) for row in expected(pairs)])
    check(reasoner.facts("p"), pairs)


@pytest.mark.skipif(ON_SPARK, reason="facts on Spark are DataFrames")
@pytest.mark.parametrize("kind", ARROW)
@pytest.mark.parametrize("way", ["arrow", "pandas", "polars", "rows"])
def test_values_come_out_as_they_went_in(kind: str, way: str) -> None:
    pairs = without_nan(KINDS[kind]) if way == "pandas" else KINDS[kind]
    reasoner = Reasoner()
    reasoner.update(add=[(P, row) for row in expected(pairs)])
    facts = reasoner.facts("p")
    tables: dict[str, Callable[[], Any]] = {
        "arrow": lambda: pa.table(facts),
        "pandas": lambda: facts.to_pandas(),
        "polars": lambda: facts.to_polars(),
        "rows": lambda: list(facts),
    }
    check(tables[way](), pairs)


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("blank nodes", "Skolem terms")])
def test_a_store_and_its_parquet_export(kind: str, tmp_path: Path) -> None:
    pairs = KINDS[kind]
    rules = tmp_path / "p.dlog"
    from hdlog.program.model import Atom, Program, Rule
    from hdlog.text.write import write

    rules.write_text(write(Program(tuple(Rule((Atom("p", row),)) for row in expected(pairs))), "rdfox"))
    from hdlog.operations.stores import materialise, open_for_update

    materialise([rules], [], tmp_path / "store", settings())
    with open_for_update(tmp_path / "store", settings()) as living:
        assert {row for row, _, _ in living.work.reasoner.supports()[P]} == expected(pairs)
    export_store(tmp_path / "store", "parquet", tmp_path / "out", settings())
    table = pq.read_table(tmp_path / "out" / "p.parquet")
    assert table.num_rows == len(pairs)
    if kind in (*ARROW, "IRIs"):
        check(tmp_path / "out" / "p.parquet", pairs)


@pytest.mark.parametrize("kind", [*WRITTEN, "doubles"])
def test_tables_that_a_run_writes_are_read_again(kind: str, tmp_path: Path) -> None:
    pairs = KINDS[kind]
    if kind == "IRIs":
        return  # written as plain text, which the command says
    from hdlog.program.model import Atom, Program, Rule
    from hdlog.text.write import write

    rules = tmp_path / "p.dlog"
    rules.write_text(write(Program(tuple(Rule((Atom("p", row),)) for row in expected(pairs))), "rdfox"))
    run_program([rules], Path(), tmp_path / "out", None, None, None, None, lambda _: None, Tuning())
    declared = "@decl p(n: number, v: float) ." if kind == "doubles" else ""
    reasoner = Reasoner(declared)
    reasoner.update(add={"p": tmp_path / "out" / "p.csv"})
    assert rows(reasoner) == expected(pairs)
