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

from hdlog.evaluation.numbers import Numbers
from hdlog.program.model import Directive, Program
from hdlog.text.write import write

_THREADS = "2"


def run(numbers: Numbers, compiled: bool) -> dict[str, Any]:
    """Seconds, reading included and compiling not, facts, and the peak of memory."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_files(numbers, place)
        program = str(place / "program.dl")
        command = ["souffle", program]
        if compiled:
            subprocess.run(
                ["souffle", "-o", str(place / "program"), program], check=True, capture_output=True
            )
            command = [str(place / "program")]
        start = time.perf_counter()
        with subprocess.Popen(
            [*command, "-F", folder, "-D", folder, "-j", _THREADS], stdout=subprocess.PIPE, text=True
        ) as process:
            peak = watched(process)
            assert process.stdout is not None
            printed = process.stdout.read()
        if process.returncode in (-signal.SIGABRT, -signal.SIGKILL):
            raise MemoryError(f"{command[0]} was ended by the system")
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        return {"seconds": time.perf_counter() - start, "facts": counted(printed), "peak": peak}


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


def watched(process: subprocess.Popen[str]) -> float:
    """GB at the peak, as seen ten times a second until the process ends."""
    peak = 0.0
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        text = status.read_text()
        if "VmHWM:" in text:
            peak = max(peak, int(text.split("VmHWM:")[1].split()[0]) * 1024 / 1e9)
        time.sleep(0.1)
    return peak


def counted(printed: str) -> int:
    """The sum of the sizes that were printed, a name and a number to a line."""
    return sum(int(line.split()[-1]) for line in printed.splitlines() if line.strip())
