"""Lists of candidates against each other: the loops of the worst-case optimal step."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hdlog.compiling import inner, kernel
from hdlog.engines.columnar.kernels import Ids, Keys, Rows

N = TypeVar("N", bound=np.generic)
_LIST = "u8[::1], i8[::1], i8[::1], i8[::1]"
_SHORT = "u4[::1], i4[::1], i8[::1], i8[::1]"
"""Keys, or only their lower halves, with counts, and per row where its keys begin and end."""
_MUCH_LONGER = 16
_NEVER = -(1 << 63)
"""No weight has this value. A loop that might end at one is not made into gather instructions, which, on processors that
guard them against leaks, take five times as long as plain loads."""


@inner("i8(u8[::1], i8, i8, u8, i8)", "i8(u4[::1], i8, i8, u8, i8)")
def _search(keys: Keys, low: int, end: int, key: Any, step: int) -> int:
    """The first position in a range whose key is not below `key`, by galloping."""
    high = low
    while high < end and keys[high] < key:
        low = high + 1
        high += step
        step *= 2
    high = min(high, end)
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@inner("void(u8[::1], i8[::1], i8, i8, i8[::1], b1)", "void(u4[::1], i4[::1], i8, i8, i8[::1], b1)")
def _spread(keys: Keys, counts: Rows, low: int, high: int, weights: Rows, clear: bool) -> None:
    """Write the counts of a range of keys to their lower halves' places, or zeros."""
    for j in range(low, high):
        place = keys[j] & np.uint64(0xFFFFFFFF)
        weights[place] = 0 if clear else (counts[j] if counts.shape[0] else 1)


@inner(*[f"i8({kind}, i8[::1], i8, i8)" for kind in (_LIST, _SHORT)])
def _spread_next(a: Keys, x: Rows, low: Rows, high: Rows, weights: Rows, spread: int, i: int) -> int:
    """Have range number i spread out in place of another; -1 is none. Returns the number of the one that is."""
    if spread >= 0 and low[spread] == low[i]:
        return spread
    if spread >= 0:
        _spread(a, x, low[spread], high[spread], weights, True)
    _spread(a, x, low[i], high[i], weights, False)
    return i


_MEET = "({0}, {0}, i8[::1], i8[::1], "


@kernel(*[f"void{_MEET.format(kind)} i8[::1])" for kind in (_LIST, _SHORT)])
def meet_sizes(
    a: Keys, x: Rows, a_low: Rows, a_high: Rows, b: Keys, y: Rows, b_low: Rows, b_high: Rows,
    order: Rows, weights: Rows, totals: Rows
) -> None:  # fmt: skip
    """For each pair of ranges, over how many lower halves they meet, each weighted by the product of its counts.

    `order` has pairs with the same first range together; that range is spread over `weights`, all zero and with a place for
    each lower half, and the other read against it, unless that is much the longer: then it is searched.
    No counts stand for ones. The sums are written to `totals`.
    """
    half = np.uint64(0xFFFFFFFF)
    spread = -1
    for n in range(order.shape[0]):
        i = order[n]
        total = 0
        if b_high[i] - b_low[i] > _MUCH_LONGER * (a_high[i] - a_low[i]):
            q = b_low[i]
            if a_low[i] < a_high[i]:
                step = 1 + (b_high[i] - q) // (a_high[i] - a_low[i])
                left = b[q] & ~half
                for p in range(a_low[i], a_high[i]):
                    key = left | (a[p] & half)
                    q = _search(b, q, b_high[i], key, step)
                    if q >= b_high[i]:
                        break
                    if b[q] == key:
                        total += (x[p] if x.shape[0] else 1) * (y[q] if y.shape[0] else 1)
        elif b_low[i] < b_high[i]:
            spread = _spread_next(a, x, a_low, a_high, weights, spread, i)
            for q in range(b_low[i], b_high[i]):
                weight = weights[b[q] & half]
                if weight == _NEVER:
                    break
                total += weight * (y[q] if y.shape[0] else 1)
        totals[i] = total
    if spread >= 0:
        _spread(a, x, a_low[spread], a_high[spread], weights, True)


_ROOM = 1024
"""Rows that there is room for at first."""


def _enlarge(array: NDArray[N], filled: int, room: int) -> NDArray[N]:
    """An array with more room behind what is in it."""
    larger = np.empty(room, array.dtype)
    larger[:filled] = array[:filled]
    return larger


def meet_lists(
    a: Keys, x: Rows, a_low: Rows, a_high: Rows, b: Keys, y: Rows, b_low: Rows, b_high: Rows,
    order: Rows, weights: Rows, counted: bool
) -> tuple[Rows, Ids, Rows]:  # fmt: skip
    """For each pair of ranges the lower halves that are in both: number of the pair, lower half, product of counts.

    `order` and `weights` are those of `meet_sizes`.
    """
    probe, right = np.empty(_ROOM, np.int64), np.empty(_ROOM, np.uint32)
    counts = np.empty(_ROOM if counted else 0, np.int64)
    state = np.array([0, 0, -1])
    while True:
        most = _meet_lists(
            a, x, a_low, a_high, b, y, b_low, b_high, order, weights, counted, state, probe, right, counts
        )
        at = int(state[1])
        if not most:
            return probe[:at].copy(), right[:at].copy(), counts[:at].copy()
        probe, right = _enlarge(probe, at, 2 * most), _enlarge(right, at, 2 * most)
        counts = _enlarge(counts, at, 2 * most) if counted else counts


@kernel(*[f"i8{_MEET.format(kind)} b1, i8[::1], i8[::1], u4[::1], i8[::1])" for kind in (_LIST, _SHORT)])
def _meet_lists(
    a: Keys, x: Rows, a_low: Rows, a_high: Rows, b: Keys, y: Rows, b_low: Rows, b_high: Rows,
    order: Rows, weights: Rows, counted: bool, state: Rows, probe: Rows, right: Ids, counts: Rows
) -> int:  # fmt: skip
    """From the pair in `state` on as far as there is room; how much is needed for the next, or 0 when all is done.

    `state`: the number of the pair in `order`, how many rows there are, and which range is spread out.
    """
    half = np.uint64(0xFFFFFFFF)
    first, at, spread = state[0], state[1], state[2]
    for n in range(first, order.shape[0]):
        i = order[n]
        most = at + min(a_high[i] - a_low[i], b_high[i] - b_low[i])
        if most > probe.shape[0]:
            state[0], state[1], state[2] = n, at, spread
            return int(most)
        if b_high[i] - b_low[i] > _MUCH_LONGER * (a_high[i] - a_low[i]):
            q = b_low[i]
            if a_low[i] < a_high[i]:
                step = 1 + (b_high[i] - q) // (a_high[i] - a_low[i])
                left = b[q] & ~half
                for p in range(a_low[i], a_high[i]):
                    key = left | (a[p] & half)
                    q = _search(b, q, b_high[i], key, step)
                    if q >= b_high[i]:
                        break
                    if b[q] == key:
                        probe[at] = i
                        right[at] = key & half
                        if counted:
                            counts[at] = (x[p] if x.shape[0] else 1) * (y[q] if y.shape[0] else 1)
                        at += 1
        elif b_low[i] < b_high[i]:
            spread = _spread_next(a, x, a_low, a_high, weights, spread, i)
            for q in range(b_low[i], b_high[i]):
                weight = weights[b[q] & half]
                if weight:
                    probe[at] = i
                    right[at] = b[q] & half
                    if counted:
                        counts[at] = weight * (y[q] if y.shape[0] else 1)
                    at += 1
    if spread >= 0:
        _spread(a, x, a_low[spread], a_high[spread], weights, True)
    state[1] = at
    return 0


def meet_groups(
    a: Keys, x: Rows, a_low: Rows, a_high: Rows, b: Keys, y: Rows, b_low: Rows, b_high: Rows,
    order: Rows, weights: Rows, groups: Rows, factors: Rows, sums: Rows, single: bool
) -> tuple[Rows, Ids, Rows]:  # fmt: skip
    """The lower halves that are in both ranges of a pair, added up over the pairs of a group.

    `order` has the pairs of a group together, and in it those with the same first range. `weights` and `sums` are all zero,
    with a place for each lower half. Returns a pair of the group, the lower half, and the sum of the products of the counts
    and of the pair's own factor. No counts and no factors stand for ones. With `single` there are no second ranges.
    """
    member, right, totals = np.empty(_ROOM, np.int64), np.empty(_ROOM, np.uint32), np.empty(_ROOM, np.int64)
    state = np.array([0, 0, 0, -1])
    while True:
        most = _meet_groups(
            a, x, a_low, a_high, b, y, b_low, b_high,
            order, weights, groups, factors, sums, single, state, member, right, totals,
        )  # fmt: skip
        at = int(state[1])
        if not most:
            return member[:at].copy(), right[:at].copy(), totals[:at].copy()
        member, right, totals = (
            _enlarge(member, at, 2 * most),
            _enlarge(right, at, 2 * most),
            _enlarge(totals, at, 2 * most),
        )


@kernel(
    *[
        f"i8{_MEET.format(kind)} i8[::1], i8[::1], i8[::1], b1, i8[::1], i8[::1], u4[::1], i8[::1])"
        for kind in (_LIST, _SHORT)
    ]
)
def _meet_groups(
    a: Keys, x: Rows, a_low: Rows, a_high: Rows, b: Keys, y: Rows, b_low: Rows, b_high: Rows,
    order: Rows, weights: Rows, groups: Rows, factors: Rows, sums: Rows, single: bool,
    state: Rows, member: Rows, right: Ids, totals: Rows
) -> int:  # fmt: skip
    """From the pair in `state` on as far as there is room; how much is needed for the next, or 0 when all is done.

    `state`: the number of the pair in `order`, how many rows there are, how many of complete groups, and which range is spread out.
    """
    half = np.uint64(0xFFFFFFFF)
    first, at, start, spread = state[0], state[1], state[2], state[3]
    for n in range(first, order.shape[0] + 1):
        if n == order.shape[0] or (n > 0 and groups[order[n]] != groups[order[n - 1]]):
            # A group is complete: its sums to their places, and without those that cancelled out.
            kept = start
            for j in range(start, at):
                place = right[j]
                if sums[place] != 0:
                    member[kept] = order[n - 1]
                    right[kept] = place
                    totals[kept] = sums[place]
                    sums[place] = 0
                    kept += 1
            at = start = kept
            if n == order.shape[0]:
                break
        i = order[n]
        factor = factors[i] if factors.shape[0] else 1
        length = a_high[i] - a_low[i]
        if not single:
            length = min(length, b_high[i] - b_low[i])
        if at + length > right.shape[0]:
            state[0], state[1], state[2], state[3] = n, at, start, spread
            return int(at + length)
        if single:
            for p in range(a_low[i], a_high[i]):
                place = a[p] & half
                # A sum that is zero again may be listed twice; the second time it is zero, and skipped.
                if sums[place] == 0:
                    right[at] = place
                    at += 1
                sums[place] += factor * (x[p] if x.shape[0] else 1)
        elif b_high[i] - b_low[i] > _MUCH_LONGER * (a_high[i] - a_low[i]):
            q = b_low[i]
            if a_low[i] < a_high[i]:
                step = 1 + (b_high[i] - q) // (a_high[i] - a_low[i])
                left = b[q] & ~half
                for p in range(a_low[i], a_high[i]):
                    key = left | (a[p] & half)
                    q = _search(b, q, b_high[i], key, step)
                    if q >= b_high[i]:
                        break
                    if b[q] == key:
                        place = key & half
                        if sums[place] == 0:
                            right[at] = place
                            at += 1
                        weight = (x[p] if x.shape[0] else 1) * (y[q] if y.shape[0] else 1)
                        sums[place] += factor * weight
        elif b_low[i] < b_high[i]:
            spread = _spread_next(a, x, a_low, a_high, weights, spread, i)
            for q in range(b_low[i], b_high[i]):
                place = b[q] & half
                weight = weights[place]
                if weight:
                    if sums[place] == 0:
                        right[at] = place
                        at += 1
                    sums[place] += factor * weight * (y[q] if y.shape[0] else 1)
    if spread >= 0:
        _spread(a, x, a_low[spread], a_high[spread], weights, True)
    state[1] = at
    return 0
