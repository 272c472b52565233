"""The corpus: every program at two sizes by every method, each in a process of its own; seconds of CPU, memory, ratios.

python -m hdlog.benchmarks.programs.run [--only NAME ...] [--sizes small,large] [--methods standard,hd,combined,duckdb] [--limit 120]
    [--repeat 3]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from hdlog.benchmarks.programs.corpus import PROGRAMS

METHODS = ("standard", "hd", "combined", "duckdb")
PAPER = {"lubm-l+c": (0.01, 0.1), "exp": (0.05, 0.5), "yago": (0.01, 0.1)}
"""The paper's programs, as shares of its sizes."""
SIZES = {**{name: program.sizes for name, program in PROGRAMS.items()}, **PAPER}
WITHOUT_DUCKDB = ("packages", "access", "taint", "supply")
"""Programs that its loop has no words for."""
MEASURED = ("materialise", "delete part", "add part", "delete few", "add few", "GB")
_ROOM = 18 << 30
_LONG = 20.0
"""Seconds of a materialisation that is not run again."""
Results = dict[str, dict[str, Any] | None]
"""By method what was measured; None where it took too long or too much."""


def run_cell(name: str, size: float, method: str, limit: float) -> dict[str, Any] | None:
    """None where it takes too long or too much."""
    command = [sys.executable, "-m", "hdlog.benchmarks.programs.cell", name, str(size), method]

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (_ROOM, _ROOM))

    try:
        run = subprocess.run(
            command, capture_output=True, timeout=limit, text=True, preexec_fn=bound, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    if run.returncode:
        print("   ", method, run.stderr.strip().splitlines()[-1][:150], flush=True)
        return None
    result: dict[str, Any] = json.loads(run.stdout)
    return result


def run_cells(name: str, size: float, methods: Sequence[str], limit: float, repeat: int) -> Results:
    """The best of several runs of each method, which take turns; what takes long once is not run again."""
    results: Results = {}
    for turn in range(repeat):
        for method in methods:
            before = results.get(method)
            if turn and (before is None or before["materialise"] > _LONG):
                continue
            now = run_cell(name, size, method, limit)
            if before is not None and now is not None:
                now |= {key: min(before[key], now[key]) for key in MEASURED if key in now}
            results[method] = now or before
    return results


def compare(results: Results) -> dict[str, float]:
    """For each measure how many times the better of the other two `combined` takes."""
    combined = results.get("combined")
    others = [r for m, r in results.items() if m in ("standard", "hd") and r is not None]
    if combined is None or not others:
        return {}
    floor = {"GB": 0.3}
    return {
        key: max(combined[key], floor.get(key, 0.02)) / max(min(r[key] for r in others), floor.get(key, 0.02))
        for key in MEASURED
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(SIZES))
    parser.add_argument("--sizes", default="small,large")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one cell")
    parser.add_argument("--repeat", type=int, default=1, help="runs of which the best counts")
    chosen = parser.parse_args()
    for name in chosen.only:
        for label, size in zip(("small", "large"), SIZES[name], strict=True):
            if label not in chosen.sizes.split(","):
                continue
            methods = [m for m in chosen.methods.split(",") if m != "duckdb" or name not in WITHOUT_DUCKDB]
            results = run_cells(name, size, methods, chosen.limit, chosen.repeat)
            show(f"{name}, {label}", results)


def show(title: str, results: Results) -> None:
    known = [r for r in results.values() if r is not None]
    assert len({r["facts"] for r in known}) < 2, f"{title}: the methods do not agree"
    if known:
        title += f": {known[0]['given']:,} facts given, {known[0]['facts']:,} in all"
    print(title)
    for method, result in results.items():
        cells = [f"{result[key]:.2f}" if result and key in result else "-" for key in MEASURED]
        print(
            f"    {method:10}" + "".join(f"{m + ' ' + c:>22}" for m, c in zip(MEASURED, cells, strict=True))
        )
    ratios = compare(results)
    if ratios:
        print(f"    {'ratio':10}" + "".join(f"{ratios[key]:>22.2f}" for key in MEASURED), flush=True)


if __name__ == "__main__":
    main()
