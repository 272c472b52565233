"""The embedded engine: against sorting, against itself at other sizes, and against DuckDB in the same run."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from benchmarks.generators import lubm
from hdlog.api import Reasoner
from hdlog.program.model import Predicate

Ids = NDArray[np.uint32]
RULES = Path(__file__).parent / "rules"
CLOSURE = "path[?x, ?y] :- edge[?x, ?y] . path[?x, ?z] :- path[?x, ?y], edge[?y, ?z] ."
GENERATION = "sg[?x, ?y] :- up[?p, ?x], up[?p, ?y] . sg[?x, ?y] :- up[?a, ?x], sg[?a, ?b], up[?b, ?y] ."


def best(run: Callable[[], Any], times: int) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def load_columns(
    reasoner: Reasoner, tables: dict[Predicate, list[Ids]], individuals: int
) -> dict[Predicate, Any]:
    """Columns of numbers from 0 as facts of the engine, each number an IRI."""
    engine = reasoner.engine
    ids = engine.dictionary.encode(f"<http://example.org/{i}>" for i in range(individuals))
    return {
        p: engine.facts_from_columns([ids[c] for c in columns], len(columns[0]))
        for p, columns in tables.items()
    }


def lubm_tables(universities: int) -> tuple[dict[Predicate, list[Ids]], int]:
    found = lubm.generate(universities)
    tables = {Predicate(lubm.NS + n, 1): [np.concatenate(parts)] for n, parts in found.unary.items()}
    for name, pairs in found.binary.items():
        columns = [np.concatenate([p[i] for p in pairs]) for i in (0, 1)]
        tables[Predicate(lubm.NS + name, 2)] = columns
    return tables, found.individuals


def sort_unique(keys: NDArray[np.uint64]) -> None:
    keys.sort()
    keys[np.concatenate([[True], keys[1:] != keys[:-1]])]


def lubm_benchmark(rules: Path, repeat: int) -> None:
    updates = {}
    for universities in (8, 80):
        tables, individuals = lubm_tables(universities)
        times = []
        for _ in range(repeat):
            reasoner = Reasoner(rules)
            facts = load_columns(reasoner, tables, individuals)
            start = time.perf_counter()
            reasoner.materialise_encoded(facts)
            times.append(time.perf_counter() - start)
        given = sum(map(len, facts.values()))
        keys = np.concatenate([t.facts().keys for t in reasoner.stored_tables().values()])
        np.random.default_rng(1).shuffle(keys)
        sorting = min(best(lambda k=keys.copy(): sort_unique(k), 1) for _ in range(repeat))
        chance = np.random.default_rng(2)
        chosen = []
        for _ in range(10):
            sample = {p: f.take(chance.random(len(f)) < 1000 / given) for p, f in facts.items()}
            chosen.append({p: f for p, f in sample.items() if len(f)})
        deleting = best(lambda: reasoner.update_encoded({}, chosen[0]), 1)
        adding = best(lambda: reasoner.update_encoded(chosen[0], {}), 1)
        for some in chosen[1:]:
            deleting = min(deleting, best(lambda s=some: reasoner.update_encoded({}, s), 1))
            adding = min(adding, best(lambda s=some: reasoner.update_encoded(s, {}), 1))
        updates[universities] = max(deleting, adding)
        size = sum(t.nbytes for t in reasoner.stored_tables().values())
        print(
            f"LUBM L, {given:,} facts given, {len(keys):,} materialised: {min(times):.2f} s, "
            f"{min(times) / sorting:.1f} times np.sort + unique; 1,000 facts deleted in {1000 * deleting:.1f} ms, "
            f"added in {1000 * adding:.1f} ms, {100 * max(deleting, adding) / min(times):.2f} % of a "
            f"materialisation; {size / len(keys):.0f} bytes a fact in tables"
        )
    print(f"update on 10 M facts against 1 M: {updates[80] / updates[8]:.2f} times")


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


def against_duckdb(
    name: str, rules: str, table: str, head: str, columns: list[Ids], sql: str, repeat: int
) -> None:
    times = []
    for _ in range(repeat):
        reasoner = Reasoner(rules)
        facts = load_columns(reasoner, {Predicate(table, 2): columns}, int(max(c.max() for c in columns)) + 1)
        start = time.perf_counter()
        reasoner.materialise_encoded(facts)
        times.append(time.perf_counter() - start)
    count = len(reasoner.facts(head))
    runs = [duck_fixpoint(columns, table, sql) for _ in range(repeat)]
    peer = min(t for t, _ in runs)
    assert runs[0][1] == count, (runs[0][1], count)
    print(
        f"{name}, {count:,} facts: {min(times):.2f} s; DuckDB's recursive CTE {peer:.2f} s, {peer / min(times):.1f} times as long"
    )


def startup(repeat: int) -> None:
    program = Path(__file__).parent / "rules" / "ten.dl"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-m", "hdlog", "run", str(program), "-D", "-"]
    took = best(lambda: subprocess.run(command, check=True, capture_output=True, env=environment), repeat)
    print(f"a ten-fact program from the shell: {took:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=["lubm", "closure", "generation", "startup"])
    options = parser.parse_args()
    wanted = options.only
    if wanted in (None, "startup"):
        startup(options.repeat)
    if wanted in (None, "lubm"):
        lubm_benchmark(RULES / "lubm_l.dlog", options.repeat)
    if wanted in (None, "closure"):
        sql = (
            "with recursive path(x, y) as (select x, y from edge union select p.x, e.y from path p "
            "join edge e on p.y = e.x) select count(*) from path"
        )
        graph = random_graph(5_000, 10_000, 3)
        against_duckdb("transitive closure", CLOSURE, "edge", "path", graph, sql, options.repeat)
    if wanted in (None, "generation"):
        sql = (
            "with recursive sg(x, y) as (select a.y, b.y from up a join up b on a.x = b.x union "
            "select a.y, b.y from sg join up a on a.x = sg.x join up b on b.x = sg.y) select count(*) from sg"
        )
        against_duckdb("same generation", GENERATION, "up", "sg", forest(8_000, 5), sql, options.repeat)


if __name__ == "__main__":
    main()
