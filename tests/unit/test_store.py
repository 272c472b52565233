"""Files to a store and back, and updates of a store: nothing is lost, nothing is made up."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdlog.api import Reasoner
from hdlog.engines.load import InputError
from hdlog.errors import HdlogError
from hdlog.pipeline.store import StoreError, open_store
from hdlog.program.model import Predicate
from hdlog.program.ntriples import term_text
from hdlog.program.terms import Constant
from hdlog.storing import Settings, export_store, info, load, materialise, update
from tests.engines import ON_SPARK

XSD = "http://www.w3.org/2001/XMLSchema#"
NT = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
RULES = """
prefix : <http://e/>
:path[?x, ?y] :- :edge[?x, ?y] .
:path[?x, ?z] :- :path[?x, ?y], :edge[?y, ?z] .
:named[?k, ?x] :- :edge[?x, ?y], NOT :edge[?y, ?x], BIND(SKOLEM("way", ?x, ?y) AS ?k) .
:big[?x] :- :size[?x, ?n], FILTER(?n > 10) .
"""


def triples(text: str) -> set[str]:
    return {str(t) for t in ox.parse(text.encode(), format=ox.RdfFormat.N_TRIPLES)}


def options() -> Settings:
    if not ON_SPARK:
        return Settings()
    from hdlog.engines.spark.session import start_session

    return Settings("spark", spark=start_session("local[2]", "2g"))


def exported(store: Path) -> set[str]:
    out = store.parent / "exported.nt"
    export_store(store, "nt", out, Settings())
    return triples(out.read_text())


def write(path: Path, *facts: str) -> str:
    path.write_text("".join(f"{fact} .\n" for fact in facts))
    return str(path)


def edge(a: int, b: int) -> str:
    return f"<http://e/n{a}> <http://e/edge> <http://e/n{b}>"


TERMS = [
    "<http://e/a>",
    "_:b0",
    '"plain"',
    '"tab\\tquote\\" back\\\\slash\\u00e9\\n"',
    '"bonjour"@FR',
    '"12"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"012"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"9223372036854775808"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"1.50"^^<http://www.w3.org/2001/XMLSchema#decimal>',
    '"2020-01-01"^^<http://www.w3.org/2001/XMLSchema#date>',
    '"x"^^<http://e/own-datatype>',
    '"<b>&amp;</b>"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#HTML>',
    '""',
    '"\U0001f600"',
]


@given(
    st.lists(
        st.tuples(st.sampled_from(TERMS[:2]), st.sampled_from(["p", "q"]), st.sampled_from(TERMS)), min_size=1
    )
)
@settings(max_examples=25)
def test_triples_survive_a_store_and_pyoxigraph_agrees(
    tmp_path_factory: pytest.TempPathFactory, facts: list[tuple[str, str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("round")
    given_file = write(folder / "in.nt", *(f"{s} <http://e/{p}> {o}" for s, p, o in facts))
    load(folder / "store", [given_file], Settings())
    # Language tags are not case-sensitive, and are kept in lower case.
    assert exported(folder / "store") == triples((folder / "in.nt").read_text().replace("@FR", "@fr"))


def test_skolem_terms_survive_an_export_and_a_load(tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text(RULES)
    materialise([rules], [write(tmp_path / "in.nt", edge(1, 2), edge(2, 3))], tmp_path / "a", options())
    first = exported(tmp_path / "a")
    assert sum("_:skolem" in t for t in first) == 2
    load(tmp_path / "b", [str(tmp_path / "exported.nt")], Settings())
    assert open_store(tmp_path / "b").manifest.skolem_files
    assert exported(tmp_path / "b") == first


@pytest.mark.parametrize("method", ["standard", "hd", "combined"])
def test_an_updated_store_is_that_of_the_changed_files(tmp_path: Path, method: str) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text(RULES.replace(":path[?x, ?z] :-", f"@{method} :path[?x, ?z] :-"))
    size = '<http://e/n1> <http://e/size> "11"^^<http://www.w3.org/2001/XMLSchema#integer>'
    first = [edge(1, 2), edge(2, 3), edge(3, 1), edge(3, 4), size]
    materialise([rules], [write(tmp_path / "in.nt", *first)], tmp_path / "store", options())
    before = exported(tmp_path / "store")
    ids = _ids(tmp_path / "store")
    found = update(
        tmp_path / "store",
        [write(tmp_path / "add.nt", edge(4, 5), edge(7, 7))],
        [write(tmp_path / "delete.nt", edge(3, 1), size, edge(8, 9))],
        options(),
    )
    after = exported(tmp_path / "store")
    second = [edge(1, 2), edge(2, 3), edge(3, 4), edge(4, 5), edge(7, 7)]
    materialise([rules], [write(tmp_path / "in2.nt", *second)], tmp_path / "fresh", options())
    assert after == exported(tmp_path / "fresh")
    assert sum(found["added"].values()) == len(after - before)
    assert sum(found["removed"].values()) == len(before - after)
    assert ids.items() <= _ids(tmp_path / "store").items()  # what had an id keeps it
    supports = {p["name"]: (p["asserted"], p["derived"]) for p in info(tmp_path / "store")["predicates"]}
    assert supports == {
        p["name"]: (p["asserted"], p["derived"]) for p in info(tmp_path / "fresh")["predicates"]
    }


def _ids(folder: Path) -> dict[str, int]:
    store = open_store(folder)
    found: dict[str, int] = {}
    for file in store.manifest.term_files:
        rows = pq.read_table(store.path(file)).to_pydict()
        found |= dict(zip(rows["text"], rows["id"], strict=True))
    assert sorted(found.values()) == list(range(store.manifest.terms))
    return found


def test_a_store_moves_from_one_engine_to_the_other(tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text(RULES)
    materialise([rules], [write(tmp_path / "in.nt", edge(1, 2), edge(2, 1))], tmp_path / "store", options())
    update(tmp_path / "store", [write(tmp_path / "more.nt", edge(2, 3))], [], Settings("columnar"))
    update(tmp_path / "store", [write(tmp_path / "more.nt", edge(3, 4))], [], options())
    update(tmp_path / "store", [], [write(tmp_path / "less.nt", edge(2, 1))], Settings("columnar"))
    materialise(
        [rules],
        [write(tmp_path / "all.nt", edge(1, 2), edge(2, 3), edge(3, 4))],
        tmp_path / "fresh",
        Settings(),
    )
    assert exported(tmp_path / "store") == exported(tmp_path / "fresh")


def test_variables_in_place_of_predicates_see_what_a_store_has(tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text("prefix : <http://e/>\n:linked[?x, ?y] :- [?x, ?p, ?y], :relation[?p] .\n")
    relation = f"<http://e/edge> <{NT}> <http://e/relation>"
    materialise([rules], [write(tmp_path / "in.nt", edge(1, 2))], tmp_path / "store", options())
    found = update(tmp_path / "store", [write(tmp_path / "add.nt", relation)], [], options())
    assert found["added"] == {"http://e/relation/1": 1, "http://e/linked/2": 1}


def test_malformed_lines_are_refused_with_their_place_or_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "bad.nt"
    path.write_text(f"{edge(1, 2)} .\n<http://e/a> <b c> <d> .\n{edge(2, 3)} .\n")
    with pytest.raises(InputError, match=r"bad\.nt:2: "):
        load(tmp_path / "store", [str(path)], Settings())
    assert not (tmp_path / "store").exists()
    found = load(tmp_path / "store", [str(path)], Settings(lenient=True))
    assert (found["facts"], found["skipped"]) == (2, 1)
    assert "bad.nt:2: " in found["problems"][0]


def test_a_failed_update_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    load(tmp_path / "store", [write(tmp_path / "in.nt", edge(1, 2))], Settings())
    before = (tmp_path / "store" / "manifest.json").read_text()
    (tmp_path / "bad.nt").write_text("nonsense\n")
    with pytest.raises(InputError):
        update(tmp_path / "store", [str(tmp_path / "bad.nt")], [], Settings())
    assert (tmp_path / "store" / "manifest.json").read_text() == before
    update(tmp_path / "store", [write(tmp_path / "more.nt", edge(5, 6))], [], Settings())
    assert len(exported(tmp_path / "store")) == 2


def test_tables_folders_globs_and_compressed_files_load_together(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "likes.csv").write_text("who,what\nann,3\nbob,4\n")
    (data / "knows.facts").write_text("1\t2\n2\t3\n1\t2\n")
    (data / "events.jsonl").write_text('{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n')
    with gzip.open(data / "more.nt.gz", "wt") as out:
        out.write(f"{edge(1, 2)} .\n")
    (data / "t.ttl").write_text("@prefix : <http://e/> . :n1 :edge :n2, :n3 .")
    load(tmp_path / "store", [str(data)], Settings())
    found = {p["name"]: (p["arity"], p["facts"]) for p in info(tmp_path / "store")["predicates"]}
    assert found == {"likes": (2, 2), "knows": (2, 2), "events": (2, 2), "http://e/edge": (2, 2)}
    with pytest.raises(HdlogError, match="none"):
        load(tmp_path / "none", [str(tmp_path / "none*.nt")], Settings())


def test_other_tools_read_the_snapshot_and_the_exports(tmp_path: Path) -> None:
    (tmp_path / "likes.csv").write_text("who,what\nann,3\nbob,4\n")
    load(tmp_path / "store", [str(tmp_path / "likes.csv")], Settings())
    (likes,) = info(tmp_path / "store")["predicates"]
    files = tmp_path / "store" / likes["folder"] / "*.parquet"
    terms = tmp_path / "store" / "terms" / "*.parquet"
    query = f"SELECT text, c1 FROM '{files}' JOIN '{terms}' ON c0 = id ORDER BY text"
    assert [text for text, _ in duckdb.execute(query).fetchall()] == ['"ann"', '"bob"']
    for format_, ending in (("parquet", "parquet"), ("csv", "csv")):
        export_store(tmp_path / "store", format_, tmp_path / format_, Settings())
        rows = duckdb.execute(
            f"SELECT * FROM '{tmp_path / format_ / f'likes.{ending}'}' ORDER BY ALL"
        ).fetchall()
        assert rows == [("ann", 3), ("bob", 4)]
    export_store(tmp_path / "store", "facts", tmp_path / "facts", Settings())
    assert sorted((tmp_path / "facts" / "likes.facts").read_text().splitlines()) == ["ann\t3", "bob\t4"]


def test_a_store_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store there"):
        open_store(tmp_path)
    load(tmp_path / "store", [write(tmp_path / "in.nt", edge(1, 2))], Settings())
    with pytest.raises(StoreError, match="--overwrite"):
        load(tmp_path / "store", [str(tmp_path / "in.nt")], Settings())
    load(tmp_path / "store", [str(tmp_path / "in.nt")], Settings(), overwrite=True)
    (tmp_path / "store" / "lock").write_text("1")
    with pytest.raises(StoreError, match="process 1 is writing"):
        update(tmp_path / "store", [str(tmp_path / "in.nt")], [], Settings())
    manifest = tmp_path / "store" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 99}))
    with pytest.raises(StoreError, match="format"):
        open_store(tmp_path / "store")


@pytest.mark.parametrize("large", [False, True], ids=["terms stay", "terms are read"])
def test_terms_that_stay_in_the_store_have_values(tmp_path: Path, large: bool) -> None:
    """Numbers that are no ids, strings and constants of rules, in terms that the engine has not read; beside them, numbers
    so large that rules could make them too."""
    value = "9223372036854775806" if large else "7"
    (tmp_path / "data.nt").write_text(
        f'<http://e/a> <http://e/v> "{value}"^^<{XSD}integer> .\n<http://e/b> <http://e/v> "05"^^<{XSD}integer> .\n<http://e/c> <http://e/v> "2.5"^^<{XSD}double> .\n'
        '<http://e/d> <http://e/v> "x"@en .\n<http://e/e> <http://e/v> "plain" .\n<http://e/f> <http://e/w> <http://e/a> .\n'
    )
    rules = """
        <http://e/big>[?x] :- <http://e/v>[?x, ?n], FILTER(?n > 4) .
        <http://e/text>[?x, ?t] :- <http://e/v>[?x, ?n], BIND(STR(?n) AS ?t) .
        <http://e/next>[?x, ?m] :- <http://e/v>[?x, ?n], BIND(?n + 1 AS ?m) .
        <http://e/one>[?x] :- <http://e/w>[?x, <http://e/a>], <http://e/v>[<http://e/a>, ?n] .
    """
    (tmp_path / "rules.dlog").write_text(rules)
    materialise([tmp_path / "rules.dlog"], [tmp_path / "data.nt"], tmp_path / "store", options())
    (tmp_path / "more.nt").write_text(
        f'<http://e/g> <http://e/v> "9"^^<{XSD}integer> .\n<http://e/f> <http://e/w> <http://e/b> .\n<http://e/h> <http://e/v> "9223372036854775807"^^<{XSD}integer> .\n'
    )
    update(tmp_path / "store", [str(tmp_path / "more.nt")], [], options())
    fresh = Reasoner(rules)
    fresh.update(add=[tmp_path / "data.nt", tmp_path / "more.nt"])
    wanted = {
        f"{s} <{p.name}> {o}" if p.arity == 2 else f"{s} <{NT}> <{p.name}>"
        for p, n in fresh.counts().items()
        if n
        for row in _rows(fresh, p)
        for s, o in [(term_text(row[0]), term_text(row[-1]))]
    }
    assert exported(tmp_path / "store") == wanted
    assert len([t for t in wanted if "big" in t]) >= 3


def _rows(reasoner: Reasoner, predicate: Predicate) -> list[tuple[Constant, ...]]:
    return [row for row, _, _ in reasoner.engine.supports(reasoner.stored_tables()[predicate])]
