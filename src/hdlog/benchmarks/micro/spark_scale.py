"""What the mixed engine makes of small and large inputs, as a user of stores meets it; and what a row costs on Spark, which docs/scale.md is made from.

Each part compares within one run; `--only` picks parts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hdlog.benchmarks.data import exp, graph, lubm, univ_bench
from hdlog.benchmarks.data.dataset import Dataset
from hdlog.benchmarks.data.writing import write_files
from hdlog.benchmarks.micro.spark import materialise_tables
from hdlog.engines.spark.engine import SparkEngine
from hdlog.engines.spark.session import start_session
from hdlog.operations.stores import info, materialise, open_for_update
from hdlog.operations.work import EngineName, Settings
from hdlog.program.model import Predicate

_DELETED = 1000
_ROWS = (4_000_000, 16_000_000)


def best_of(times: int, work: Callable[[], Any]) -> tuple[float, Any]:
    found, result = float("inf"), None
    for _ in range(times):
        start = time.perf_counter()
        result = work()
        found = min(found, time.perf_counter() - start)
    return found, result


def small_inputs(spark: Any) -> None:
    """Files to a store, a session already started."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "six.dlog").write_text("p[?x, ?y] :- e[?x, ?y] . p[?x, ?z] :- p[?x, ?y], e[?y, ?z] .")
        (folder / "e.csv").write_text("a,b\n" + "".join(f"{i},{i + 1}\n" for i in range(6)))
        compare(spark, "six facts", [folder / "six.dlog"], [str(folder / "e.csv")], folder)
        for title, made in (
            ("LUBM L, 2 universities", lubm.generate(2)),
            ("Exp, tiny", exp.generate(expressions=16, instances=14)),
        ):
            rules, data = write(made, folder / title.split()[0])
            compare(spark, title, rules, data, folder)


def write(made: Dataset, folder: Path) -> tuple[list[Path], list[str]]:
    write_files(made, folder, "parquet")
    return list(folder.glob("*.dlog")), [str(folder / "facts")]


def compare(spark: Any, title: str, rules: list[Path], data: list[str], folder: Path) -> None:
    seconds: dict[str, float] = {}
    engines: tuple[EngineName, ...] = ("columnar", "spark", "spark-only")
    for engine in engines:
        settings = Settings(engine, spark=spark)
        seconds[engine], told = best_of(
            3, partial(materialise, rules, data, folder / "store", settings, overwrite=True)
        )
    print(
        f"{title}, {told['given']:,} facts given, {told['facts']:,} materialised: embedded {seconds['columnar']:.3f} s, "
        f"mixed {seconds['spark']:.3f} s, all on Spark {seconds['spark-only']:.1f} s",
        flush=True,
    )


def large_updates(spark: Any, universities: int) -> None:
    """A thousand facts deleted, and added again, where the large tables are on Spark; in a store that stays open."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = lubm.generate(universities)
        rules, data = write(made, folder / "lubm")
        engines: tuple[EngineName, ...] = ("spark", "spark-only")
        for engine in engines:
            settings = Settings(engine, spark=spark)
            took, told = best_of(
                1, partial(materialise, rules, data, folder / "store", settings, overwrite=True)
            )
            deleting = time_deletions(folder / "store", settings, made)
            print(
                f"LUBM L, {universities} universities, {told['given']:,} given, {told['facts']:,} materialised, "
                f"{engine}: {took:.1f} s, {_DELETED:,} facts deleted in {', '.join(f'{s:.2f}' for s in deleting)} s: "
                f"{min(deleting) / took:.3f} of that",
                flush=True,
            )
            assert info(folder / "store")["facts"]


def time_deletions(store: Path, settings: Settings, made: Dataset) -> list[float]:
    """Other facts each time; added again in between."""
    name = next(p for p in made.tables if p.name.endswith("memberOf"))
    taken = []
    with open_for_update(store, settings) as living:
        reasoner = living.work.reasoner
        predicate = reasoner.find(name.name, 2)
        rows = reasoner.decode(predicate, reasoner.facts(predicate))
        chosen = np.random.default_rng(1).choice(len(rows), 3 * _DELETED, replace=False)
        picked = [row for number, row in enumerate(rows) if number in set(chosen.tolist())]
        for at in range(3):
            part = {predicate: picked[at * _DELETED : (at + 1) * _DELETED]}
            start = time.perf_counter()
            living.apply([({}, encode(reasoner.engine, part))])
            taken.append(time.perf_counter() - start)
            living.apply([(encode(reasoner.engine, part), {})])
    return taken


def encode(engine: Any, facts: Mapping[Predicate, Any]) -> dict[Predicate, Any]:
    from hdlog.program.model import Program
    from hdlog.reading.objects import Collector

    collector = Collector(Program(), lambda *_: [])
    collector.take([(p, tuple(row)) for p, rows in facts.items() for row in rows])
    return dict(engine.encode_chunks(collector.chunks()))


def costs(spark: Any) -> None:
    """Seconds a million rows, on one core, of what rounds are made of."""
    engine = SparkEngine(spark)
    keeper, cores = engine.keeper, engine.session.cores
    for rows in _ROWS:
        engine.make_room(rows)
        made = keeper.frame(
            engine.spark.range(rows).selectExpr("id % 1000003 AS c0", "id AS c1", "1L AS m"), rows
        )
        kept, _ = keeper.keep(made, {})
        few, _ = keeper.keep(kept.where(f"c1 < {rows // 100}").select("c1 AS c0", "c0 AS d", "m AS n"), {})
        other, _ = keeper.keep(kept.select("c1 AS c0", "c0 AS d", "m AS n"), {})
        work = {
            "keep": kept.select("c0", "c1", "m"),
            "distinct": kept.distinct("c0", "c1"),
            "add up": kept.totals(["c0"], "sum(m) AS m"),
            "shuffled join": kept.join(other.with_hint("SHUFFLE_HASH"), ["c0"]),
            "sorted join": kept.join(other, ["c0"]),
            "broadcast join": kept.join(few.with_hint("BROADCAST"), ["c0"]),
        }
        for what, frame in work.items():
            took, _ = best_of(3, partial(keeper.keep, frame, {}))
            print(
                f"cost: {what} of {rows:,} rows: {took:.2f} s, {1e6 * took * cores / rows:.2f} core-seconds a million",
                flush=True,
            )


def growth(spark: Any, sizes: tuple[int, ...]) -> None:
    """All on Spark, from tables: how time follows size."""
    for universities in sizes:
        tables = lubm.generate(universities).tables
        facts = sum(len(c[0]) for c in tables.values())
        took, reasoner = materialise_tables(spark, univ_bench.rules(), tables)
        print(
            f"growth: LUBM L, {facts:,} given, {len(reasoner):,} materialised: {took:.1f} s, {1e6 * took / facts:.2f} µs a fact",
            flush=True,
        )
        reasoner.engine.close()


def skew(spark: Any, edges: int) -> None:
    """Five cyclic rules on a graph with hubs: how long the tasks of each stage take, the longest beside the one in the middle."""
    tables = graph.generate(edges=edges)
    known = {stage.stageId() for stage in list_stages(spark)}
    took, reasoner = materialise_tables(spark, graph.rules(), tables)
    print(f"skew: {edges:,} edges, {len(reasoner):,} facts, all on Spark: {took:.1f} s", flush=True)
    worst: list[tuple[float, float, float, int, str]] = []
    for stage in list_stages(spark):
        if stage.stageId() not in known and stage.numTasks() >= 4:
            times = sorted(task_times(spark, stage))
            middle, longest = times[len(times) // 2], times[-1]
            if longest > 1:
                worst.append((longest / max(middle, 0.05), longest, middle, len(times), str(stage.name())))
    for factor, longest, middle, tasks, name in sorted(worst, reverse=True)[:5]:
        print(
            f"  {factor:.1f} times: {longest:.2f} s beside {middle:.2f} s, {tasks} tasks, {name}", flush=True
        )
    if not worst:
        print("  no stage has a task of more than a second", flush=True)
    reasoner.engine.close()


def list_stages(spark: Any) -> list[Any]:
    store = spark.sparkContext._jsc.sc().statusStore()
    found = store.stageList(
        None, False, False, spark.sparkContext._gateway.new_array(spark.sparkContext._jvm.double, 0), None
    )
    return [found.apply(i) for i in range(found.size())]


def task_times(spark: Any, stage: Any) -> list[float]:
    store = spark.sparkContext._jsc.sc().statusStore()
    tasks = store.taskList(stage.stageId(), stage.attemptId(), 10_000)
    durations = (tasks.apply(i).duration() for i in range(tasks.size()))
    return [d.get() / 1000 for d in durations if d.isDefined()]


PARTS = ("small", "updates", "skew", "costs", "growth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts, with commas: {', '.join(PARTS)}")
    parser.add_argument("--universities", type=int, default=95, help="of updates; 95 are 12.7 million facts")
    parser.add_argument("--edges", type=int, default=1_000_000, help="of the graph with hubs")
    parser.add_argument("--memory", default="12g", help="of the local session")
    options = parser.parse_args()
    chosen = options.only.split(",")
    spark = start_session("local[2]", options.memory)
    if "small" in chosen:
        small_inputs(spark)
    if "updates" in chosen:
        large_updates(spark, options.universities)
    if "skew" in chosen:
        skew(spark, options.edges)
    if "costs" in chosen:
        costs(spark)
    if "growth" in chosen:
        growth(spark, (8, 40, 95, 190))


if __name__ == "__main__":
    main()
