"""Where keys stand in sorted keys, and what there is of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.compiling import inner, kernel
from hdlog.engines.columnar.kernels import Flags, Ids, Keys, Rows


@inner("i8(u8[::1], i8, u8, i8)")
def lower_bound(keys: Keys, start: int, key: Any, step: int) -> int:
    """The first position from `start` on whose key is not below `key`, by galloping, `step` keys at first."""
    n = keys.shape[0]
    low = start
    high = start
    while high < n and keys[high] < key:
        low = high + 1
        high += step
        step *= 2
    if high > n:
        high = n
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


def locate(keys: Keys, probes: Keys) -> Rows:
    """For each of the sorted probes its position in the sorted unique keys, or -1."""
    positions = np.empty(len(probes), np.int64)
    _locate(keys, probes, positions)
    return positions


@kernel("void(u8[::1], u8[::1], i8[::1])")
def _locate(keys: Keys, probes: Keys, positions: Rows) -> None:
    # Few probes lie far apart: a first step of their distance saves most of the gallop, and its cache misses.
    step = 1 + keys.shape[0] // (probes.shape[0] + 1)
    at = 0
    for i in range(probes.shape[0]):
        at = lower_bound(keys, at, probes[i], step)
        positions[i] = at if at < keys.shape[0] and keys[at] == probes[i] else -1


def ranges(keys: Keys, lefts: Ids) -> tuple[Rows, Rows]:
    """For each of the sorted left ids the range of keys whose upper half it is."""
    low, high = np.empty(len(lefts), np.int64), np.empty(len(lefts), np.int64)
    _ranges(keys, lefts, low, high)
    return low, high


@kernel("void(u8[::1], u4[::1], i8[::1], i8[::1])")
def _ranges(keys: Keys, lefts: Ids, low: Rows, high: Rows) -> None:
    n = lefts.shape[0]
    step = 1 + keys.shape[0] // (n + 1)
    at = 0
    for i in range(n):
        if i > 0 and lefts[i] == lefts[i - 1]:
            low[i], high[i] = low[i - 1], high[i - 1]
            continue
        left = np.uint64(lefts[i])
        low[i] = lower_bound(keys, at, left << np.uint64(32), step)
        high[i] = lower_bound(keys, low[i], (left << np.uint64(32)) | np.uint64(0xFFFFFFFF), 1)
        at = high[i]
        if at < keys.shape[0] and keys[at] == ((left << np.uint64(32)) | np.uint64(0xFFFFFFFF)):
            at += 1
            high[i] = at


def offsets(keys: Keys, lefts: int) -> Rows:
    """Where the keys of each left id from 0 to `lefts` begin; those of `i` end where those of `i + 1` begin."""
    starts = np.empty(lefts + 2, np.int64)
    _offsets(keys, starts)
    return starts


@kernel("void(u8[::1], i8[::1])")
def _offsets(keys: Keys, starts: Rows) -> None:
    at = 0
    for left in range(starts.shape[0]):
        while at < keys.shape[0] and (keys[at] >> np.uint64(32)) < np.uint64(left):
            at += 1
        starts[left] = at


def expand(keys: Keys, dead: Flags, low: Rows, high: Rows) -> tuple[Rows, Ids]:
    """Each range spelt out: the number of the probe, and the lower half of the key found."""
    total = _count_live(dead, low, high) if len(dead) else int((high - low).sum())
    probe, right = np.empty(total, np.int64), np.empty(total, np.uint32)
    _expand(keys, dead, low, high, probe, right)
    return probe, right


@kernel("i8(u1[::1], i8[::1], i8[::1])")
def _count_live(dead: Flags, low: Rows, high: Rows) -> int:
    total = 0
    for i in range(low.shape[0]):
        for j in range(low[i], high[i]):
            total += dead[j] == 0
    return total


@kernel("void(u8[::1], u1[::1], i8[::1], i8[::1], i8[::1], u4[::1])")
def _expand(keys: Keys, dead: Flags, low: Rows, high: Rows, probe: Rows, right: Ids) -> None:
    marks = dead.shape[0] > 0
    at = 0
    for i in range(low.shape[0]):
        for j in range(low[i], high[i]):
            if not marks or dead[j] == 0:
                probe[at] = i
                right[at] = keys[j] & np.uint64(0xFFFFFFFF)
                at += 1


def have_live(dead: Flags, low: Rows, high: Rows) -> NDArray[np.bool_]:
    """For each range whether something in it is live; no marks stand for all live."""
    live = np.zeros(len(low), np.bool_)
    _have_live(dead, low, high, live)
    return live


@kernel("void(u1[::1], i8[::1], i8[::1], b1[::1])")
def _have_live(dead: Flags, low: Rows, high: Rows, live: NDArray[np.bool_]) -> None:
    for i in range(low.shape[0]):
        for j in range(low[i], high[i]):
            if dead.shape[0] == 0 or dead[j] == 0:
                live[i] = True
                break


@kernel("f8(u8[::1], u8[::1])")
def agreeing_pairs(a: Keys, b: Keys) -> float:
    """How many pairs of a sorted key of each have the same upper half."""
    total = 0.0
    i = j = 0
    while i < a.shape[0] and j < b.shape[0]:
        x, y = a[i] >> np.uint64(32), b[j] >> np.uint64(32)
        if x < y:
            i = lower_bound(a, i, y << np.uint64(32), 1)
        elif y < x:
            j = lower_bound(b, j, x << np.uint64(32), 1)
        else:
            first, second = i, j
            while i < a.shape[0] and a[i] >> np.uint64(32) == x:
                i += 1
            while j < b.shape[0] and b[j] >> np.uint64(32) == x:
                j += 1
            total += float(i - first) * float(j - second)
    return total


def reach_pairs(keys: Keys, lefts: Flags, left: int, rights: Flags, right: int) -> Keys:
    """The keys both of whose halves have come to a stage, and bring them to the next."""
    reached = np.empty(len(keys), np.uint64)
    return reached[: _reach_pairs(keys, lefts, left, rights, right, reached)].copy()


@kernel("i8(u8[::1], u1[::1], i8, u1[::1], i8, u8[::1])")
def _reach_pairs(keys: Keys, lefts: Flags, left: int, rights: Flags, right: int, reached: Keys) -> int:
    n = 0
    for i in range(keys.shape[0]):
        a, b = keys[i] >> np.uint64(32), keys[i] & np.uint64(0xFFFFFFFF)
        if lefts[a] >= left and rights[b] >= right:
            lefts[a], rights[b] = left + 1, right + 1
            reached[n] = keys[i]
            n += 1
    return n
