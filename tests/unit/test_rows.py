"""Columns as lines, and the loops that write them."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hdlog.program.model import Predicate
from hdlog.writing import kernels, rows
from hdlog.writing.files import write_table, write_triples
from hdlog.writing.rows import write_rows
from hdlog.writing.sheets import Sheet
from hdlog.writing.values import plain_texts

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 120)
TEXTS = st.text(max_size=20)
TABLES = st.integers(0, 12).flatmap(
    lambda n: st.lists(
        st.lists(NUMBERS, min_size=n, max_size=n) | st.lists(TEXTS, min_size=n, max_size=n),
        min_size=1,
        max_size=4,
    )
)


def encode(column: list[int] | list[str]) -> pa.Array:
    if all(isinstance(value, int) for value in column):
        return pa.array(column, pa.int64())
    return pa.array(column, pa.large_string()).dictionary_encode()


@given(TABLES, st.text(max_size=3), st.lists(st.text(max_size=3), min_size=4, max_size=4))
def test_rows_are_values_with_what_stands_between_them(
    table: list[list[int] | list[str]], before: str, between: list[str]
) -> None:
    out = io.BytesIO()
    behind = between[: len(table)]
    write_rows(out, [encode(column) for column in table], before, behind)
    lines = [
        before + "".join(f"{value}{text}" for value, text in zip(row, behind, strict=True))
        for row in zip(*table, strict=True)
    ]
    assert out.getvalue().decode() == "".join(lines)


def test_more_rows_than_are_put_together_at_once() -> None:
    count = 2 * rows._ROWS + 5
    out = io.BytesIO()
    write_rows(out, [pa.array(range(count)), encode([f"v{i % 3}" for i in range(count)])], "", ["\t", "\n"])
    assert out.getvalue().decode() == "".join(f"{i}\tv{i % 3}\n" for i in range(count))


@given(st.binary(max_size=60), st.binary(min_size=4, max_size=4))
def test_bytes_are_counted(data: bytes, wanted: bytes) -> None:
    counted = kernels.count_bytes(np.frombuffer(data, np.uint8), np.frombuffer(wanted, np.uint8))
    assert counted == sum(byte in wanted for byte in data)


@given(st.lists(st.text(max_size=30)))
def test_plain_texts_are_those_that_were_quoted(texts: list[str]) -> None:
    from hdlog.program.ntriples import quote

    quoted = pa.array([quote(text) for text in texts], pa.large_string())
    assert plain_texts(quoted).to_pylist() == texts


def test_numbers_and_literals_as_subjects_are_no_triples() -> None:
    def sheet(name: str, *columns: pa.Array) -> Sheet:
        return Sheet(Predicate(name, len(columns)), len(columns[0]), lambda: list(columns))

    nodes = encode(["<http://e/a>", '"literal"'])
    out = io.BytesIO()
    count, left = write_triples(
        [sheet("http://e/p", nodes, pa.array([1, -2])), sheet("http://e/q", pa.array([1]), nodes[:1])], out
    )
    assert count == 1
    assert out.getvalue() == b'<http://e/a> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    assert len(left) == 2


def test_a_table_in_order_has_numbers_by_size_and_texts_as_they_are_sorted() -> None:
    columns = [encode(['"b"', '"a"', '"b"', '"a"']), pa.array([10, 9, -1, 100])]
    out = io.BytesIO()
    write_table(Sheet(Predicate("p", 2), 4, lambda: columns), out, ordered=True)
    assert out.getvalue() == b"a\t9\na\t100\nb\t-1\nb\t10\n"
