"""`hdlog query`, `sql`, `why`, `why-not`, `what-if`, `update --sparql`: a store is asked from the shell."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

from hdlog.commands.main import app
from hdlog.errors import HdlogError
from tests.engines import ON_SPARK

pytestmark = pytest.mark.skipif(ON_SPARK, reason="commands choose their engine")

RULES = """
PREFIX : <http://example.org/>
:grandparent[?x, ?z] :- :parent[?x, ?y], :parent[?y, ?z] .
:ancestor[?x, ?y] :- :parent[?x, ?y] .
:ancestor[?x, ?z] :- :ancestor[?x, ?y], :parent[?y, ?z] .
:childless[?x] :- :person[?x], NOT EXISTS ?y IN :parent[?x, ?y] .
:children[?x, ?n] :- AGGREGATE(:parent[?x, ?y] ON ?x BIND COUNT(?y) AS ?n) .
:parent[:ann, :bob] .
:parent[:bob, :cat] .
:parent[:bob, :dan] .
:person[:ann] . :person[:bob] . :person[:cat] . :person[:dan] .
:age[:ann, 71] . :age[:bob, 40] .
"""


def hdlog(*arguments: str | Path, given: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], input=given)


def refusal(*arguments: str | Path) -> str:
    """What is said to a call that is refused."""
    found = hdlog(*arguments)
    assert found.exit_code in (1, 2), found.output
    assert isinstance(found.exception, HdlogError | SystemExit)
    return f"{found.output}{found.exception}"


def ask(*arguments: str | Path, given: str | None = None) -> str:
    found = hdlog(*arguments, given=given)
    assert found.exit_code == 0, found.output
    return found.stdout


@pytest.fixture
def store(tmp_path: Path) -> Path:
    rules = tmp_path / "family.dlog"
    rules.write_text(RULES)
    ask("materialise", rules, "--store", tmp_path / "family")
    return tmp_path / "family"


# Rule bodies.


def test_a_rule_body_in_every_format(store: Path, tmp_path: Path) -> None:
    text = "?x, ?y <- :ancestor[?x, ?y], NOT :parent[?x, ?y]"
    lines = ["x,y", *(f"http://example.org/ann,http://example.org/{n}" for n in ("cat", "dan"))]
    assert ask("query", store, text, "--order", "?y").split() == lines
    assert ask("query", store, text, "--order", "-y", "--limit", "1").split() == [lines[0], lines[2]]
    assert ask("query", store, text, "--order", "y", "--offset", "1").split() == [lines[0], lines[2]]
    assert len(json.loads(ask("query", store, text, "--format", "json"))["results"]["bindings"]) == 2
    assert "<http://example.org/cat>" in ask("query", store, text, "--format", "tsv")
    assert ask("query", store, text, "--format", "table").splitlines()[0].split() == ["x", "y"]
    out = tmp_path / "answers.parquet"
    assert ask("query", store, text, "--out", out) == ""
    assert pyarrow.parquet.read_table(out).num_rows == 2


def test_a_query_from_a_file_and_from_standard_input(store: Path, tmp_path: Path) -> None:
    (tmp_path / "query.txt").write_text("?n <- :children[:bob, ?n]")
    assert ask("query", store, f"@{tmp_path / 'query.txt'}").split() == ["n", "2"]
    assert ask("query", store, "-", given="?n <- :children[:ann, ?n]").split() == ["n", "1"]


def test_a_question_is_answered_yes_or_no(store: Path) -> None:
    assert ask("query", store, ":ancestor[:ann, :cat]", "--format", "table") == "yes\n"
    assert ask("query", store, ":ancestor[:cat, :ann]", "--format", "table") == "no\n"
    assert ask("query", store, "ASK { :ann :parent+ :dan }", "--format", "table") == "yes\n"
    assert (
        json.loads(ask("query", store, "ASK { :dan :parent+ :ann }", "--format", "json"))["boolean"] is False
    )


def test_matches_are_given_as_often_as_they_are_found(store: Path) -> None:
    assert ask("query", store, "?x <- :parent[?x, ?y]").split()[1:] == [
        "http://example.org/ann",
        "http://example.org/bob",
    ]
    assert len(ask("query", store, "?x <- :parent[?x, ?y]", "--matches").split()) == 4


def test_how_a_query_is_evaluated_is_told(store: Path) -> None:
    told = ask("query", store, "?x <- :parent[?x, ?y], :parent[?y, ?z], :ancestor[?x, ?z]", "--explain")
    assert ":parent" in told or "parent" in told
    assert "join" in told


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["?z <- :parent[?x, ?y]"], "?z"),
        (["?x <- :parent[?x"], "expected"),
        (["?x <- :parent[?x, ?y]", "--order", "q"], "q"),
        (["SELECT * { ?x :parent }"], "SPARQL"),
        (["SELECT * { SERVICE <http://e/> { ?x ?y ?z } }"], "not supported"),
        (["SELECT (nofunction(?x) AS ?y) { ?x ?y ?z }"], "SPARQL"),
        (["SELECT * { ?x ?y ?z }", "--limit", "1"], "LIMIT"),
        (["SELECT * { ?x ?y ?z }", "--format", "nt"], "only triples"),
        (["?x <- :parent[?x, ?y]", "--out", "answers.txt"], "format"),
    ],
)
def test_what_cannot_be_asked_is_refused(store: Path, arguments: list[str], problem: str) -> None:
    assert problem in refusal("query", store, *arguments)


@pytest.mark.parametrize("text", ["?x <- :parnt[?x, ?y]", "SELECT * { ?x :parnt ?y }", ":parnt[:ann, ?x]"])
def test_a_predicate_that_nothing_has_is_told(store: Path, text: str) -> None:
    found = hdlog("query", store, text)
    assert found.exit_code == 0
    assert "did you mean http://example.org/parent?" in found.stderr


# SPARQL.


def test_sparql_with_the_prefixes_of_the_rules(store: Path) -> None:
    assert ask("query", store, "SELECT (COUNT(*) AS ?n) { ?x :ancestor ?y }").split() == ["n", "5"]
    assert "<http://example.org/cat>" in ask(
        "query", store, "CONSTRUCT { ?y :descends ?x } { ?x :ancestor ?y }", "--format", "nt"
    )
    assert ask("query", store, "DESCRIBE :ann", "--format", "nt").count("<http://example.org/ann>") >= 3


def test_a_sparql_update_prints_the_net_change(store: Path) -> None:
    lines = ask(
        "update", store, "--sparql", "DELETE { ?x :parent ?y } WHERE { ?x :parent ?y . ?y :parent :cat }"
    )
    assert {line[0] for line in lines.splitlines()} == {"-", "+"}
    assert "- <http://example.org/ann> <http://example.org/ancestor> <http://example.org/cat> ." in lines
    assert ask("query", store, ":ancestor[:ann, :cat]", "--format", "table") == "no\n"
    assert ask("query", store, ":ancestor[:ann, :cat]", "--format", "table", "--at", "1") == "yes\n"
    assert "nothing" not in hdlog("verify", store, "--deep").output


def test_a_bad_sparql_update_leaves_the_store(store: Path) -> None:
    for bad in (
        "DELETE",
        "INSERT DATA { ?x :p :y }",
        "DELETE DATA { _:x :p :y }",
        "LOAD <http://example.org/file>",
        "LOAD <none.ttl>",
    ):
        assert refusal("update", store, "--sparql", bad)
    assert ask("query", store, "SELECT (COUNT(*) AS ?n) { ?x :parent ?y }").split() == ["n", "3"]


# SQL.


def test_sql_over_predicates(store: Path, tmp_path: Path) -> None:
    text = "select c1 as n from children order by c0"
    assert ask("sql", store, text).split() == ["n", "1", "2"]
    assert [json.loads(line) for line in ask("sql", store, text, "--format", "json").splitlines()] == [
        {"n": 1},
        {"n": 2},
    ]
    assert ask("sql", store, 'select count(*) as n from "http://example.org/ancestor"').split() == ["n", "5"]
    joined = "select p.c0, a.c1 from parent p join age a on a.c0 = p.c0 where a.c1 > 50"
    assert ask("sql", store, joined).splitlines()[1:] == ["http://example.org/ann,71"]
    out = tmp_path / "rows.parquet"
    ask("sql", store, "select * from age", "--out", out)
    assert str(pyarrow.parquet.read_table(out).schema.field("c1").type) == "int64"


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("select * from parnt", "parent"),
        ("selec * from parent", "DuckDB"),
        ("select nothing from parent", "nothing"),
        ("drop table parent", "DuckDB"),
    ],
)
def test_sql_that_cannot_be_run_is_refused(store: Path, statement: str, problem: str) -> None:
    assert problem in refusal("sql", store, statement)


# Why, why not, what if.


def test_why_as_text_as_json_and_as_a_page(store: Path, tmp_path: Path) -> None:
    told = ask("why", store, ":ancestor[:ann, :dan]")
    assert "family.dlog:5" in told
    assert "asserted" in told
    found = json.loads(ask("why", store, ":ancestor[:ann, :dan]", "--json"))
    assert found["fact"]
    page = tmp_path / "why.html"
    ask("why", store, ":childless[:cat]", "--html", page)
    assert "<svg" in page.read_text()


def test_why_of_what_does_not_hold_points_to_why_not(store: Path) -> None:
    assert "why-not" in refusal("why", store, ":ancestor[:cat, :dan]")
    assert "`why`" in refusal("why-not", store, ":ancestor[:ann, :dan]")


def test_why_not_names_the_atom_that_fails(store: Path) -> None:
    told = ask("why-not", store, ":grandparent[:ann, :ann]")
    assert "family.dlog:3" in told
    assert ":parent" in told or "parent" in told
    assert json.loads(ask("why-not", store, ":childless[:bob]", "--json"))["misses"]


def test_what_if_changes_nothing(store: Path, tmp_path: Path) -> None:
    (tmp_path / "gone.nt").write_text(
        "<http://example.org/bob> <http://example.org/parent> <http://example.org/cat> .\n"
    )
    tried = ask("what-if", store, "--delete", tmp_path / "gone.nt")
    assert ask("query", store, ":ancestor[:ann, :cat]", "--format", "table") == "yes\n"
    assert ask("update", store, "--delete", tmp_path / "gone.nt") == tried
