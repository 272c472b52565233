"""clingo as a Datalog engine: grounding a program without negation is its materialisation."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import clingo
import pyarrow as pa
import pyarrow.compute as pc

from hdlog.benchmarks.peers.numbers import Ids, Numbers
from hdlog.program.model import Rule
from hdlog.text.write import write

_BLOCK = 1_000_000


def run(numbers: Numbers) -> tuple[float, int]:
    """Seconds, loading included, and facts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "facts.lp"
        with path.open("wb") as out:
            for name, columns in numbers.tables.items():
                for start in range(0, len(columns[0]), _BLOCK):
                    out.write(facts(name, [c[start : start + _BLOCK] for c in columns]))
        start_time = time.perf_counter()
        control = clingo.Control(message_limit=1)
        control.load(str(path))
        control.add("base", [], rules(numbers))
        control.ground()
        atoms = len(control.symbolic_atoms)
        return time.perf_counter() - start_time, atoms


def rules(numbers: Numbers) -> str:
    """One clause for each head: clauses are written as in Soufflé."""
    program = numbers.program
    single = [Rule((head,), rule.body) for rule in program.rules for head in rule.heads]
    text = write(type(program)(tuple(single), program.declarations), "souffle")
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("."))


def facts(name: str, columns: list[Ids]) -> bytes:
    """A line for each fact."""
    texts = [pc.cast(pa.array(c), pa.string()) for c in columns]
    rows = pc.binary_join_element_wise(*texts, ",") if len(texts) > 1 else texts[0]
    lines = pc.binary_join_element_wise(pa.scalar(f"{name}("), rows, pa.scalar(").\n"), "")
    return "".join(lines.to_pylist()).encode()
