"""Results as CSV and as the tables of the paper, its figure in each cell."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hdlog.benchmarks.paper import figures as paper
from hdlog.benchmarks.paper.runner import FRESH

Result = Mapping[str, Any]
_FIELDS = (
    *("benchmark", "method", "task", "engine", "scale", "seed", "status", "seconds", "peak", "static"),
    *("given", "facts", "changed", "rounds", "agrees", "limit", "machine", "commit", "when"),
)
_SHORT = {"over the limit": "> {limit:.0f}", "out of memory": "memory", "failed": "failed"}


def write_csv(results: Sequence[Result], path: Path) -> None:
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, _FIELDS, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(r for r in results if r["method"] != FRESH)


def markdown(results: Sequence[Result]) -> str:
    """A table of seconds and one of memory for each engine and scale."""
    kinds = sorted({(r["engine"], r["scale"], r["seed"]) for r in results})
    return "\n".join(_one_run(results, *kind) for kind in kinds)


def _one_run(results: Sequence[Result], engine: str, scale: float, seed: int) -> str:
    chosen = [r for r in results if (r["engine"], r["scale"], r["seed"]) == (engine, scale, seed)]
    cells = {(r["benchmark"], r["method"], r["task"]): r for r in chosen}
    there = [b for b in paper.BENCHMARKS if any(r["benchmark"] == b for r in chosen)]
    beside = " (the paper's figure)" if scale == 1 else ""
    lines = [f"## {engine}, scale {scale:g}, seed {seed}", "", f"Seconds{beside}.", ""]
    lines += _row(["task", "method", *(paper.TITLES[b] for b in there)])
    lines += _row(["---", "---", *("---:" for _ in there)])
    extra = sorted({r["method"] for r in chosen} - {*paper.METHODS, FRESH})
    for task in paper.TASKS:
        for method in (*paper.METHODS, *(extra if task == paper.TASKS[0] else ())):
            row = [seconds_cell(cells.get((b, method, task)), b, method, task, scale == 1) for b in there]
            if any(row):
                lines += _row([task, method, *row])
    lines += ["", f"GB after materialisation, peak / static{beside}; and facts.", ""]
    lines += _row(["method", *(paper.TITLES[b] for b in there)])
    lines += _row(["---", *("---:" for _ in there)])
    for method in (*paper.METHODS, *extra):
        row = [_memory_cell(cells.get((b, method, paper.TASKS[0])), b, method, scale == 1) for b in there]
        if any(row):
            lines += _row([method, *row])
    for what, theirs in (("given", paper.GIVEN), ("facts", paper.MATERIALISED)):
        numbers = [_count(chosen, b, what, theirs[b] if scale == 1 else None) for b in there]
        lines += _row(["facts given" if what == "given" else "facts materialised", *numbers])
    return "\n".join([*lines, ""])


def seconds_cell(result: Result | None, benchmark: str, method: str, task: str, full: bool) -> str:
    if result is None:
        return ""
    theirs = paper.seconds(benchmark, method, task) if full else None
    beside = f" ({theirs:,.2f})" if theirs is not None else ""
    if result["status"] != "ok":
        return _SHORT[result["status"]].format(**result) + beside
    wrong = "" if result.get("agrees", True) else " WRONG"
    seconds = result["seconds"]
    return f"{seconds:,.{3 if seconds < 1 else 2 if seconds < 100 else 0}f}{wrong}{beside}"


def _memory_cell(result: Result | None, benchmark: str, method: str, full: bool) -> str:
    if result is None:
        return ""
    theirs = paper.MEMORY.get(method, {}).get(benchmark) if full else None
    beside = f" ({theirs[0]} / {theirs[1]})" if theirs else ""
    if result["status"] != "ok":
        return _SHORT[result["status"]].format(**result) + beside
    static = f" / {result['static']:.1f}" if "static" in result else ""
    return f"{result['peak']:.1f}{static}{beside}"


def _count(results: Sequence[Result], benchmark: str, what: str, theirs: int | None) -> str:
    cells = [
        r
        for r in results
        if r["benchmark"] == benchmark and r["status"] == "ok" and r["task"] == paper.TASKS[0]
    ]
    beside = f" ({theirs:,})" if theirs is not None else ""
    return f"{cells[0][what]:,}{beside}" if cells else beside


def _row(cells: Sequence[str]) -> list[str]:
    return [f"| {' | '.join(cells)} |"]
