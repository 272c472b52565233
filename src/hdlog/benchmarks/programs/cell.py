"""One program, at one size, by one method, in this process: seconds of the materialisation and of updates, memory, facts."""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from hdlog.benchmarks.micro.embedded import load_columns
from hdlog.benchmarks.programs.corpus import PROGRAMS
from hdlog.benchmarks.programs.program import Chance, Program, Tables
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.program.model import Predicate
from hdlog.program.model import Program as Rules
from hdlog.reasoning import start_reasoning
from hdlog.text import parse
from hdlog.tuning import Method, Tuning

_ATOM = re.compile(r"([A-Za-z_]\w*)\(([^()]*)\)")
SHARE = 0.01
"""of the given facts, in an update"""
FEW = 100
"""facts, in a small one"""


def declare(program: Program, tables: Tables) -> Rules:
    """The rules with a declaration for each predicate."""
    arities = {name: len(columns) for name, columns in tables.items()}
    for name, terms in _ATOM.findall(program.rules):
        arities.setdefault(name, terms.count(",") + 1)
    declared = [f".decl {n}({', '.join(f'c{i}: number' for i in range(a))})" for n, a in arities.items()]
    return parse("\n".join([*declared, program.rules]), "souffle", program.name)


def measure(name: str, size: float, method: str) -> dict[str, Any]:
    program = PROGRAMS[name]
    tables = program.generate(size, Chance(1))
    tuning = Tuning().without("revision") if method == "planned" else Tuning(cast(Method, method))
    reasoner = start_reasoning(ColumnarEngine(), declare(program, tables), tuning)
    given = {
        Predicate(n, len(columns)): [c.astype(np.uint32) for c in columns] for n, columns in tables.items()
    }
    facts = load_columns(reasoner, given)
    result: dict[str, Any] = {"given": sum(len(columns[0]) for columns in tables.values())}
    result["materialise"] = _seconds(lambda: reasoner.materialise(facts))
    result["facts"] = len(reasoner)
    for label, share in (("part", SHARE), ("few", FEW / result["given"])):
        some = load_columns(reasoner, _draw(given, share))
        result[f"delete {label}"] = _seconds(lambda some=some: reasoner.update_silently({}, some))  # type: ignore[misc]
        result[f"add {label}"] = _seconds(lambda some=some: reasoner.update_silently(some, {}))  # type: ignore[misc]
    assert len(reasoner) == result["facts"], "what was deleted came back"
    result["GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return result


def _seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _draw(given: dict[Predicate, list[Any]], share: float) -> dict[Predicate, list[Any]]:
    chance = np.random.default_rng(7)
    drawn = {}
    for predicate, columns in given.items():
        chosen = chance.random(len(columns[0])) < share
        if chosen.any():
            drawn[predicate] = [c[chosen] for c in columns]
    return drawn


if __name__ == "__main__":
    name, size, method = sys.argv[1:]
    print(json.dumps(measure(name, float(size), method)))
