"""The paper's running example as columns of ids: possible collaborators by co-workers and co-authors.

There are individuals a0..an, b1..bnk, c1..cnk and d1..dk. For each of the first n a's, k co-workers b and k
co-authors c have d1..dk as possible collaborators, one each; an works with a2 and writes with a3, so that its
collaborators come in a second round. A join plan meets n*k^2 partial matches; n*k + k facts follow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdlog.program.model import Predicate

Ids = NDArray[np.uint32]
RULES = "<PC>[?x, ?y] :- <CW>[?x, ?z1], <CA>[?x, ?z2], <PC>[?z1, ?y], <PC>[?z2, ?y] ."
COWORKER, COAUTHOR, POSSIBLE = (Predicate(name, 2) for name in ("CW", "CA", "PC"))


def generate(n: int = 1000, k: int = 400) -> dict[Predicate, list[Ids]]:
    """4*n*k + 2 facts; `names` says what the ids stand for."""
    assert n >= 4, "a2 and a3 are among the first n"
    a, b, c, d = np.split(np.arange(n + 1 + 2 * n * k + k, dtype=np.uint32), np.cumsum([n + 1, n * k, n * k]))
    owners, targets = np.repeat(a[:n], k), np.tile(d, n)
    return {
        COWORKER: [np.append(owners, a[n]), np.append(b, a[2])],
        COAUTHOR: [np.append(owners, a[n]), np.append(c, a[3])],
        POSSIBLE: [np.append(b, c), np.append(targets, targets)],
    }


def names(n: int = 1000, k: int = 400) -> list[str]:
    """The individual of each id, as text of N-Triples."""
    numbers = {"a": range(n + 1), "b": range(1, n * k + 1), "c": range(1, n * k + 1), "d": range(1, k + 1)}
    return [f"<{letter}{number}>" for letter, several in numbers.items() for number in several]


def derived(n: int = 1000, k: int = 400) -> int:
    """How many facts follow: PC(ai, dj) for each i up to n."""
    return n * k + k
