"""How large each benchmark is at a scale; 1 is the size of the paper."""

from __future__ import annotations

from collections.abc import Callable

from hdlog.benchmarks.data import exp, lubm, yago
from hdlog.benchmarks.data.dataset import Dataset

UNIVERSITIES, EXPRESSIONS, EDGES = 500, 300, 58_276_868
LEAST_EDGES = 1_000_000
DATA = {"lubm-l": "lubm", "lubm-l+c": "lubm", "exp": "exp", "yago": "yago"}


def generate(data: str, scale: float, seed: int, tell: Callable[[float], None]) -> Dataset:
    """Universities, expressions (each with 300 instances) and edges in proportion; a graph has a million edges at least."""
    if data == "lubm":
        return lubm.generate(max(1, round(UNIVERSITIES * scale)), seed, tell=tell)
    if data == "exp":
        return exp.generate(max(1, round(EXPRESSIONS * scale)), seed=seed, tell=tell)
    assert data == "yago", data
    return yago.generate(max(LEAST_EDGES, round(EDGES * scale)), seed=seed, tell=tell)
