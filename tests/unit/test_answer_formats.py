"""Answers in the formats of SPARQL's standard: pyoxigraph reads back what it would have answered itself."""

from __future__ import annotations

import io
import random
from collections import Counter

import pyarrow.csv
import pyarrow.parquet
import pyoxigraph as ox
import pytest

from hdlog.errors import UsageError
from hdlog.query.formats import write_answers
from tests.engines import ON_SPARK, Reasoner
from tests.sparql import ask_oxigraph, make_quads, make_row

pytestmark = pytest.mark.skipif(ON_SPARK, reason="answers are of either engine")

QUERIES = [
    "SELECT * { ?a ?b ?c }",
    "SELECT ?a ?none ?c { ?a ?b ?c OPTIONAL { ?a <http://e/p> ?none } }",
    "SELECT ?a { ?a <http://e/none> ?c }",
    'SELECT (CONCAT(STR(?a), "\\n\\t\\"<&>é\\\\") AS ?text) ?b { ?a ?b 1 }',
    "SELECT (1/3 AS ?third) (1e0 AS ?e) (BNODE() AS ?n) {}",
]
ODD = r"""<http://e/odd> <http://e/p> "a\nb\t\"c\" <&> 'd'\\ é\r," .
<http://e/odd> <http://e/p> "x"@en-GB .
<http://e/odd> <http://e/p> "2026-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<http://e/odd> <http://e/p> "" .
_:node <http://e/p> _:other .
"""


@pytest.fixture(scope="module")
def data() -> str:
    return make_quads(random.Random(5), 20) + ODD


@pytest.fixture(scope="module")
def reasoner(data: str) -> Reasoner:
    made = Reasoner()
    made.update(add=list(ox.parse(data.encode(), format=ox.RdfFormat.N_QUADS)))
    return made


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("json", ox.QueryResultsFormat.JSON),
        ("xml", ox.QueryResultsFormat.XML),
        ("tsv", ox.QueryResultsFormat.TSV),
    ],
)
def test_answers_are_read_back(
    reasoner: Reasoner, query: str, name: str, form: ox.QueryResultsFormat
) -> None:
    answers = reasoner.sparql(query)
    out = io.BytesIO()
    write_answers(answers, name, out)  # type: ignore[arg-type]
    found = ox.parse_query_results(out.getvalue(), format=form)
    assert isinstance(found, ox.QuerySolutions)
    assert [v.value for v in found.variables] == list(answers.names)
    rows = [make_row(answers.names, [None if t is None else _label(str(t)) for t in row]) for row in found]
    expected = [
        make_row(answers.names, [None if t is None else _label(str(t)) for t in texts])
        for texts in _texts(answers)
    ]
    assert rows == expected


def _texts(answers: object) -> list[list[str | None]]:
    from hdlog.program.ntriples import term_text
    from hdlog.query.answers import Answers

    assert isinstance(answers, Answers)
    return [[None if t is None else term_text(t) for t in row] for row in answers.terms()]


def _label(text: str) -> str:
    return "_:node" if text.startswith("_:") else text


@pytest.mark.parametrize("query", ["ASK { ?a ?b 1 }", "ASK { ?a <http://e/none> 1 }"])
def test_a_question_is_read_back(reasoner: Reasoner, data: str, query: str) -> None:
    store = ox.Store()
    store.load(data.encode(), format=ox.RdfFormat.N_QUADS)
    for name, form in (("json", ox.QueryResultsFormat.JSON), ("xml", ox.QueryResultsFormat.XML)):
        out = io.BytesIO()
        write_answers(reasoner.sparql(query), name, out, is_question=True)  # type: ignore[arg-type]
        found = ox.parse_query_results(out.getvalue(), format=form)
        assert isinstance(found, ox.QueryBoolean)
        assert bool(found) is ask_oxigraph(store, query)


def test_csv_has_plain_values(reasoner: Reasoner) -> None:
    out = io.BytesIO()
    write_answers(reasoner.sparql("SELECT ?c { <http://e/odd> <http://e/p> ?c }"), "csv", out)
    options = pyarrow.csv.ParseOptions(newlines_in_values=True)
    read = pyarrow.csv.ConvertOptions(column_types={"c": "string"}, strings_can_be_null=False)
    table = pyarrow.csv.read_csv(io.BytesIO(out.getvalue()), parse_options=options, convert_options=read)
    values = set(table["c"].to_pylist())
    assert values == {"a\nb\t\"c\" <&> 'd'\\ é\r,", "x", "2026-01-01T00:00:00Z", ""}


def test_what_xml_cannot_hold_is_refused(reasoner: Reasoner) -> None:
    answers = reasoner.sparql('SELECT ("\\u0007" AS ?bell) {}')
    with pytest.raises(UsageError, match=r"U\+0007, which XML cannot hold"):
        write_answers(answers, "xml", io.BytesIO())


def test_parquet_has_typed_columns(reasoner: Reasoner) -> None:
    out = io.BytesIO()
    write_answers(reasoner.sparql("SELECT (COUNT(*) AS ?n) (0.5e0 AS ?d) { ?a ?b ?c }"), "parquet", out)
    table = pyarrow.parquet.read_table(io.BytesIO(out.getvalue()))
    assert [str(t) for t in table.schema.types] == ["int64", "double"]


def test_triples_are_n_triples_and_nothing_else_is(reasoner: Reasoner, data: str) -> None:
    query = "CONSTRUCT { ?c <http://e/back> ?a . ?a ?b _:new } { ?a ?b ?c FILTER(?a != <http://e/a>) }"
    out = io.BytesIO()
    write_answers(reasoner.sparql(query), "nt", out)
    found = Counter(
        " ".join(map(_label, map(str, t.triple)))
        for t in ox.parse(out.getvalue(), format=ox.RdfFormat.N_TRIPLES)
    )
    store = ox.Store()
    store.load(data.encode(), format=ox.RdfFormat.N_QUADS)
    made = store.query(query)
    assert isinstance(made, ox.QueryTriples)
    assert found == Counter(" ".join(map(_label, map(str, t))) for t in made)
    with pytest.raises(UsageError, match="only triples"):
        write_answers(reasoner.sparql("SELECT * { ?a ?b ?c }"), "nt", io.BytesIO())
