"""Soufflé, interpreted or compiled, on files of facts in numbers."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv

from hdlog.benchmarks.paper.cell import memory
from hdlog.benchmarks.peers.numbers import Numbers
from hdlog.program.model import Directive, Program
from hdlog.text.write import write

_THREADS = "2"


def run(numbers: Numbers, compiled: bool) -> dict[str, Any]:
    """Seconds, reading included and compiling not, facts, and the peak of memory."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_files(numbers, place)
        command = ["souffle", str(place / "program.dl")]
        if compiled:
            compiling = ["souffle", "-j", _THREADS, "-o", str(place / "program"), str(place / "program.dl")]
            done = subprocess.run(compiling, capture_output=True, text=True)
            check(done.returncode, done.stderr)
            command = [str(place / "program")]
        start = time.perf_counter()
        with (place / "sizes").open("w") as sizes, (place / "errors").open("w") as errors:
            arguments = [*command, "-F", folder, "-D", folder, "-j", _THREADS]
            process = subprocess.Popen(arguments, stdout=sizes, stderr=errors)
            peak = watch(process)
        seconds = time.perf_counter() - start
        check(process.returncode, (place / "errors").read_text())
        return {"seconds": seconds, "facts": add_up_sizes((place / "sizes").read_text()), "peak": peak}


def write_files(numbers: Numbers, folder: Path) -> None:
    """The program, which prints how many facts each predicate has, and a file for each that has facts given."""
    program = numbers.program
    directives = [Directive("input", name) for name in numbers.tables]
    directives += [Directive("printsize", d.name) for d in program.declarations]
    whole = Program(program.rules, program.declarations, (), tuple(directives))
    (folder / "program.dl").write_text(write(whole, "souffle"))
    options = pcsv.WriteOptions(include_header=False, delimiter="\t")
    for name, columns in numbers.tables.items():
        table = pa.table({f"c{i}": c for i, c in enumerate(columns)})
        pcsv.write_csv(table, folder / f"{name}.facts", options)


def watch(process: subprocess.Popen[bytes]) -> float:
    """GB at the peak, as seen ten times a second until the process ends."""
    peak = 0.0
    while True:
        peak = max(peak, memory("VmHWM", process.pid))
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        return peak


def check(code: int, errors: str) -> None:
    if code in (-signal.SIGABRT, -signal.SIGKILL) or "bad_alloc" in errors:
        raise MemoryError(errors.strip()[-200:] or "ended by the system")
    if code:
        raise RuntimeError(f"souffle ended with {code}: {errors.strip()[-400:]}")


def add_up_sizes(printed: str) -> int:
    """The sum of the sizes that were printed, a name and a number to a line."""
    return sum(int(line.split()[-1]) for line in printed.splitlines() if line.strip())
