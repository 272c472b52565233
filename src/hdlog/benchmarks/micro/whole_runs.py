"""Whole runs as a user times them: text files in, numbers of facts out, each in a process of its own; hdlog and its peers in turns.

Peers: DuckDB, which reads the files itself and runs a loop over SQL that was written for it beforehand (a recursive query where one does), and Soufflé,
compiled beforehand, where it is installed. Of each the best of several runs; wall seconds, and CPU seconds beside them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from hdlog.benchmarks.data import collaborators, exp, lubm, univ_bench
from hdlog.benchmarks.data.dataset import join_texts, number_texts
from hdlog.benchmarks.data.rule_sets import rules
from hdlog.benchmarks.micro.embedded import CLOSURE, GENERATION, forest, random_graph
from hdlog.benchmarks.peers import duck_script
from hdlog.benchmarks.peers.duck import DuckLoop, expression_script, local_name
from hdlog.benchmarks.peers.duck_script import Loop, Script
from hdlog.benchmarks.peers.numbers import Numbers, Tables
from hdlog.benchmarks.peers.souffle import add_up_sizes, write_files
from hdlog.benchmarks.programs.points_to import JAVA, generate_java
from hdlog.benchmarks.programs.program import Chance, facts
from hdlog.program.model import Predicate, Program, Rule
from hdlog.text import parse

CLOSURE_SQL = (
    "create table path as with recursive path(x, y) as (select * from {0} union select p.x, e.c1 "
    "from path p join {0} e on p.y = e.c0) select * from path"
)
GENERATION_SQL = (
    "create table sg as with recursive sg(x, y) as (select a.c1, b.c1 from {0} a join {0} b on a.c0 = b.c0 union "
    "select a.c1, b.c1 from sg join {0} a on a.c0 = sg.x join {0} b on b.c0 = sg.y) select * from sg"
)


@dataclass(frozen=True)
class Workload:
    """Files that all engines read, and the program of each."""

    name: str
    prepare: Callable[[Path], None]
    """writes program.dl and its files, and script.json if DuckDB is to run"""


@dataclass(frozen=True)
class Timed:
    wall: float
    cpu: float
    facts: int
    gigabytes: float
    told: str


def write_numbers(
    folder: Path, program: Program, tables: Tables, script: Callable[[Numbers], Script]
) -> None:
    """A program in numbers, its facts, and DuckDB's script, which reads these files."""
    numbers = Numbers(program, {p: c for p, c in tables.items() if p in program.predicates})
    write_files(numbers, folder)
    made = script(numbers)
    reading = Loop([read_file(folder, name, len(columns)) for name, columns in numbers.tables.items()])
    (folder / "script.json").write_text(Script([reading, *made.loops], made.sizes).write())


def read_file(folder: Path, name: str, columns: int) -> str:
    kinds = ", ".join(f"'c{i}': 'INTEGER'" for i in range(columns))
    file = folder / f"{name}.facts"
    return f"create table {name} as select * from read_csv('{file}', delim='\\t', header=false, columns={{{kinds}}})"


def loop_script(numbers: Numbers) -> Script:
    """A semi-naive loop over the tables of the program in numbers."""
    single = Program(tuple(Rule((h,), r.body) for r in numbers.program.rules for h in r.heads))
    loop = DuckLoop(single)
    loop.names = {p: p.name for p in loop.names}
    return loop.script()


def query_script(query: str, made: str) -> Callable[[Numbers], Script]:
    """One recursive query over the only table."""

    def write(numbers: Numbers) -> Script:
        (name,) = numbers.tables
        sizes = {n: f"select count(*) from {n}" for n in (name, made)}
        return Script([Loop([query.format(name)])], sizes)

    return write


def script_of_expressions(numbers: Numbers) -> Script:
    """The loop of Exp calls its tables by their names in the benchmark."""
    names = {numbers.names[p]: local_name(p) for p in numbers.names if numbers.names[p] in numbers.tables}
    made = expression_script(names)
    renaming = Loop([f"alter table {short} rename to {long}" for short, long in names.items()])
    return Script([renaming, *made.loops], made.sizes)


# Programs with long strings.

_KINDS: Mapping[str, tuple[str, ...]] = {
    "Type": ("type",),
    "DirectSuper": ("type", "type"),
    "ComponentType": ("type", "type"),
    "MethodImplemented": ("name", "descriptor", "type", "method"),
    "MainMethod": ("method",),
    "AssignHeapAllocation": ("heap", "var", "method"),
    "HeapAllocation_Type": ("heap", "type"),
    "Var_Type": ("var", "type"),
    "AssignLocal": ("var", "var", "method"),
    "AssignCast": ("type", "var", "var", "method"),
    "FormalParam": ("number", "method", "var"),
    "ActualParam": ("number", "call", "var"),
    "ReturnVar": ("var", "method"),
    "AssignReturnValue": ("call", "var"),
    "ThisVar": ("method", "var"),
    "StoreInstanceField": ("var", "var", "field", "method"),
    "LoadInstanceField": ("var", "field", "var", "method"),
    "StoreStaticField": ("var", "field", "method"),
    "LoadStaticField": ("field", "var", "method"),
    "StoreArrayIndex": ("var", "var", "method"),
    "LoadArrayIndex": ("var", "var", "method"),
    "Instruction_Method": ("call", "method"),
    "VirtualCall_Base": ("call", "var"),
    "VirtualCall_Name": ("call", "name"),
    "VirtualCall_Descriptor": ("call", "descriptor"),
    "StaticCall": ("call", "method", "method"),
    "SupertypeOf": ("type", "type"),
    "MethodLookup": ("name", "descriptor", "type", "method"),
    "Implements": ("name", "descriptor", "type"),
    "Reachable": ("method",),
    "VarPointsTo": ("heap", "var"),
    "Assign": ("var", "var"),
    "CallGraphEdge": ("call", "method"),
    "InstanceFieldPointsTo": ("heap", "field", "heap"),
    "StaticFieldPointsTo": ("field", "heap"),
    "ArrayIndexPointsTo": ("heap", "heap"),
    "Poly": ("call",),
}
"""What the columns of the points-to analysis stand for."""


def _spell(kind: str, numbers: np.ndarray) -> pa.Array:
    """Names such as an analysis of real programs has."""
    text = number_texts(numbers)
    package = join_texts("org.example.module", number_texts(numbers // 700), ".internal.Class")
    if kind == "type":
        return join_texts(package, text)
    if kind == "name":
        return join_texts("computeAndReport", text)
    if kind == "descriptor":
        return join_texts(
            "java.lang.Object(java.lang.String,int,org.example.module0.internal.Class", text, ")"
        )
    if kind == "field":
        return join_texts("<", package, text, ": java.util.Map cachedValue", text, ">")
    method = numbers // 8 if kind == "var" else numbers // 3 if kind == "heap" else numbers // 4
    method = numbers if kind == "method" else method
    signature = join_texts(
        "<org.example.module",
        number_texts(method // 4000),
        ".internal.Class",
        number_texts(method // 6),
        ": java.lang.Object computeAndReport",
        number_texts(method),
        "(java.lang.String,int)>",
    )
    endings = {"var": "/l", "heap": "/new org.example.Thing/", "call": "/java.util.List.add/"}
    return signature if kind == "method" else join_texts(signature, endings[kind], text)


def write_points_to(folder: Path, size: float = 16.0) -> None:
    """The analysis of a Java-like program, with the names of classes, methods and variables."""
    tables = generate_java(size, Chance(1))
    kinds = {name: ["number" if k == "number" else "symbol" for k in ks] for name, ks in _KINDS.items()}
    lines = [
        f".decl {name}({', '.join(f'c{i}: {k}' for i, k in enumerate(ks))})" for name, ks in kinds.items()
    ]
    lines += [f".input {name}" for name in tables]
    lines += [f".printsize {name}" for name in kinds]
    (folder / "program.dl").write_text("\n".join([*lines, JAVA]))
    options = pcsv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    for name, columns in tables.items():
        spelt = [c if k == "number" else _spell(k, c) for c, k in zip(columns, _KINDS[name], strict=True)]
        pcsv.write_csv(
            pa.table(spelt, [f"c{i}" for i in range(len(spelt))]), folder / f"{name}.facts", options
        )


def _lubm(folder: Path) -> None:
    write_numbers(folder, univ_bench.rules(), lubm.generate(50).tables, loop_script)


def _exp(folder: Path) -> None:
    write_numbers(folder, rules("exp"), exp.generate().tables, script_of_expressions)


def _collaborators(folder: Path) -> None:
    made = collaborators.generate()
    write_numbers(folder, parse(made.rules), made.tables, loop_script)


def _closure(folder: Path) -> None:
    edges = {Predicate("edge", 2): facts(*random_graph(5_000, 10_000, 3))}
    write_numbers(folder, parse(CLOSURE), edges, query_script(CLOSURE_SQL, "path"))


def _generation(folder: Path) -> None:
    up = {Predicate("up", 2): forest(8_000, 5)}
    write_numbers(folder, parse(GENERATION), up, query_script(GENERATION_SQL, "sg"))


WORKLOADS = (
    Workload("the paper's running example, n=1000, k=400", _collaborators),
    Workload("Exp, the size of the paper", _exp),
    Workload("transitive closure", _closure),
    Workload("same generation", _generation),
    Workload("LUBM L, 50 universities", _lubm),
    Workload("points-to, with long strings", write_points_to),
)


# Runs.


def time_command(command: list[str]) -> Timed:
    start = time.perf_counter()
    # Python keeps what it has compiled of modules, unless somebody forbids it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    out, told = process.stdout, process.stderr
    assert out is not None
    assert told is not None
    printed, errors = out.read(), told.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status:
        raise RuntimeError(f"{command}: {errors[-400:]}")
    counted = "\n".join(line for line in printed.splitlines() if re.fullmatch(r"\S+\t\d+", line))
    facts = add_up_sizes(counted)
    return Timed(wall, used.ru_utime + used.ru_stime, facts, used.ru_maxrss / 1e6, errors)


def commands_of(folder: Path) -> dict[str, list[str]]:
    program = str(folder / "program.dl")
    commands = {"hdlog": [sys.executable, "-m", "hdlog", "run", program, "-F", str(folder)]}
    if (folder / "script.json").exists():
        commands["DuckDB"] = [sys.executable, "-P", duck_script.__file__, str(folder / "script.json")]
    if shutil.which("souffle") is not None:
        binary = str(folder / "compiled")
        subprocess.run(["souffle", "-j", "2", "-o", binary, program], check=True, capture_output=True)
        commands["Soufflé"] = [binary, "-F", str(folder), "-D", str(folder), "-j", "2"]
    return commands


def compare(workload: Workload, repeat: int) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        workload.prepare(folder)
        commands = commands_of(folder)
        runs: dict[str, list[Timed]] = {engine: [] for engine in commands}
        for _ in range(repeat):
            for engine, command in commands.items():
                runs[engine].append(time_command(command))
    best = {engine: min(timed, key=lambda t: t.wall) for engine, timed in runs.items()}
    assert len({t.facts for t in best.values()}) == 1, best
    print(f"{workload.name}, {best['hdlog'].facts:,} facts")
    for engine, timed in best.items():
        ratio = timed.wall / best["hdlog"].wall
        print(
            f"    {engine:8} {timed.wall:6.2f} s  CPU {timed.cpu:6.2f} s  {timed.gigabytes:5.1f} GB  {ratio:5.2f} times hdlog"
        )
    steps = re.search(r"read in ([\d.]+) s.* materialisation in ([\d.]+) s", best["hdlog"].told)
    if steps:
        load, materialise = map(float, steps.groups())
        rest = best["hdlog"].wall - load - materialise
        print(f"    start and end {rest:.2f} s, load {load:.2f} s, materialise {materialise:.2f} s")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="words of which one is in the name of a workload")
    options = parser.parse_args()
    for workload in WORKLOADS:
        if not options.only or any(word in workload.name for word in options.only):
            compare(workload, options.repeat)


if __name__ == "__main__":
    main()
