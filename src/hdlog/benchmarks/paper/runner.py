"""The whole evaluation: benchmarks, methods and tasks, each cell in a process of its own, and results that can be resumed.

After a deletion, the facts are compared with those of a fresh materialisation without the deleted facts; after deleting
and adding back, with those of the first materialisation; and those of one method with those of the others. Compared are
counts and 64-bit sums over the facts of each predicate.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hdlog.benchmarks.data import scale as scales
from hdlog.benchmarks.data.writing import write_store
from hdlog.benchmarks.peers.run import PEERS

FRESH = "fresh"
_LIBRARIES = ("hdlog", "numpy", "numba", "pyarrow", "pyspark", "duckdb", "clingo")


@dataclass(frozen=True)
class Request:
    """What is to be measured."""

    benchmark: str
    method: str
    """standard, hd, combined, the name of a peer, or fresh: what a task is to end with"""
    task: str
    engine: str = "columnar"
    scale: float = 1.0
    seed: int = 1


class Bench:
    def __init__(
        self,
        folder: Path,
        data: Path,
        limit: float,
        memory: float,
        say: Callable[[str], None],
        repeat: int = 1,
    ) -> None:
        self.data = data
        self.limit = limit
        self.memory = memory
        self.repeat = repeat
        self.say = say
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "results.jsonl"
        self.results = read_results(self.path)

    def run(self, requests: Sequence[Request]) -> None:
        for number, request in enumerate(requests, 1):
            result = self.find_or_measure(request)
            self.say(f"{number} of {len(requests)}: {describe(result)}")

    def find_or_measure(self, request: Request) -> dict[str, Any]:
        """The result of a cell: one that is there, or a new one."""
        known = self.find_result(request)
        if known is not None:
            return known
        self.say(f"running {request.benchmark}, {request.method}, {request.task}")
        first = None
        if request.task != "materialisation" and request.method != FRESH:
            first = self.find_or_measure(Request(**{**asdict(request), "task": "materialisation"}))
        if first is not None and first["status"] != "ok":
            result = {"status": first["status"], "why": "so was its materialisation"}
        else:
            result = self.measure(request)
        if result["status"] == "ok" and request.method != FRESH:
            result["agrees"] = self.agrees(request, result)
        return self.note_result(request, result)

    def find_result(self, request: Request) -> dict[str, Any] | None:
        wanted = asdict(request)
        return next((r for r in self.results if all(r.get(k) == v for k, v in wanted.items())), None)

    def note_result(self, request: Request, result: Mapping[str, Any]) -> dict[str, Any]:
        full = {**asdict(request), **result, "limit": self.limit, **circumstances()}
        self.results.append(full)
        with self.path.open("a") as out:
            out.write(json.dumps(full) + "\n")
        return full

    def agrees(self, request: Request, result: Mapping[str, Any]) -> bool:
        """Whether the facts are those that a fresh materialisation has."""
        task = "materialisation" if request.task == "small additions" else request.task
        fresh = self.find_or_measure(
            Request(request.benchmark, FRESH, task, "columnar", request.scale, request.seed)
        )
        if request.method in PEERS:
            return bool(result["facts"] == fresh.get("facts"))
        return bool(fresh.get("checksums") == json.loads(json.dumps(result["checksums"])))

    def measure(self, request: Request) -> dict[str, Any]:
        asked = {
            **asdict(request),
            "store": str(self.store(request)),
            "memory": self.memory,
            "repeat": self.repeat,
            "fresh": request.method == FRESH,
            "method": "combined" if request.method == FRESH else request.method,
        }
        module = "peers.run" if request.method in PEERS else "paper.cell"
        limit = self.limit if request.method != FRESH else None
        return run_apart([sys.executable, "-m", f"hdlog.benchmarks.{module}", json.dumps(asked)], limit)

    def store(self, request: Request) -> Path:
        """The facts of a benchmark, made when first asked for."""
        name = scales.DATA[request.benchmark]
        folder = self.data / f"{name}-{request.scale:g}-{request.seed}"
        if not (folder / "manifest.json").exists():
            self.say(f"generating {name} at scale {request.scale:g}")
            data = scales.generate(name, request.scale, request.seed, lambda _: None)
            write_store(data, folder)
        return folder


def run_apart(command: Sequence[str], limit: float | None) -> dict[str, Any]:
    """What a process prints last, as JSON; it and its children end when the limit does."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {"status": "over the limit", "why": f"stopped after {limit:.0f} s"}
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    if process.returncode == -signal.SIGKILL:
        return {"status": "out of memory", "why": "killed by the system"}
    if process.returncode:
        return {"status": "failed", "why": errors.strip()[-500:]}
    return {**json.loads(out.strip().splitlines()[-1]), "whole": time.perf_counter() - start}


def read_results(path: Path) -> list[dict[str, Any]]:
    """Results of earlier runs; a line that was cut off in the middle is left out."""
    return list(_lines(path)) if path.exists() else []


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def requests(
    benchmarks: Sequence[str],
    methods: Sequence[str],
    tasks: Sequence[str],
    engine: str,
    scale: float,
    seed: int,
    peers: Sequence[str],
) -> list[Request]:
    own = [Request(b, m, t, engine, scale, seed) for b in benchmarks for m in methods for t in tasks]
    return own + [Request(b, p, "materialisation", engine, scale, seed) for b in benchmarks for p in peers]


def circumstances() -> dict[str, Any]:
    """Where and with what something was measured."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in _LIBRARIES if _is_installed(name)},
        "commit": _commit(),
        "when": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
    }


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except ImportError:
        return False
    return True


def _commit() -> str:
    try:
        finished = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True
        )
    except OSError:
        return ""
    return finished.stdout.strip()


def describe(result: Mapping[str, Any]) -> str:
    name = f"{result['benchmark']}, {result['method']}, {result['task']}"
    if result["status"] != "ok":
        return f"{name}: {result['status']} ({result.get('why', '')[:120]})"
    odd = "" if result.get("agrees", True) else "; THE FACTS ARE NOT THOSE OF A FRESH MATERIALISATION"
    return f"{name}: {result['seconds']:.3g} s, {result['facts']:,} facts, peak {result['peak']:.1f} GB{odd}"
