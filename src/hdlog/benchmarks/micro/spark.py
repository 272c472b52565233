"""The pipeline and the engine on Spark: loading, LUBM, rounds, cyclic rules, growth, a cluster.

Each part compares within one run; ratios count, not seconds. `--only` picks parts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.api import Reasoner
from hdlog.benchmarks.data import collaborators, exp, lubm, univ_bench
from hdlog.benchmarks.data.writing import write_triples
from hdlog.benchmarks.peers.duck import local_name
from hdlog.engines.spark.engine import SparkEngine
from hdlog.engines.spark.frames import union
from hdlog.engines.spark.relation import Facts, Relation
from hdlog.engines.spark.session import start_session
from hdlog.engines.spark.table import Table
from hdlog.program.model import Predicate, Program
from hdlog.reasoning import Reasoning, start_reasoning
from hdlog.tuning import Tuning

Tables = Mapping[Predicate, list[NDArray[Any]]]


OnSpark = Reasoning[Relation, Facts, Table]


def load_columns(engine: SparkEngine, tables: Tables) -> dict[Predicate, Any]:
    """Columns of numbers as facts of the engine, kept; the numbers are taken for ids."""
    loaded = {}
    for predicate, columns in tables.items():
        facts = engine.facts_from_columns([c.astype(np.int64) for c in columns], len(columns[0]))
        facts.kept = False
        loaded[predicate] = engine.keep(facts)
    return loaded


def materialise_tables(
    spark: Any, rules: str | Program, tables: Tables, tuning: Tuning | None = None
) -> tuple[float, OnSpark]:
    engine = SparkEngine(spark)
    engine.spread(-(-sum(len(c[0]) for c in tables.values()) // 4_000_000))
    facts = load_columns(engine, tables)
    start = time.perf_counter()
    reasoner = start_reasoning(engine, rules, tuning)
    reasoner.materialise(facts)
    return time.perf_counter() - start, reasoner


def jobs_of(reasoner: OnSpark) -> int:
    assert isinstance(reasoner.engine, SparkEngine)
    return reasoner.engine.keeper.jobs


def distinct_seconds(reasoner: OnSpark) -> float:
    """One `distinct` of Spark over all facts, kept beforehand: the least that any engine on Spark must do."""
    engine = reasoner.engine
    assert isinstance(engine, SparkEngine)
    parts = []
    for number, (predicate, table) in enumerate(reasoner.stored_tables().items()):
        second = "c1" if predicate.arity == 2 else "0L AS c1"
        parts += [frame.select(f"{number}L AS p", "c0", second) for frame in table.list_live_parts()]
    whole, _ = engine.keeper.keep(union(parts), {})
    times = []
    for _ in range(2):
        start = time.perf_counter()
        engine.keeper.keep(whole.distinct("p", "c0", "c1"), {})
        times.append(time.perf_counter() - start)
    return min(times)


def pipeline(spark_memory: float) -> None:
    """Parse to snapshot, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lubm.nt"
        written = write_triples(lubm.generate(48), path)
        size = path.stat().st_size
        for _ in range(2):
            start = time.perf_counter()
            subprocess.run(
                [
                    sys.executable, "-m", "hdlog", "load", str(path), "--store", f"{folder}/store", "--overwrite",
                    "--master", "local[2]", "--memory", str(spark_memory), "--json",
                ],
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            took = time.perf_counter() - start
            print(
                f"pipeline: {written:,} triples, {size / 1e6:,.0f} MB, {spark_memory:g} GB for Spark: {took:.1f} s, "
                f"{written / took / 2:,.0f} triples a second and core, starting Spark included",
                flush=True,
            )


def lubm_l(spark: Any, sizes: tuple[int, ...]) -> None:
    """LUBM L against one `distinct`; what it takes on next to nothing is the fixed start."""
    tiny = {p: [c[:3] for c in columns] for p, columns in lubm.generate(1).tables.items()}
    materialise_tables(spark, univ_bench.rules(), tiny)
    fixed, _ = materialise_tables(spark, univ_bench.rules(), tiny)
    print(
        f"LUBM L, {sum(len(c[0]) for c in tiny.values())} facts: {fixed:.1f} s, the fixed start", flush=True
    )
    for universities in sizes:
        tables = lubm.generate(universities).tables
        facts = sum(len(c[0]) for c in tables.values())
        best, reasoner = min(
            (materialise_tables(spark, univ_bench.rules(), tables) for _ in range(2)), key=lambda run: run[0]
        )
        plain = distinct_seconds(reasoner)
        print(
            f"LUBM L, {facts:,} facts, {len(reasoner):,} materialised, {jobs_of(reasoner)} jobs: {best:.1f} s, "
            f"{1e6 * best / facts:.2f} µs a fact; distinct {plain:.1f} s; "
            f"beyond the fixed start {(best - fixed) / plain:.1f} times that",
            flush=True,
        )
        reasoner.engine.close()


def rounds(spark: Any) -> None:
    """A chain: each round derives one fact."""
    rule = "r[?y] :- r[?x], e[?x, ?y] . r[?x] :- s[?x] ."
    for length in (40, 40):
        reasoner = Reasoner(rule, engine=SparkEngine(spark))
        start = time.perf_counter()
        reasoner.update(add={"e": [(i, i + 1) for i in range(length)], "s": [(0,)]})
        took = time.perf_counter() - start
    print(f"a nearly empty round: {1000 * took / length:.0f} ms", flush=True)


def running_example(spark: Any) -> None:
    """The rule body as Spark plans it, from the same facts: its joins, and a distinct of the head."""
    made = collaborators.generate()
    times = [materialise_tables(spark, made.rules, made.tables)[0] for _ in range(3)]
    engine = SparkEngine(spark)
    for predicate, facts in load_columns(engine, made.tables).items():
        engine.keeper.data(facts.frame).createOrReplaceTempView(f"t_{local_name(predicate)}")
    query = (
        "SELECT DISTINCT w.c0, p.c1 FROM t_CW w JOIN t_CA a ON w.c0 = a.c0 JOIN t_PC p ON p.c0 = w.c1 "
        "JOIN t_PC q ON q.c0 = a.c1 AND q.c1 = p.c1"
    )
    print(f"running example, n=1000, k=400: combined {min(times):.1f} s", flush=True)
    took = run_with_limit(lambda: spark.sql(query).count(), spark, max(60, 8 * min(times)))
    print(f"  Spark's own plan for the body: {took}, {ratio(took, min(times))}", flush=True)


def expression_trees(spark: Any, instances: int) -> None:
    made = exp.generate(instances=instances)
    times = []
    for _ in range(2):
        engine = SparkEngine(spark)
        kinds = engine.dictionary.encode([f"<{exp.NS}{kind}>" for kind in exp.KINDS])
        nodes, own = made.tables[exp.KIND]
        facts = load_columns(engine, {**made.tables, exp.KIND: [nodes, kinds[own]]})
        start = time.perf_counter()
        reasoner = start_reasoning(engine, made.rules)
        reasoner.materialise(facts)
        times.append(time.perf_counter() - start)
    derived = len(reasoner) - made.facts
    assert derived == exp.count_derived(instances), (derived, exp.count_derived(instances))
    print(f"Exp, {instances} instances, {len(reasoner):,} facts: combined {min(times):.1f} s", flush=True)
    # The largest last: the engine sets Spark up for the size of what it read last.
    for predicate, table in sorted(reasoner.stored_tables().items(), key=lambda item: len(item[1])):
        engine.keeper.data(union(table.list_live_parts())).createOrReplaceTempView(
            f"t_{local_name(predicate)}"
        )
    body = (
        "SELECT count(1) FROM t_hasType k JOIN t_hasLhs l ON k.c0 = l.c0 JOIN t_hasRhs r ON k.c0 = r.c0 "
        "JOIN t_eval e ON l.c1 = e.c0 JOIN t_instance i ON e.c1 = i.c0 JOIN t_value x ON e.c1 = x.c0 "
        "JOIN t_eval f ON r.c1 = f.c0 JOIN t_instance j ON f.c1 = j.c0 AND i.c1 = j.c1 "
        "JOIN t_value y ON f.c1 = y.c0"
    )
    took = run_with_limit(lambda: spark.sql(body).collect(), spark, 5.2 * min(times))
    print(
        f"  Spark's own plan for the body, once, over the materialised facts: {took}, {ratio(took, min(times))}"
    )


def run_with_limit(job: Callable[[], Any], spark: Any, seconds: float) -> str:
    """Seconds of a job, or that it was stopped."""
    import threading

    timer = threading.Timer(seconds, spark.sparkContext.cancelAllJobs)
    timer.start()
    start = time.perf_counter()
    try:
        job()
        return f"{time.perf_counter() - start:.1f} s"
    except Exception as error:
        if "cancel" not in str(error):
            raise
        return f"more than {seconds:.0f} s"
    finally:
        timer.cancel()


def ratio(duration: str, seconds: float) -> str:
    number = float(duration.split()[-2])
    return f"{'more than ' if duration.startswith('more') else ''}{number / seconds:.1f} times as long"


CLUSTER_JOB = """
import sys, time
from hdlog.benchmarks.micro.spark import materialise_tables
from hdlog.engines.spark.session import start_session
from hdlog.benchmarks.data import lubm, univ_bench
spark = start_session(sys.argv[1], "2g", {"spark.executor.memory": "4g", "spark.cores.max": sys.argv[2]})
tables = lubm.generate(int(sys.argv[3])).tables
print(min(materialise_tables(spark, univ_bench.rules(), tables)[0] for _ in range(2)))
"""


def cluster(universities: int) -> None:
    """The same job on one and on two workers of one core."""
    from tests.spark.test_cluster import standalone

    times = []
    with tempfile.TemporaryDirectory() as folder, standalone(Path(folder), 2, "5g") as running:
        for cores in ("1", "2"):
            finished = subprocess.run(
                [sys.executable, "-c", CLUSTER_JOB, running.url, cores, str(universities)],
                check=True, capture_output=True, text=True, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            )  # fmt: skip
            times.append(float(finished.stdout.split()[-1]))
            print(
                f"cluster: LUBM L, {universities} universities, {cores} workers: {times[-1]:.1f} s",
                flush=True,
            )
    print(f"cluster: two workers are {times[0] / times[1]:.2f} times as fast as one", flush=True)


PARTS = ("pipeline", "rounds", "lubm", "running", "exp", "growth", "cluster")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts, with commas: {', '.join(PARTS)}")
    parser.add_argument("--instances", type=int, default=300, help="of Exp; the paper has 300")
    parser.add_argument("--memory", default="14g", help="of the local session")
    options = parser.parse_args()
    chosen = options.only.split(",")
    if "pipeline" in chosen:
        pipeline(4)
    spark = start_session("local[2]", options.memory) if set(chosen) - {"pipeline", "cluster"} else None
    if "rounds" in chosen:
        rounds(spark)
    if "lubm" in chosen:
        lubm_l(spark, (10, 49, 98))
    if "running" in chosen:
        running_example(spark)
    if "exp" in chosen:
        expression_trees(spark, options.instances)
    if "growth" in chosen:
        lubm_l(spark, (10, 39, 98, 196))
    if "cluster" in chosen:
        cluster(20)


if __name__ == "__main__":
    main()
