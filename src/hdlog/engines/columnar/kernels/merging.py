"""Sorted keys put together, with their counts and supports."""

from __future__ import annotations

import numpy as np

from hdlog.compiling import kernel
from hdlog.engines.columnar.kernels import Counts, Flags, Keys, Rows
from hdlog.engines.columnar.kernels.searching import lower_bound


def merge_order(a: Keys, b: Keys) -> Rows:
    """The order in which the concatenation of two sorted arrays is sorted."""
    order = np.empty(len(a) + len(b), np.int64)
    _merge_order(a, b, order)
    return order


@kernel("void(u8[::1], u8[::1], i8[::1])")
def _merge_order(a: Keys, b: Keys, order: Rows) -> None:
    n, m = a.shape[0], b.shape[0]
    i = j = 0
    for k in range(n + m):
        if j >= m or (i < n and a[i] <= b[j]):
            order[k] = i
            i += 1
        else:
            order[k] = n + j
            j += 1


def count_keys(keys: Keys) -> tuple[Keys, Rows]:
    """Sorted keys once each, with how often each occurs; no counts where all occur once."""
    distinct = _count_distinct(keys)
    if distinct == len(keys):
        return keys, np.empty(0, np.int64)
    unique, counts = np.empty(distinct, np.uint64), np.empty(distinct, np.int64)
    _count_keys(keys, unique, counts)
    return unique, counts


@kernel("i8(u8[::1])")
def _count_distinct(keys: Keys) -> int:
    distinct = 0
    for i in range(keys.shape[0]):
        distinct += i == 0 or keys[i] != keys[i - 1]
    return distinct


@kernel("void(u8[::1], u8[::1], i8[::1])")
def _count_keys(keys: Keys, unique: Keys, counts: Rows) -> None:
    at = -1
    for i in range(keys.shape[0]):
        if i == 0 or keys[i] != keys[i - 1]:
            at += 1
            unique[at] = keys[i]
            counts[at] = 0
        counts[at] += 1


def grow_run(keys: Keys, dead: Flags, support: Counts, probes: Keys, counts: Rows) -> tuple[Keys, Rows, Keys]:
    """Add counts to the supports of the sorted probes that a run has, in place, and wake the dead among them.

    Returns the probes it has not, their counts, and those woken. No counts stand for ones.
    """
    n = len(probes)
    missed, missed_counts, woken = np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(n, np.uint64)
    k, w = _grow_run(keys, dead, support, probes, counts, missed, missed_counts, woken)
    return missed[:k], missed_counts[:k], woken[:w]


@kernel("UniTuple(i8, 2)(u8[::1], u1[::1], i8[::1], u8[::1], i8[::1], u8[::1], i8[::1], u8[::1])")
def _grow_run(
    keys: Keys, dead: Flags, support: Counts, probes: Keys, counts: Rows, missed: Keys, missed_counts: Rows, woken: Keys
) -> tuple[int, int]:  # fmt: skip
    n = probes.shape[0]
    step = 1 + keys.shape[0] // (n + 1)
    at = k = w = 0
    for i in range(n):
        at = lower_bound(keys, at, probes[i], step)
        count = counts[i] if counts.shape[0] else 1
        if at < keys.shape[0] and keys[at] == probes[i]:
            support[at] += count
            if dead.shape[0] and dead[at]:
                dead[at] = 0
                woken[w] = probes[i]
                w += 1
        else:
            missed[k] = probes[i]
            missed_counts[k] = count
            k += 1
    return k, w


_RUN = "u8[::1], u1[::1], u1[::1], i8[::1], i8[::1]"


def merge_runs(
    a: Keys, a_dead: Flags, a_asserted: Flags, a_fixed: Counts, a_recursive: Counts,
    b: Keys, b_dead: Flags, b_asserted: Flags, b_fixed: Counts, b_recursive: Counts,
) -> tuple[Keys, Flags, Flags, Counts, Counts]:  # fmt: skip
    """Two runs with disjoint keys as one, without what is dead and has no support.

    No marks stand for all live; the result has marks only if something is dead.
    """
    both = len(a) + len(b)
    keys, dead = np.empty(both, np.uint64), np.empty(both, np.uint8)
    asserted = np.empty(both, np.uint8)
    fixed, recursive = np.empty(both, np.int64), np.empty(both, np.int64)
    k, marked = _merge_runs(
        a, a_dead, a_asserted, a_fixed, a_recursive,
        b, b_dead, b_asserted, b_fixed, b_recursive,
        keys, dead, asserted, fixed, recursive,
    )  # fmt: skip
    return keys[:k], dead[: k if marked else 0], asserted[:k], fixed[:k], recursive[:k]


@kernel(f"UniTuple(i8, 2)({_RUN}, {_RUN}, {_RUN})")
def _merge_runs(
    a: Keys, a_dead: Flags, a_asserted: Flags, a_fixed: Counts, a_recursive: Counts,
    b: Keys, b_dead: Flags, b_asserted: Flags, b_fixed: Counts, b_recursive: Counts,
    keys: Keys, dead: Flags, asserted: Flags, fixed: Counts, recursive: Counts,
) -> tuple[int, int]:  # fmt: skip
    n, m = a.shape[0], b.shape[0]
    i = j = k = 0
    marked = 0
    while i < n or j < m:
        if j >= m or (i < n and a[i] < b[j]):
            keys[k] = a[i]
            dead[k] = a_dead[i] if a_dead.shape[0] else 0
            asserted[k], fixed[k], recursive[k] = a_asserted[i], a_fixed[i], a_recursive[i]
            i += 1
        else:
            keys[k] = b[j]
            dead[k] = b_dead[j] if b_dead.shape[0] else 0
            asserted[k], fixed[k], recursive[k] = b_asserted[j], b_fixed[j], b_recursive[j]
            j += 1
        if dead[k]:
            if asserted[k] == 0 and fixed[k] == 0 and recursive[k] == 0:
                continue
            marked = 1
        k += 1
    return k, marked


def merge_add(a: Keys, x: Rows, b: Keys, y: Rows) -> tuple[Keys, Rows]:
    """Two sorted sets of keys as one; counts of the same key add up, and keys with count 0 vanish.

    No counts stand for ones.
    """
    keys, counts = np.empty(len(a) + len(b), np.uint64), np.empty(len(a) + len(b), np.int64)
    k = _merge_add(a, x, b, y, keys, counts)
    return keys[:k], counts[:k]


@kernel("i8(u8[::1], i8[::1], u8[::1], i8[::1], u8[::1], i8[::1])")
def _merge_add(a: Keys, x: Rows, b: Keys, y: Rows, keys: Keys, counts: Rows) -> int:
    n, m = a.shape[0], b.shape[0]
    i = j = k = 0
    while i < n or j < m:
        count = 0
        if j >= m or (i < n and a[i] <= b[j]):
            key = a[i]
        else:
            key = b[j]
        if i < n and a[i] == key:
            count += x[i] if x.shape[0] else 1
            i += 1
        if j < m and b[j] == key:
            count += y[j] if y.shape[0] else 1
            j += 1
        if count != 0:
            keys[k] = key
            counts[k] = count
            k += 1
    return k
