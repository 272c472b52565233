"""One program, at one size, by one method, in this process: seconds of the materialisation and of updates, memory, facts."""

from __future__ import annotations

import gc
import json
import re
import resource
import sys
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from hdlog.benchmarks.data.loading import encode_columns, lean_on
from hdlog.benchmarks.data.rule_sets import rules as paper_rules
from hdlog.benchmarks.data.scale import DATA
from hdlog.benchmarks.data.scale import generate as generate_paper
from hdlog.benchmarks.programs.corpus import PROGRAMS
from hdlog.benchmarks.programs.program import Chance, Program, Tables
from hdlog.compiling import compile_known
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.program.model import Predicate
from hdlog.program.model import Program as Rules
from hdlog.reading.identifiers import INTEGERS
from hdlog.reasoning import start_reasoning
from hdlog.text import parse
from hdlog.tuning import Method, Tuning

_ATOM = re.compile(r"([A-Za-z_]\w*)\(([^()]*)\)")
SHARE = 0.01
"""of the given facts, in an update"""
FEW = 100
"""facts, in a small one"""
Given = dict[Predicate, list[Any]]


def declare(program: Program, tables: Tables) -> Rules:
    """The rules with a declaration for each predicate."""
    arities = {name: len(columns) for name, columns in tables.items()}
    for name, terms in _ATOM.findall(program.rules):
        arities.setdefault(name, terms.count(",") + 1)
    declared = [f".decl {n}({', '.join(f'c{i}: number' for i in range(a))})" for n, a in arities.items()]
    return parse("\n".join([*declared, program.rules]), "souffle", program.name)


def make(name: str, size: float) -> tuple[Rules, Given, Callable[[ColumnarEngine], None]]:
    """Rules, facts as columns of ids, and what an engine has to know of these."""
    if name in DATA:
        data = generate_paper(DATA[name], size, 1, lambda _: None)
        return paper_rules(name), dict(data.tables), lambda engine: lean_on(engine, data)
    program = PROGRAMS[name]
    tables = program.generate(size, Chance(1))
    given = {Predicate(n, len(columns)): [c + INTEGERS for c in columns] for n, columns in tables.items()}
    return declare(program, tables), given, lambda engine: None


def measure(name: str, size: float, method: str) -> dict[str, Any]:
    compile_known()  # what is read from disk once is no part of an update
    program, given, prepare = make(name, size)
    engine = ColumnarEngine()
    prepare(engine)
    tuning = Tuning().without("revision") if method == "planned" else Tuning(cast(Method, method))
    reasoner = start_reasoning(engine, program, tuning)
    facts = encode_columns(engine, given)
    result: dict[str, Any] = {"given": sum(len(columns[0]) for columns in given.values())}
    result["materialise"] = _seconds(lambda: reasoner.materialise(facts))
    result["facts"] = len(reasoner)
    for label, share in (("part", SHARE), ("few", FEW / result["given"])):
        some = encode_columns(engine, _draw(given, share))
        result[f"delete {label}"] = _seconds(lambda some=some: reasoner.update_silently({}, some))  # type: ignore[misc]
        result[f"add {label}"] = _seconds(lambda some=some: reasoner.update_silently(some, {}))  # type: ignore[misc]
    assert len(reasoner) == result["facts"], "what was deleted came back"
    result["GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return result


def measure_duckdb(name: str, size: float) -> dict[str, Any]:
    """DuckDB with a loop over SQL, loading included; it has no updates."""
    from hdlog.benchmarks.peers.duck import run

    program, given, _ = make(name, size)
    used, started = time.process_time(), time.perf_counter()
    _, facts = run(name, program, given)
    return {
        "given": sum(len(columns[0]) for columns in given.values()),
        "materialise": time.process_time() - used,
        "wall": time.perf_counter() - started,
        "facts": facts,
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def _seconds(run: Callable[[], object]) -> float:
    gc.collect()  # what Python puts off is not put on what happens to come next
    start = time.process_time()
    run()
    return time.process_time() - start


def _draw(given: Given, share: float) -> Given:
    chance = np.random.default_rng(7)
    drawn = {}
    for predicate, columns in given.items():
        chosen = chance.random(len(columns[0])) < share
        if chosen.any():
            drawn[predicate] = [c[chosen] for c in columns]
    return drawn


if __name__ == "__main__":
    name, size, method = sys.argv[1:]
    result = measure_duckdb(name, float(size)) if method == "duckdb" else measure(name, float(size), method)
    print(json.dumps(result))
