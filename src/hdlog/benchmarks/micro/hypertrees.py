"""Decompositions against join plans and DuckDB: running example, cyclic rules, expressions, and each improvement.

All that is compared is measured in one run, in turns; ratios count, not seconds. `--only` picks a part.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.benchmarks.data import collaborators, exp, graph, lubm
from hdlog.benchmarks.data.dataset import Dataset
from hdlog.benchmarks.data.loading import load
from hdlog.benchmarks.micro.embedded import Embedded, load_columns
from hdlog.benchmarks.paper.cell import memory
from hdlog.benchmarks.peers import rules_in_sql as peers
from hdlog.benchmarks.peers.duck import expressions
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.errors import IntermediateTooLarge
from hdlog.program.model import Predicate
from hdlog.reasoning import start_reasoning
from hdlog.tuning import Method, Tuning

Ids = NDArray[np.uint32]
Tables = Mapping[Predicate, list[Ids]]
_LONG = 5.0
"""Seconds from which on a run is not repeated: chance is a small part of it."""
METHODS: tuple[Method, ...] = ("standard", "hd", "combined")


def materialise_tables(
    rules: str, tables: Tables, tuning: Tuning
) -> tuple[float, Embedded, dict[Predicate, Any]]:
    """Seconds for loading columns of numbers and materialising, the reasoner, and the given facts."""
    reasoner = start_reasoning(ColumnarEngine(), rules, tuning)
    start = time.perf_counter()
    facts = load_columns(reasoner, dict(tables))
    reasoner.materialise(facts)
    return time.perf_counter() - start, reasoner, facts


def measure_best(run: Callable[[], float], repeat: int) -> float:
    return min(run() for _ in range(repeat))


def seconds(rules: str, tables: Tables, tuning: Tuning) -> float:
    """Infinity where a method makes more rows than there is memory for."""
    try:
        return materialise_tables(rules, tables, tuning)[0]
    except IntermediateTooLarge:
        return math.inf


def show_seconds(seconds: float) -> str:
    return "out of memory" if seconds == math.inf else f"{seconds:.3f} s"


# The running example.


def running_example(repeat: int) -> None:
    combined: dict[int, float] = {}
    for k in (100, 200, 400, 800):
        made = collaborators.generate(k=k)
        combined[k] = measure_best(partial(seconds, made.rules, made.tables, Tuning()), repeat)
        print(
            f"running example, n=1000, k={k}: combined {combined[k]:.2f} s, "
            f"{1e6 * combined[k] / k:.0f} µs for each of k",
            flush=True,
        )
    made = collaborators.generate()
    duck = measure_best(lambda: peers.duck_collaborators(made)[1], repeat)
    print(f"  k=400: DuckDB {duck:.2f} s, {duck / combined[400]:.1f} times as long", flush=True)
    plain = seconds(made.rules, made.tables, Tuning("standard").without("reordering"))
    print(
        f"  k=400: standard from left to right {show_seconds(plain)}, {plain / combined[400]:.0f} times as long",
        flush=True,
    )


# Cyclic rules on a skewed graph.


def cyclic_rules(repeat: int) -> None:
    tables = graph.generate()
    times, ours = [], {}
    for _ in range(repeat):
        took, reasoner, _ = materialise_tables(graph.rules(), tables, Tuning())
        times.append(took)
        ours = {p.name: n for p, n in reasoner.counts().items()}
    counts, duck = peers.duck_cyclic(tables)
    assert counts == {name: ours[name] for name in counts}, "the two do not agree"
    print(
        f"five cyclic rules, 1 M edges: combined {min(times):.1f} s, peak {peak('cyclic'):.1f} GB; DuckDB {duck:.0f} s, "
        f"{duck / min(times):.0f} times as long; {sum(counts.values()):,} facts, the same",
        flush=True,
    )


# Expressions.


def prepare(made: Dataset, method: Method = "combined") -> tuple[Embedded, dict[Predicate, Any]]:
    """A reasoner with the rules of a dataset, and its facts, not yet given to it."""
    engine = ColumnarEngine()
    facts = load(engine, made)
    return start_reasoning(engine, made.rules, Tuning(method)), facts


def expression_trees(repeat: int) -> None:
    made = exp.generate()
    times: list[float] = []
    deleting: list[float] = []
    adding: list[float] = []
    for _ in range(repeat):
        reasoner, facts = prepare(made)
        start = time.perf_counter()
        reasoner.materialise(facts)
        times.append(time.perf_counter() - start)
        for seed in range(5):
            some = draw(facts, 1000, seed)
            for store, change in ((deleting, ({}, some)), (adding, (some, {}))):
                start = time.perf_counter()
                reasoner.update_silently(*change)
                store.append(time.perf_counter() - start)
        assert len(reasoner) == exp.count_given() + exp.count_derived()
    counts, duck = expressions(made.tables)
    assert sum(counts.values()) == len(reasoner)
    print(
        f"Exp, {len(reasoner):,} facts: combined {min(times):.1f} s; DuckDB's loop {duck:.1f} s, "
        f"{duck / min(times):.1f} times as long; 1,000 facts deleted in {1e3 * min(deleting):.0f} ms "
        f"({100 * min(deleting) / min(times):.1f} %), added in {1e3 * min(adding):.0f} ms "
        f"({100 * min(adding) / min(times):.1f} %)",
        flush=True,
    )
    few = {method: peak("expressions", method) for method in ("standard", "combined")}
    print(
        f"  60 instances: peak memory {few['combined']:.2f} GB combined, {few['standard']:.2f} GB standard, "
        f"{few['combined'] / few['standard']:.2f} times"
    )


def draw(facts: Mapping[Predicate, Any], count: int, seed: int) -> dict[Predicate, Any]:
    """Some of the facts, whatever their predicate."""
    chance = np.random.default_rng(seed)
    chosen = np.sort(chance.choice(sum(map(len, facts.values())), count, replace=False))
    sample, start = {}, 0
    for predicate, these in facts.items():
        inside = chosen[(chosen >= start) & (chosen < start + len(these))] - start
        if len(inside):
            mask = np.zeros(len(these), np.bool_)
            mask[inside] = True
            sample[predicate] = these.take(mask)
        start += len(these)
    return sample


# Peaks of memory, each in a process of its own.


def peak(task: str, method: str = "combined") -> float:
    command = [sys.executable, "-m", "hdlog.benchmarks.micro.hypertrees", "--peak", task, "--method", method]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak(task: str, method: Method) -> None:
    if task == "cyclic":
        materialise_tables(graph.rules(), graph.generate(), Tuning(method))
    else:
        reasoner, facts = prepare(exp.generate(instances=60), method)
        reasoner.materialise(facts)
    print(memory("VmHWM"))


# Methods and improvements, at sizes that the slow ones can stand.


def small_tasks() -> dict[str, tuple[str, Tables]]:
    mild = graph.generate(edges=200_000, labels=20, vertices=20_000)
    made = {
        "running example, n=300, k=60": collaborators.generate(300, 60),
        "LUBM L, 8 universities": lubm.generate(8),
    }
    tasks: dict[str, tuple[str, Tables]] = {name: (data.rules, data.tables) for name, data in made.items()}
    tasks |= {f"{s.name}, 200 k edges": (str(s), mild) for s in graph.SHAPES}
    return tasks


def methods(repeat: int) -> None:
    for name, (rules, tables) in small_tasks().items():
        times = {m: seconds(rules, tables, Tuning(m)) for m in METHODS}
        for _ in range(repeat):
            worth_repeating = [m for m, t in times.items() if t < _LONG]
            times |= {m: min(times[m], seconds(rules, tables, Tuning(m))) for m in worth_repeating}
        other = min(times["standard"], times["hd"])
        print(
            f"{name}: "
            + ", ".join(f"{m} {show_seconds(t)}" for m, t in times.items())
            + f"; combined {times['combined'] / other:.2f} times the better of the others",
            flush=True,
        )


def improvements(repeat: int) -> None:
    """Each improvement off against all on, over a hypertree; for those of the paper's version, that version."""
    mild = graph.generate(edges=200_000, labels=20, vertices=20_000)
    shapes = {s.name: s for s in graph.SHAPES}
    triangle = "<corner>[?x, ?y] :- <edge0>[?x, ?y], <edge0>[?y, ?z], <edge0>[?z, ?x] ."
    star = "<busy>[?x] :- <edge0>[?x, ?a], <edge0>[?x, ?b], <edge1>[?x, ?c], <edge1>[?x, ?d] ."
    paper = Tuning("hd").without("views")
    cases = [
        ("views", str(shapes["ring"]), mild, Tuning("hd")),
        ("worst_case_optimal", triangle, graph.generate(100_000, 2, 2_000), Tuning("hd")),
        ("sum_product", star, mild, paper),
        ("root_per_head", str(shapes["flower"]), mild, Tuning("hd")),
        ("sharing", str(shapes["ring"]), graph.generate(), Tuning("hd")),
        ("virtual", star, mild, paper),
    ]
    for name, rules, tables, tuning in cases:
        compare(name, rules, tables, tuning, repeat)
    compare_counting(mild, repeat)


def compare(name: str, rules: str, tables: Tables, tuning: Tuning, repeat: int) -> None:
    results: dict[bool, tuple[float, int]] = {}
    for _ in range(repeat):
        for on in (True, False):
            took, reasoner, _ = materialise_tables(rules, tables, tuning if on else tuning.without(name))
            size = reasoner.driver.kept.bytes()
            results[on] = min(results.get(on, (took, size)), (took, size))
    (quick, small), (slow, large) = results[True], results[False]
    print(
        f"{name}: {quick:.3f} s and {small / 1e6:.0f} MB with it, {slow:.3f} s and {large / 1e6:.0f} MB without "
        f"({slow / quick:.1f} times the time)",
        flush=True,
    )


def compare_counting(tables: Tables, repeat: int) -> None:
    """Exact counting shows in deletions."""
    rules = next(str(s) for s in graph.SHAPES if s.name == "flower")
    times: dict[bool, float] = {}
    for on in (True, False):
        _, reasoner, facts = materialise_tables(rules, tables, replace(Tuning("hd"), counting=on))
        for seed in range(3 * repeat):
            some = draw(facts, 1000, seed)
            start = time.perf_counter()
            reasoner.update_silently({}, some)
            times[on] = min(times.get(on, 1e9), time.perf_counter() - start)
            reasoner.update_silently(some, {})
    print(
        f"counting: 1,000 facts deleted in {1e3 * times[True]:.0f} ms with it, {1e3 * times[False]:.0f} ms without "
        f"({times[False] / times[True]:.1f} times)"
    )


PARTS: dict[str, Callable[[int], None]] = {
    "running": running_example,
    "cyclic": cyclic_rules,
    "expressions": expression_trees,
    "methods": methods,
    "improvements": improvements,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peak", choices=("cyclic", "expressions"), help=argparse.SUPPRESS)
    parser.add_argument("--method", choices=METHODS, default="combined", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak:
        print_peak(arguments.peak, arguments.method)
        return
    for name, part in PARTS.items():
        if arguments.only in (None, name):
            part(arguments.repeat)


if __name__ == "__main__":
    main()
