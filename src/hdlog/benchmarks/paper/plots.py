"""Results as pictures in the style of the paper: bars on a logarithmic axis for each task, memory, growth over scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from hdlog.benchmarks.paper import figures as paper

Result = Mapping[str, Any]
_COLOURS = {"standard": "#9aa5b1", "hd": "#e0a458", "combined": "#2f6f8f"}
_STYLES: dict[str, Any] = {"combined": "-", "standard": "--", "hd": ":"}
_FORMATS = ("png", "svg")


def draw(results: Sequence[Result], folder: Path) -> list[Path]:
    """All pictures that the results are enough for."""
    paths = []
    for engine, scale in sorted({(r["engine"], r["scale"]) for r in results}):
        chosen = [r for r in results if (r["engine"], r["scale"]) == (engine, scale)]
        name = f"{engine}-{scale:g}"
        paths += _save(_seconds(chosen, scale == 1), folder / f"seconds-{name}")
        paths += _save(_memory(chosen, scale == 1), folder / f"memory-{name}")
    for engine in sorted({r["engine"] for r in results}):
        chosen = [r for r in results if r["engine"] == engine]
        if len({r["scale"] for r in chosen}) > 1:
            paths += _save(_growth(chosen), folder / f"growth-{engine}")
    return paths


def _save(figure: Any, path: Path) -> list[Path]:
    paths = [path.with_name(f"{path.name}.{format_}") for format_ in _FORMATS]
    for place in paths:
        figure.savefig(place, bbox_inches="tight", dpi=150)
    plt.close(figure)
    return paths


def _seconds(results: Sequence[Result], full: bool) -> Any:
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.4), sharey=True)
    cells = {(r["benchmark"], r["method"], r["task"]): r for r in results}
    for axis, task in zip(axes, paper.TASKS, strict=True):
        for place, method in enumerate(paper.METHODS):
            for x, benchmark in enumerate(paper.BENCHMARKS):
                result = cells.get((benchmark, method, task))
                at = x + (place - 1) * 0.27
                if result is not None and result["status"] == "ok":
                    axis.bar(at, result["seconds"], 0.25, color=_COLOURS[method])
                elif result is not None:
                    axis.text(at, 0.007, result["status"], rotation=90, fontsize=6, ha="center", va="bottom")
                theirs = paper.seconds(benchmark, method, task) if full else None
                if theirs is not None:
                    axis.plot([at - 0.12, at + 0.12], [theirs, theirs], color="black", linewidth=1.2)
        axis.set_yscale("log")
        axis.set_ylim(0.005, None)
        axis.set_title(task, fontsize=10)
        axis.set_xticks(range(len(paper.BENCHMARKS)), [paper.TITLES[b] for b in paper.BENCHMARKS], fontsize=8)
    axes[0].set_ylabel("seconds")
    _legend(figure, full)
    return figure


def _memory(results: Sequence[Result], full: bool) -> Any:
    figure, axis = plt.subplots(figsize=(6, 3.4))
    cells = {(r["benchmark"], r["method"]): r for r in results if r["task"] == paper.TASKS[0]}
    for place, method in enumerate(paper.METHODS):
        for x, benchmark in enumerate(paper.BENCHMARKS):
            result = cells.get((benchmark, method))
            at = x + (place - 1) * 0.27
            if result is not None and result["status"] == "ok":
                axis.bar(at, result["peak"], 0.25, color=_COLOURS[method], alpha=0.5)
                axis.bar(at, result["static"], 0.25, color=_COLOURS[method])
            theirs = paper.MEMORY.get(method, {}).get(benchmark) if full else None
            if theirs is not None:
                axis.plot([at - 0.12, at + 0.12], [theirs[0]] * 2, color="black", linewidth=1.2)
    axis.set_xticks(range(len(paper.BENCHMARKS)), [paper.TITLES[b] for b in paper.BENCHMARKS])
    axis.set_ylabel("GB, static and peak (pale)")
    _legend(figure, full)
    return figure


def _growth(results: Sequence[Result]) -> Any:
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.4), sharey=True)
    drawn: dict[str, Any] = {}
    for axis, task in zip(axes, paper.TASKS, strict=True):
        for colour, benchmark in enumerate(paper.BENCHMARKS):
            for method, style in _STYLES.items():
                wanted = (benchmark, method, task, "ok")
                points = sorted(
                    (r["given"], r["seconds"])
                    for r in results
                    if (r["benchmark"], r["method"], r["task"], r["status"]) == wanted
                )
                if len(points) > 1:
                    drawn[method] = style
                    axis.plot(*zip(*points, strict=True), style, marker=".", color=f"C{colour}", linewidth=1)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_title(task, fontsize=10)
        axis.set_xlabel("facts given")
    axes[0].set_ylabel("seconds")
    handles = [Line2D([0], [0], color=f"C{i}") for i in range(len(paper.BENCHMARKS))]
    handles += [Line2D([0], [0], color="black", linestyle=style) for style in drawn.values()]
    labels = [*(paper.TITLES[b] for b in paper.BENCHMARKS), *drawn]
    figure.legend(
        handles, labels, loc="upper center", ncol=7, fontsize=8, frameon=False, bbox_to_anchor=(0.5, 1.06)
    )
    return figure


def _legend(figure: Any, full: bool) -> None:
    handles: list[Any] = [Rectangle((0, 0), 1, 1, color=c) for c in _COLOURS.values()]
    labels = list(_COLOURS)
    if full:
        handles.append(Line2D([0], [0], color="black", linewidth=1.2))
        labels.append("the paper")
    figure.legend(
        handles, labels, loc="upper center", ncol=4, fontsize=8, frameon=False, bbox_to_anchor=(0.5, 1.06)
    )
