"""The paper's running example: possible collaborators by co-workers and co-authors.

There are individuals a0..an, b1..bnk, c1..cnk and d1..dk. For each of the first n a's, k co-workers b and k
co-authors c have d1..dk as possible collaborators, one each; an works with a2 and writes with a3, so that its
collaborators come in a second round. A join plan meets n*k^2 partial matches; n*k + k facts follow.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from hdlog.benchmarks.data.dataset import Dataset, join_texts, number_texts
from hdlog.benchmarks.data.rule_sets import rule_text
from hdlog.program.model import Predicate

NS = "http://example#"
COWORKER, COAUTHOR, POSSIBLE = (Predicate(NS + name, 2) for name in ("CW", "CA", "PC"))


def generate(n: int = 1000, k: int = 400, tell: Callable[[float], None] = lambda _: None) -> Dataset:
    """4*n*k + 2 facts."""
    if n < 4 or k < 1:
        raise ValueError(f"n={n} and k={k}: n is at least 4, so that there are a2 and a3, and k at least 1")
    data = Dataset("collaborators", rule_text("collaborators"), {"n": n, "k": k})
    sizes = {"a": (n + 1, 0), "b": (n * k, 1), "c": (n * k, 1), "d": (k, 1)}
    a, b, c, d = (
        data.add_terms(size, _individuals(letter, first)).ids for letter, (size, first) in sizes.items()
    )
    owners, targets = np.repeat(a[:n], k), np.tile(d, n)
    data.tables = {
        COWORKER: [np.append(owners, a[n]), np.append(b, a[2])],
        COAUTHOR: [np.append(owners, a[n]), np.append(c, a[3])],
        POSSIBLE: [np.append(b, c), np.append(targets, targets)],
    }
    tell(1.0)
    return data


def _individuals(letter: str, first: int) -> Callable[[int, int], pa.Array]:
    """a0, a1, ... or b1, b2, ..."""
    return lambda low, high: join_texts(
        f"<{NS}{letter}", number_texts(np.arange(low + first, high + first)), ">"
    )


def count_derived(n: int = 1000, k: int = 400) -> int:
    """How many facts follow: PC(ai, dj) for each i up to n."""
    return n * k + k
