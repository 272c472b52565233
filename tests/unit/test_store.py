"""Files to a store and back, and updates of a store: nothing is lost, nothing is made up."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdlog.errors import HdlogError, InputError, StoreError, UsageError
from hdlog.operations.stores import (
    begin_living,
    change_lines,
    change_rules,
    compact,
    explain_store,
    export_store,
    info,
    list_rules,
    load,
    log,
    make_sheets,
    materialise,
    rollback,
    update,
    verify,
)
from hdlog.operations.work import Settings
from hdlog.program.model import Predicate
from hdlog.program.ntriples import term_text
from hdlog.program.terms import Constant
from hdlog.reading import identifiers
from hdlog.reading.identifiers import text_hash
from hdlog.report.explain import as_text
from hdlog.store.export import export
from hdlog.store.store import open_for_reading, open_store
from hdlog.tuning import Tuning
from tests.engines import ON_SPARK
from tests.engines import OpenReasoner as Reasoner
from tests.engines import settings as options

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
    found = exported(folder / "store")
    # Language tags are not case-sensitive, and are kept in lower case; labels of blank nodes say which file they are of.
    expected = triples((folder / "in.nt").read_text().replace("@FR", "@fr"))
    assert {re.sub(r"_:b\.[0-9a-f]{10}\.b0", "_:b0", t) for t in found} == expected
    load(folder / "again", [str(folder / "exported.nt")], Settings())
    assert exported(folder / "again") == found


def test_skolem_terms_survive_an_export_and_a_load(tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text(RULES)
    materialise([rules], [write(tmp_path / "in.nt", edge(1, 2), edge(2, 3))], tmp_path / "a", options())
    first = exported(tmp_path / "a")
    assert sum("_:skolem" in t for t in first) == 2
    load(tmp_path / "b", [str(tmp_path / "exported.nt")], Settings())
    assert open_store(tmp_path / "b").manifest.skolems
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
    for file in store.manifest.terms:
        rows = store.read_table(file).to_pydict()
        found |= dict(zip(rows["text"], rows["id"], strict=True))
    assert found == {text: text_hash(text) for text in found}
    assert len(found) == store.manifest.counts["terms"]
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
    (tmp_path / "likes.tsv").write_text("who\twhat\ncat\t5\n")
    update(tmp_path / "store", [str(tmp_path / "likes.tsv")], [str(tmp_path / "likes.csv")], Settings())
    update(tmp_path / "store", [str(tmp_path / "likes.csv")], [str(tmp_path / "likes.tsv")], Settings())
    (likes,) = info(tmp_path / "store")["predicates"]
    files = tmp_path / "store" / "facts" / "*.parquet"
    terms = tmp_path / "store" / "terms" / "*.parquet"
    query = f"""
        SELECT text, c1 + 4611686018427387904
        FROM (SELECT c0, c1 FROM '{files}' WHERE p = {likes["number"]} GROUP BY ALL HAVING sum(live) > 0)
        JOIN '{terms}' ON c0 = id ORDER BY text
    """
    assert duckdb.execute(query).fetchall() == [('"ann"', 3), ('"bob"', 4)]
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
    manifest = tmp_path / "store" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 99}))
    with pytest.raises(StoreError, match="format"):
        open_store(tmp_path / "store")


def test_one_process_writes_at_a_time_whatever_it_does(tmp_path: Path) -> None:
    given = write(tmp_path / "in.nt", edge(1, 2))
    store = tmp_path / "store"
    load(store, [given], Settings())
    before = contents(store)
    hold = (
        "import sys, time; from pathlib import Path; from hdlog.store.store import lock_folder\n"
        "with lock_folder(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(store)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=f"process {other.pid} is writing"):
            update(store, [given], [], Settings())
        with pytest.raises(StoreError, match=f"process {other.pid} is writing"):
            load(store, [given], Settings(), overwrite=True)
        assert contents(store) == before
        other.kill()
    # The lock has gone with its process.
    update(store, [write(tmp_path / "more.nt", edge(2, 3))], [], Settings())


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and p.name not in ("lock", "writer") and p.parent.name != "leases"
    }


def test_a_store_is_replaced_when_the_new_one_is_whole_and_not_before(tmp_path: Path) -> None:
    rules, store = tmp_path / "rules.dlog", tmp_path / "store"
    rules.write_text(RULES)
    materialise([rules], [write(tmp_path / "in.nt", edge(1, 2), edge(2, 3))], store, options())
    before = contents(store)
    (tmp_path / "bad.nt").write_text("nonsense\n")
    (tmp_path / "odd.dlog").write_text("p[?x] :- q[?y] .")
    for file, data, limit in (
        (rules, tmp_path / "bad.nt", None),
        (rules, tmp_path / "missing.nt", None),
        (tmp_path / "odd.dlog", tmp_path / "in.nt", None),
        (rules, tmp_path / "in.nt", 1),
    ):
        with pytest.raises(HdlogError):
            materialise([file], [data], store, replace(options(), max_facts=limit), overwrite=True)
        assert contents(store) == before
    materialise([rules], [write(tmp_path / "other.nt", edge(5, 6))], store, options(), overwrite=True)
    assert all("n5" in line for line in exported(store))
    assert info(store)["version"] == 2
    assert len([p for p in contents(store) if p.startswith("facts/")]) == 2  # the version before is kept, too


def test_whoever_reads_keeps_what_it_has_opened(tmp_path: Path) -> None:
    store = tmp_path / "store"
    load(store, [write(tmp_path / "in.nt", edge(1, 2))], Settings())
    with open_for_reading(store) as opened:
        for number in range(15):
            update(store, [write(tmp_path / f"{number}.nt", edge(number, 7))], [], Settings())
        sheets = make_sheets(begin_living(opened, Settings()).work, opened)
        assert export(sheets, "nt", tmp_path / "old.nt", lambda _: None) == (1, [])
        assert 1 in info(store)["versions"]
    assert len(exported(store)) == 16
    update(store, [write(tmp_path / "last.nt", edge(8, 9))], [], Settings())
    assert info(store)["versions"] == list(range(8, 18))


def test_rules_of_a_store_are_those_it_was_made_with(tmp_path: Path) -> None:
    """Includes and all, whatever becomes of the files."""
    (tmp_path / "rules.dl").write_text(
        '#include "more.dl"\n.decl p(x: number)\np(x) :- q(x, N).\n.decl q(x: number, y: number)\n'
    )
    (tmp_path / "more.dl").write_text("#define N 1\n")
    (tmp_path / "q.facts").write_text("5\t1\n6\t2\n")
    store = tmp_path / "store"
    materialise([tmp_path / "rules.dl"], [tmp_path / "q.facts"], store, options())
    (tmp_path / "more.dl").write_text("#define N 2\n")
    (tmp_path / "q.facts").write_text("7\t1\n8\t2\n")
    assert update(store, [str(tmp_path / "q.facts")], [], options())["added"] == {"p/1": 1, "q/2": 2}


@pytest.mark.parametrize("kind", ["image", "facts", "terms", "catalogue", "manifest.json"])
@pytest.mark.parametrize("damage", ["missing", "garbage", "cut"])
def test_a_damaged_store_is_refused_by_name(tmp_path: Path, kind: str, damage: str) -> None:
    store = tmp_path / "store"
    load(store, [write(tmp_path / "in.nt", *(edge(i, i + 1) for i in range(50)))], Settings())
    update(store, [write(tmp_path / "more.nt", *(edge(i, i + 2) for i in range(80)))], [], Settings())
    path = store / kind if "." in kind else max((store / kind).iterdir())
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"garbage" if damage == "garbage" else path.read_bytes()[:-20])
    if (kind, damage) == ("image", "missing"):
        assert len(exported(store)) == 130  # it is made from the rest
        return
    with pytest.raises(StoreError, match=r"damaged|no store"):
        update(store, [str(tmp_path / "in.nt")], [], Settings())
    with pytest.raises(StoreError, match=r"damaged|no store"):
        export_store(store, "nt", tmp_path / "out.nt", Settings())


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
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
    return [row for row, _, _ in reasoner.tables()[predicate]]


@pytest.mark.skipif(ON_SPARK, reason="tests/spark has it")
def test_two_texts_with_the_same_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes are cut to a few bits here, so that some clash."""
    monkeypatch.setattr(identifiers, "HASHED", 0x1F)
    store = tmp_path / "store"
    load(store, [write(tmp_path / "in.nt", *(edge(i, i + 1) for i in range(20)))], Settings())
    update(store, [write(tmp_path / "more.nt", *(edge(i, i + 7) for i in range(30)))], [], Settings())
    update(store, [], [write(tmp_path / "less.nt", *(edge(i, i + 1) for i in range(5)))], Settings())
    assert exported(store) == {edge(i, i + 1) for i in range(5, 20)} | {edge(i, i + 7) for i in range(30)}
    assert len(open_store(store).manifest.clashes) > 5
    verify(store, Settings(), deep=True)
    compact(store, Settings())
    assert exported(store) == {edge(i, i + 1) for i in range(5, 20)} | {edge(i, i + 7) for i in range(30)}


def test_versions_are_read_rolled_back_and_forgotten(tmp_path: Path) -> None:
    rules, store = tmp_path / "rules.dlog", tmp_path / "store"
    rules.write_text(RULES)
    materialise([rules], [write(tmp_path / "in.nt", edge(1, 2))], store, options())
    update(store, [write(tmp_path / "more.nt", edge(2, 3))], [], options())
    second = exported(store)
    update(store, [], [write(tmp_path / "less.nt", edge(1, 2))], options())
    export_store(store, "nt", tmp_path / "old.nt", Settings(), version=2)
    assert triples((tmp_path / "old.nt").read_text()) == second
    assert info(store, 2)["facts"] == len(second) != info(store)["facts"]
    rollback(store, 2)
    assert exported(store) == second
    assert [e["version"] for e in log(store)] == [4, 3, 2, 1]
    verify(store, Settings(), deep=True)
    compact(store, options(), keep=1)
    assert exported(store) == second
    with pytest.raises(StoreError, match="no version 2 any more"):
        info(store, 2)
    assert [e["kept"] for e in log(store)] == [True, False, False, False, False]
    assert len(list((store / "facts").iterdir())) == 1
    for number in range(60):
        update(store, [write(tmp_path / "x.nt", edge(number, number))], [], Settings())
    assert [e["version"] for e in log(store)] == list(range(65, 0, -1))
    assert len(list((store / "versions").iterdir())) < 55
    verify(store, Settings(), deep=True)


def test_rules_come_to_a_loaded_store_and_go(tmp_path: Path) -> None:
    store, first, more = tmp_path / "store", tmp_path / "first.dlog", tmp_path / "more.dlog"
    load(store, [write(tmp_path / "in.nt", edge(1, 2), edge(2, 3), edge(3, 1))], options())
    first.write_text(
        "prefix : <http://e/>\n:path[?x, ?y] :- :edge[?x, ?y] .\n:path[?x, ?z] :- :path[?x, ?y], :edge[?y, ?z] .\n"
    )
    more.write_text("prefix : <http://e/>\n:loop[?x] :- :path[?x, ?x] .\n:edge[:n7, :n8] .\n")
    assert change_rules(store, [first], [], options())["added"] == {"http://e/path/2": 9}
    assert change_rules(store, [more], [], options())["added"] == {
        "http://e/loop/1": 3,
        "http://e/edge/2": 1,
        "http://e/path/2": 1,
    }
    gone = tmp_path / "gone.dlog"
    gone.write_text("prefix : <http://e/>\n:path[?a, ?c] :- :path[?a, ?b], :edge[?b, ?c] .")
    assert change_rules(store, [], [gone], options())["removed"] == {
        "http://e/path/2": 6,
        "http://e/loop/1": 3,
    }
    verify(store, Settings(), deep=True)
    assert ":- " in list_rules(store)
    with pytest.raises(UsageError, match="not in the store"):
        change_rules(store, [], [gone], options())
    (tmp_path / "bad.dlog").write_text("p[?x] :- q[?y] .")
    before = contents(store)
    with pytest.raises(HdlogError):
        change_rules(store, [tmp_path / "bad.dlog"], [], options())
    assert contents(store) == before


def test_the_printed_change_of_one_store_feeds_another(tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text(RULES + '\nt[?x, "a, (b)", 1.5] :- :edge[?x, :n3] .\nnothing[] :- :edge[:n9, :n9] .')
    given_files = [write(tmp_path / "in.nt", edge(1, 2), edge(2, 3))]
    materialise([rules], given_files, tmp_path / "a", options())
    load(tmp_path / "b", given_files, options())
    (tmp_path / "empty.dlog").write_text("prefix : <http://e/>")
    export_store(tmp_path / "a", "nt", tmp_path / "all.nt", Settings())
    listing = [f"+ {line}" for line in (tmp_path / "all.nt").read_text().splitlines()]
    listing.append('+ t(<http://e/n2>, "a, (b)", "1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>)')
    (tmp_path / "first.changes").write_text("\n".join(["# everything", "", *listing]))
    update(tmp_path / "b", [], [], options(), [str(tmp_path / "first.changes")])
    found = update(
        tmp_path / "a",
        [write(tmp_path / "add.nt", edge(9, 9), edge(4, 3))],
        [write(tmp_path / "del.nt", edge(1, 2))],
        options(),
    )
    (tmp_path / "next.changes").write_text("\n".join(change_lines(found["change"])) + "\n")
    update(tmp_path / "b", [], [], options(), [str(tmp_path / "next.changes")])
    assert facts_in(tmp_path / "b") == facts_in(tmp_path / "a")
    (tmp_path / "bad.changes").write_text("+ p(1)\n? p(2)\n")
    with pytest.raises(InputError, match=r"bad\.changes:2: "):
        update(tmp_path / "b", [], [], options(), [str(tmp_path / "bad.changes")])


def facts_in(store: Path) -> dict[Predicate, set[tuple[Constant, ...]]]:
    with open_for_reading(store) as opened:
        reasoner = begin_living(opened, Settings("columnar")).work.reasoner
        return {p: {row for row, _, _ in reasoner.supports()[p]} for p in reasoner.counts()}


def test_an_update_writes_in_proportion_to_what_it_changes(tmp_path: Path) -> None:
    store = tmp_path / "store"
    (tmp_path / "edge.facts").write_text("".join(f"{i}\t{i * 7 % 50021}\n" for i in range(200_000)))
    load(store, [tmp_path / "edge.facts"], Settings())
    before = set(contents(store))
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "edge.facts").write_text("".join(f"{i}\t{i}\n" for i in range(1000)))
    update(store, [str(tmp_path / "few" / "edge.facts")], [], Settings())
    new = {path: len(data) for path, data in contents(store).items() if path not in before}
    assert sum(new.values()) < 10 * 16 * 1000 + 30_000


def test_a_predicate_that_has_gone_comes_again_where_rules_have_variables_for_it(tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text("prefix : <http://e/>\n:has[?x, ?p] :- [?x, ?p, ?y] . :known[?p] :- :has[?x, ?p] .")
    fact, other = (
        write(tmp_path / "a.nt", edge(1, 2)),
        write(tmp_path / "b.nt", edge(1, 2).replace("edge", "way")),
    )
    store = tmp_path / "store"
    materialise([rules], [fact, other], store, options())
    before = exported(store)
    update(store, [], [fact], options())
    materialise([rules], [other], tmp_path / "without", options())
    assert exported(store) == exported(tmp_path / "without") < before
    update(store, [fact], [], options())
    assert exported(store) == before
    update(store, [], [fact, other], options())
    assert exported(store) == set()


@pytest.mark.skipif(ON_SPARK, reason="a thousand rounds")
def test_terms_that_are_made_of_terms_a_thousand_levels_deep(tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text(
        'p[?y, ?m] :- p[?x, ?n], FILTER(?n < 1500), BIND(SKOLEM("f", ?x) AS ?y), BIND(?n + 1 AS ?m) . p[0, 0] .'
    )
    store = tmp_path / "store"
    materialise([rules], [], store, options())
    (tmp_path / "p.facts").write_text("7\t1490\n")
    change = update(store, [str(tmp_path / "p.facts")], [], options())["change"]
    assert change.count() == (11, 0)
    reasoner = Reasoner(rules)
    deepest, again = (
        next(term for term, n in reasoner.facts("p").rows() if str(n) == "1500") for _ in range(2)
    )
    assert str(deepest).count("SKOLEM(") == 1500
    assert deepest == again
    assert len({deepest, again}) == 1


def test_overwriting_a_store_evaluates_everything_anew(tmp_path: Path) -> None:
    rules, facts = tmp_path / "rules.dlog", tmp_path / "q.facts"
    rules.write_text("p[1] :- NOT q[1] . r[?x] :- q[?x] . q[2] . two[?x] :- BIND(1 + 1 AS ?x) .")
    facts.write_text("3\n")
    for overwrite in (False, True, True):
        materialise([rules], [facts], tmp_path / "store", options(), overwrite=overwrite)
        counts = {p["name"]: p["facts"] for p in info(tmp_path / "store")["predicates"]}
        assert counts == {"p": 1, "q": 2, "r": 2, "two": 1}
    verify(tmp_path / "store", Settings(), deep=True)
    (tmp_path / "endless.dlog").write_text("a[0] . a[?y] :- a[?x], BIND(?x + 1 AS ?y) .")
    limited = replace(options(), max_facts=50)
    with pytest.raises(HdlogError):
        materialise([tmp_path / "endless.dlog"], [], tmp_path / "store", limited, overwrite=True)
    assert {p["name"] for p in info(tmp_path / "store")["predicates"]} == {"p", "q", "r", "two"}


@pytest.mark.skipif(ON_SPARK, reason="of the embedded engine")
def test_an_image_that_is_gone_is_made_again_and_facts_that_are_gone_are_missed(tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text(RULES)
    store = tmp_path / "store"
    materialise([rules], [write(tmp_path / "in.nt", edge(1, 2), edge(2, 3))], store, options())
    before = exported(store)
    for path in (store / "image").iterdir():
        path.unlink()
    assert exported(store) == before
    more = write(tmp_path / "more.nt", edge(3, 4))
    update(store, [more], [], options())
    assert list((store / "image").iterdir())
    update(store, [], [more], options())
    assert exported(store) == before
    for kind in ("facts", "terms"):
        (path,) = (store / kind).glob("000001-*")
        data = path.read_bytes()
        path.unlink()
        with pytest.raises(StoreError, match=f"{path.name}: missing"):
            update(store, [more], [], options())
        path.write_bytes(data)


@pytest.mark.skipif(ON_SPARK, reason="Spark's store keeps no nodes")
def test_explain_says_which_nodes_a_store_has(tmp_path: Path) -> None:
    (tmp_path / "rules.dlog").write_text("sq[?x, ?z] :- e[?x, ?y], e[?y, ?z], e[?z, ?w], e[?w, ?x] .")
    (tmp_path / "e.facts").write_text("".join(f"{i}\t{(i * 7) % 40}\n" for i in range(40)))
    given = options()
    given.tuning = Tuning("paper")
    materialise([tmp_path / "rules.dlog"], [tmp_path / "e.facts"], tmp_path / "store", given)
    ((rule,),) = (c["rules"] for c in explain_store(tmp_path / "store")["components"])
    root = rule["trees"][0]["root"]
    assert root["stored"]
    assert all(child["stored"] and child["rows"] for child in root["children"])
    assert " in the store" in as_text(explain_store(tmp_path / "store"))
