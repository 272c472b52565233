"""`hdlog generate` and `hdlog bench`: what they write, how they resume, and that a wrong result is told."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pyoxigraph as ox
import pytest
from click.testing import CliRunner

from hdlog.api import Reasoner
from hdlog.benchmarks.data import lubm
from hdlog.benchmarks.data.loading import load
from hdlog.benchmarks.data.rule_sets import rule_text, rules
from hdlog.benchmarks.data.scale import DATA, generate
from hdlog.benchmarks.data.writing import write_store
from hdlog.benchmarks.paper import figures as paper
from hdlog.benchmarks.paper.cell import memory
from hdlog.benchmarks.paper.runner import Bench, Request, read_results
from hdlog.benchmarks.paper.tables import seconds_cell
from hdlog.benchmarks.peers import souffle as souffle_peer
from hdlog.benchmarks.peers.numbers import Numbers
from hdlog.commands.main import app
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.operations.stores import begin_living, make_sheets, materialise, open_for_update
from hdlog.operations.work import Settings
from hdlog.reasoning import start_reasoning
from hdlog.store.export import export
from hdlog.store.store import Store, open_store
from hdlog.writing.sheets import Sheet

pytestmark = pytest.mark.slow
SMALL = {
    "lubm": ["--universities", "1"],
    "exp": ["--expressions", "3", "--instances", "4"],
    "yago": ["--edges", "200000", "--communities", "0"],
    "collaborators": ["-n", "5", "-k", "3"],
}
runner = CliRunner()


def call(*arguments: str, code: int = 0) -> str:
    done = runner.invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output


def triples(path: Path) -> set[ox.Triple]:
    return {q.triple for q in ox.parse(path=str(path))}


@pytest.mark.parametrize("name", SMALL)
def test_a_generated_store_has_the_triples_of_the_generated_file(name: str, tmp_path: Path) -> None:
    call("generate", name, *SMALL[name], "--store", str(tmp_path / "store"))
    call("generate", name, *SMALL[name], "--out", str(tmp_path / "out"), "--format", "nt")
    store = open_store(tmp_path / "store")
    written, left = export(sheets_of(store), "nt", tmp_path / "exported.nt", lambda _: None)
    assert not left
    found = triples(tmp_path / "out" / f"{name}.nt")
    assert len(found) == written == store.manifest.counts["facts"]
    assert found == triples(tmp_path / "exported.nt")
    assert (tmp_path / "out" / "rules.dlog").read_text() == rule_text("lubm-l" if name == "lubm" else name)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted([f"{name}.nt", "rules.dlog"])


@pytest.mark.parametrize("format_", ["nt", "nt.gz", "parquet"])
@pytest.mark.parametrize("name", SMALL)
def test_generated_files_and_stores_have_the_same_facts_and_consequences(
    name: str, format_: str, tmp_path: Path
) -> None:
    call("generate", name, *SMALL[name], "--store", str(tmp_path / "store"))
    call("generate", name, *SMALL[name], "--out", str(tmp_path / "out"), "--format", format_)
    rules = tmp_path / "out" / "rules.dlog"
    files = [str(p) for p in (tmp_path / "out").iterdir() if p != rules]
    materialise([rules], files, tmp_path / "first", Settings())
    export(sheets_of(open_store(tmp_path / "store")), "nt", tmp_path / "all.nt", lambda _: None)
    materialise([rules], [tmp_path / "all.nt"], tmp_path / "second", Settings())
    found = []
    for which in ("first", "second"):
        export(
            sheets_of(open_store(tmp_path / which)),
            "nt",
            tmp_path / f"{which}.nt",
            lambda _: None,
        )
        found.append(triples(tmp_path / f"{which}.nt"))
    assert found[0] == found[1]
    assert name == "yago" or len(found[0]) > len(triples(tmp_path / "all.nt"))


def test_generated_files_are_compressed_or_parquet(tmp_path: Path) -> None:
    call("generate", "exp", *SMALL["exp"], "--out", str(tmp_path))
    assert (tmp_path / "exp.nt.gz").read_bytes()[:2] == b"\x1f\x8b"
    call("generate", "exp", *SMALL["exp"], "--out", str(tmp_path / "p"), "--format", "parquet")
    tables = {p.stem: pq.read_table(p).num_rows for p in (tmp_path / "p" / "facts").glob("*.parquet")}
    leaves = 34 + 3
    assert tables["value"] == leaves * 4
    assert sum(tables.values()) == 3 * leaves * 4 + 3 * 34 + leaves + 3


@pytest.mark.parametrize("arguments", [["lubm"], ["lubm", "--store", "a", "--out", "b"]])
def test_generating_needs_one_place(arguments: list[str]) -> None:
    with pytest.raises(Exception, match="one place"):
        runner.invoke(app, ["generate", *arguments], catch_exceptions=False)


def test_a_generated_store_takes_updates(tmp_path: Path) -> None:
    """Its terms are found by their texts, and new ones get new ids."""
    data = lubm.generate(1)
    write_store(data, tmp_path / "generated")
    export(sheets_of(open_store(tmp_path / "generated")), "nt", tmp_path / "all.nt", lambda _: None)
    (tmp_path / "rules.dlog").write_text(rule_text("lubm-l+c"))
    settings = Settings(engine="columnar")
    materialise([tmp_path / "rules.dlog"], [tmp_path / "all.nt"], tmp_path / "store", settings)
    lines = (tmp_path / "all.nt").read_text().splitlines(keepends=True)
    (tmp_path / "gone.nt").write_text("".join(lines[::500]))
    new = lines[7].replace("University", "NewUniversity")
    (tmp_path / "new.nt").write_text(new)
    with open_for_update(tmp_path / "store", settings) as living:
        living.update([([str(tmp_path / "new.nt")], [str(tmp_path / "gone.nt")])])
        counts = living.work.reasoner.counts()
    (tmp_path / "left.nt").write_text("".join([*(set(lines) - set(lines[::500])), new]))
    fresh = Reasoner(rule_text("lubm-l+c"))
    fresh.update(add=tmp_path / "left.nt")
    assert {p: n for p, n in counts.items() if n} == {p: n for p, n in fresh.counts().items() if n}


BENCH = ("--benchmarks", "exp", "--methods", "standard,combined", "--scale", "0.004")


def test_bench_measures_compares_and_resumes(tmp_path: Path) -> None:
    call("bench", *BENCH, "--tasks", "materialisation,small deletions", "--out", str(tmp_path))
    results = read_results(tmp_path / "results.jsonl")
    ours = [r for r in results if r["method"] != "fresh"]
    assert {(r["method"], r["task"]) for r in ours} == {
        (m, t) for m in ("standard", "combined") for t in ("materialisation", "small deletions")
    }
    for result in ours:
        assert result["status"] == "ok"
        assert result["agrees"] is True
        assert result["peak"] >= result["static"] > 0.05
        assert result["machine"]
        assert result["versions"]["hdlog"]
    assert {r["facts"] for r in ours if r["task"] == "materialisation"} == {20_746}
    assert {r["changed"] for r in ours if r["task"] == "small deletions"} == {1000}
    assert {len(r["times"]) for r in ours if r["task"] == "small deletions"} == {3}
    for name in ("tables.md", "results.csv", "seconds-columnar-0.004.png", "memory-columnar-0.004.svg"):
        assert (tmp_path / name).stat().st_size > 100
    with (tmp_path / "results.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(ours)
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"cut off in the mid')
    call("bench", *BENCH, "--tasks", "materialisation,small deletions", "--out", str(tmp_path))
    assert read_results(tmp_path / "results.jsonl") == results


def test_bench_tells_a_wrong_result_and_a_cell_over_the_limit(tmp_path: Path) -> None:
    told: list[str] = []
    bench = Bench(tmp_path, tmp_path / "data", 60, 8, told.append)
    fresh = bench.find_or_measure(Request("exp", "fresh", "materialisation", scale=0.004))
    name, (count, _) = next(iter(fresh["checksums"].items()))
    fresh["checksums"][name] = [count, "0" * 16]
    wrong = Request("exp", "combined", "materialisation", scale=0.004)
    bench.run([wrong])
    assert bench.find_or_measure(wrong)["agrees"] is False
    assert "NOT THOSE" in told[-1]
    assert "WRONG" in seconds_cell(bench.find_or_measure(wrong), "exp", "combined", "materialisation", False)
    bench.limit = 0.01
    late = bench.find_or_measure(Request("exp", "hd", "materialisation", scale=0.004))
    assert late["status"] == "over the limit"
    assert (
        bench.find_or_measure(Request("exp", "hd", "small additions", scale=0.004))["status"]
        == "over the limit"
    )
    assert seconds_cell(late, "exp", "hd", "materialisation", True) == "> 0 (56.83)"


def test_bench_runs_a_peer_on_the_same_facts(tmp_path: Path) -> None:
    call("bench", "--benchmarks", "exp,lubm-l", "--methods", "combined", "--tasks", "materialisation",
         "--scale", "0.002", "--peers", "--out", str(tmp_path))  # fmt: skip
    peers = [r for r in read_results(tmp_path / "results.jsonl") if r["method"] in ("duckdb", "clingo")]
    assert {(r["benchmark"], r["method"], r["status"], r["agrees"]) for r in peers} == {
        (benchmark, peer, "ok", True) for benchmark in ("exp", "lubm-l") for peer in ("duckdb", "clingo")
    }
    assert "| materialisation | clingo |" in (tmp_path / "tables.md").read_text()


def test_bench_says_which_peers_it_goes_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = runner.invoke(
        app,
        ["bench", *BENCH, "--tasks", "materialisation", "--limit", "0", "--peers", "--out", str(tmp_path)],
    )
    assert "without souffle: no souffle on PATH" in found.output


@pytest.mark.parametrize("name", ["exp", "lubm-l", "lubm-l+c"])
def test_what_souffle_is_given_means_the_same(name: str, tmp_path: Path) -> None:
    """Soufflé may not be there, but hdlog reads its language."""
    data = generate(DATA[name], 0.002, 1, lambda _: None)
    expected = start_reasoning(engine := ColumnarEngine(), rules(name))
    expected.materialise(load(engine, data))
    souffle_peer.write_files(Numbers(rules(name), data.tables), tmp_path)
    found = runner.invoke(app, ["run", str(tmp_path / "program.dl"), "-F", str(tmp_path)])
    assert found.exit_code == 0, found.output
    assert souffle_peer.add_up_sizes(found.stdout) == len(expected)


def test_bench_refuses_what_it_does_not_know() -> None:
    with pytest.raises(Exception, match="there is no 'wordnet'"):
        runner.invoke(app, ["bench", "--benchmarks", "wordnet"], catch_exceptions=False)


def test_the_paper_has_a_figure_for_every_cell() -> None:
    for task in paper.TASKS:
        for method in paper.METHODS:
            assert all(paper.seconds(b, method, task) for b in paper.BENCHMARKS)
    assert json.dumps(paper.MEMORY)


def test_memory_is_that_of_a_process_and_those_it_started() -> None:
    alone = memory("VmRSS")
    code = "x = bytearray(100_000_000); print('there', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "there\n"
        assert memory("VmRSS", child.pid) > 0.1
        assert memory("VmRSS") > alone + 0.09
        child.communicate("\n")
    assert memory("VmRSS", child.pid) == 0


def sheets_of(store: Store) -> list[Sheet]:
    return make_sheets(begin_living(store, Settings("columnar")).work, store)
