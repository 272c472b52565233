"""The embedded engine: against sorting, against itself at other sizes, and against DuckDB in the same run."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from hdlog.benchmarks.data import lubm, univ_bench
from hdlog.benchmarks.peers.duck import DuckLoop, connect
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.columnar.facts import Facts
from hdlog.engines.columnar.relation import Relation
from hdlog.engines.columnar.table import Table
from hdlog.program.model import Predicate
from hdlog.reasoning import Reasoning, start_reasoning

Ids = NDArray[np.uint32]
Embedded = Reasoning[Relation, Facts, Table]
CLOSURE = "path[?x, ?y] :- edge[?x, ?y] . path[?x, ?z] :- path[?x, ?y], edge[?y, ?z] ."
GENERATION = "sg[?x, ?y] :- up[?p, ?x], up[?p, ?y] . sg[?x, ?y] :- up[?a, ?x], sg[?a, ?b], up[?b, ?y] ."


def measure(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def load_columns(reasoner: Embedded, tables: dict[Predicate, list[Ids]]) -> dict[Predicate, Any]:
    """Columns of numbers as facts of the engine."""
    encode = reasoner.engine.dictionary.encode_integers
    return {
        p: reasoner.engine.facts_from_columns([encode(c.astype(np.int64)) for c in columns], len(columns[0]))
        for p, columns in tables.items()
    }


def sort_unique(keys: NDArray[np.uint64]) -> None:
    keys.sort()
    keys[np.concatenate([[True], keys[1:] != keys[:-1]])]


def lubm_benchmark(repeat: int) -> None:
    """Two sizes; their updates are timed in turns, so that both meet the same neighbours."""
    made = {universities: materialise_lubm(universities, repeat) for universities in (8, 80)}
    times = {universities: update_times(*pair) for universities, pair in made.items()}
    for _ in range(10):
        for universities, pair in made.items():
            times[universities] = tuple(map(min, times[universities], update_times(*pair)))  # type: ignore[assignment]
    for universities, (deleting, adding) in times.items():
        print(
            f"LUBM L, {universities} universities: 1,000 facts deleted in {1000 * deleting:.1f} ms, "
            f"added in {1000 * adding:.1f} ms"
        )
    print(f"update on 10 M facts against 1 M: {max(times[80]) / max(times[8]):.2f} times")


def materialise_lubm(universities: int, repeat: int) -> tuple[Embedded, dict[Predicate, Any]]:
    tables = lubm.generate(universities).tables
    times = []
    for _ in range(repeat):
        reasoner = start_reasoning(ColumnarEngine(), univ_bench.rules())
        facts = load_columns(reasoner, tables)
        times.append(measure(partial(reasoner.materialise, facts)))
    keys = np.concatenate([t.facts().keys for t in reasoner.stored_tables().values()])
    sorting = []
    for _ in range(repeat):
        np.random.default_rng(1).shuffle(keys)
        sorting.append(measure(partial(sort_unique, keys)))
    size = sum(t.nbytes for t in reasoner.stored_tables().values())
    print(
        f"LUBM L, {sum(map(len, facts.values())):,} facts given, {len(keys):,} materialised: {min(times):.2f} s, "
        f"{min(times) / min(sorting):.1f} times np.sort + unique; {size / len(keys):.0f} bytes a fact in tables",
        flush=True,
    )
    return reasoner, facts


CHANCE = np.random.default_rng(2)


def update_times(reasoner: Embedded, facts: dict[Predicate, Any]) -> tuple[float, float]:
    """Seconds to delete about 1,000 facts, and to add them back."""
    total = sum(map(len, facts.values()))
    sample = {p: f.take(CHANCE.random(len(f)) < 1000 / total) for p, f in facts.items()}
    sample = {p: f for p, f in sample.items() if len(f)}
    deleting = measure(partial(reasoner.update_silently, {}, sample))
    return deleting, measure(partial(reasoner.update_silently, sample, {}))


def compare_lubm_with_duckdb(repeat: int) -> None:
    """50 universities; both from arrays of numbers, loading included."""
    tables = lubm.generate(50).tables
    program = univ_bench.rules()
    named = {p: t for p, t in tables.items() if p in program.predicates}
    ours = []
    for _ in range(repeat):
        start = time.perf_counter()
        reasoner = start_reasoning(ColumnarEngine(), program)
        reasoner.materialise(load_columns(reasoner, named))
        ours.append(time.perf_counter() - start)
    peers = []
    for _ in range(repeat):
        with connect() as connection:
            seconds, counts = DuckLoop(program).run(connection, named)
        peers.append(seconds)
    assert sum(counts.values()) == len(reasoner), (counts, len(reasoner))
    peer = min(peers)
    print(
        f"LUBM L, 50 universities, {len(reasoner):,} facts, loading included: {min(ours):.2f} s; "
        f"DuckDB with a semi-naive loop {peer:.2f} s, {peer / min(ours):.1f} times as long"
    )


def duck_fixpoint(edges: list[Ids], table: str, recursive: str) -> tuple[float, int]:
    connection = duckdb.connect()
    a, b = (c.astype(np.int64) for c in edges)
    frame = {"x": a, "y": b}
    connection.execute(f"create table {table}(x integer, y integer)")
    import pyarrow as pa

    arrow = pa.table(frame)  # noqa: F841 - found by name
    connection.execute(f"insert into {table} select * from arrow")
    start = time.perf_counter()
    row = connection.execute(recursive).fetchone()
    assert row
    return time.perf_counter() - start, int(row[0])


def random_graph(nodes: int, edges: int, seed: int) -> list[Ids]:
    chance = np.random.default_rng(seed)
    return [chance.integers(0, nodes, edges).astype(np.uint32) for _ in range(2)]


def forest(nodes: int, seed: int) -> list[Ids]:
    """Each node but the first has an earlier one as parent."""
    chance = np.random.default_rng(seed)
    child = np.arange(1, nodes)
    parent = (chance.random(nodes - 1) * np.minimum(child, 1 + child // 3)).astype(np.uint32)
    return [parent, child.astype(np.uint32)]


def compare_with_duckdb(
    name: str, rules: str, table: str, head: str, columns: list[Ids], sql: str, repeat: int
) -> None:
    times = []
    for _ in range(repeat):
        reasoner = start_reasoning(ColumnarEngine(), rules)
        facts = load_columns(reasoner, {Predicate(table, 2): columns})
        start = time.perf_counter()
        reasoner.materialise(facts)
        times.append(time.perf_counter() - start)
    count = len(reasoner.facts(Predicate(head, 2)))
    runs = [duck_fixpoint(columns, table, sql) for _ in range(repeat)]
    peer = min(t for t, _ in runs)
    assert runs[0][1] == count, (runs[0][1], count)
    print(
        f"{name}, {count:,} facts: {min(times):.2f} s; DuckDB's recursive CTE {peer:.2f} s, {peer / min(times):.1f} times as long"
    )


def startup(repeat: int) -> None:
    with TemporaryDirectory() as folder:
        program = Path(folder) / "reach.dlog"
        program.write_text(f"edge[1, 2] . edge[2, 3] . edge[3, 1] . edge[3, 4] . {CLOSURE}")
        command = [sys.executable, "-m", "hdlog", "run", str(program)]
        took = min(
            measure(lambda: subprocess.run(command, check=True, capture_output=True)) for _ in range(repeat)
        )
    print(f"a program of four facts from the shell: {took:.2f} s")


def bytes_a_fact() -> None:
    """Peak memory of a process that has a closure of 16 M facts with two indexes, per fact."""
    code = (
        "from hdlog.benchmarks.micro.embedded import *\n"
        "from hdlog.benchmarks.paper.cell import memory\n"
        "reasoner = start_reasoning(ColumnarEngine(), CLOSURE)\n"
        "before = memory('VmHWM')\n"
        "facts = load_columns(reasoner, {Predicate('edge', 2): random_graph(5_000, 10_000, 3)})\n"
        "table = reasoner.stored_tables()[Predicate('path', 2)]\n"
        "table.index(((1,), (0,)))\n"
        "reasoner.materialise(facts)\n"
        "peak = memory('VmHWM')\n"
        "print(f'{len(table):,} facts with two indexes: peak {1e9 * (peak - before) / len(table):.0f} bytes a fact, '\n"
        "      f'{table.nbytes / len(table):.0f} of them in tables')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=["lubm", "peer", "closure", "generation", "startup", "memory"])
    options = parser.parse_args()
    wanted = options.only
    if wanted in (None, "startup"):
        startup(options.repeat)
    if wanted in (None, "lubm"):
        lubm_benchmark(options.repeat)
    if wanted in (None, "peer"):
        compare_lubm_with_duckdb(options.repeat)
    if wanted in (None, "memory"):
        bytes_a_fact()
    if wanted in (None, "closure"):
        sql = (
            "with recursive path(x, y) as (select x, y from edge union select p.x, e.y from path p "
            "join edge e on p.y = e.x) select count(*) from path"
        )
        graph = random_graph(5_000, 10_000, 3)
        compare_with_duckdb("transitive closure", CLOSURE, "edge", "path", graph, sql, options.repeat)
    if wanted in (None, "generation"):
        sql = (
            "with recursive sg(x, y) as (select a.y, b.y from up a join up b on a.x = b.x union "
            "select a.y, b.y from sg join up a on a.x = sg.x join up b on b.x = sg.y) select count(*) from sg"
        )
        compare_with_duckdb("same generation", GENERATION, "up", "sg", forest(8_000, 5), sql, options.repeat)


if __name__ == "__main__":
    main()
