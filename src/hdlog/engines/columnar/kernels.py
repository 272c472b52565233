"""The few compiled loops of the columnar engine, over sorted arrays of 64-bit keys.

Each releases the GIL and has one explicit signature, so that everything is compiled once, at
import, and cached on disk. `tests/unit/test_kernels.py` has a naive twin for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Ids = NDArray[np.uint32]
Rows = NDArray[np.int64]
Flags = NDArray[np.uint8]
Counts = NDArray[np.int64]

_options: dict[str, Any] = {"cache": True, "nogil": True}


@njit("i8(u8[::1], i8, u8, i8)", **_options)
def _lower_bound(keys: Keys, start: int, key: Any, step: int) -> int:
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


@njit("i8[::1](u8[::1], u8[::1])", **_options)
def locate(keys: Keys, probes: Keys) -> Rows:
    """For each of the sorted probes its position in the sorted unique keys, or -1."""
    found = np.empty(probes.shape[0], np.int64)
    # Few probes lie far apart: a first step of their distance saves most of the gallop, and its cache misses.
    step = 1 + keys.shape[0] // (probes.shape[0] + 1)
    at = 0
    for i in range(probes.shape[0]):
        at = _lower_bound(keys, at, probes[i], step)
        found[i] = at if at < keys.shape[0] and keys[at] == probes[i] else -1
    return found


@njit("UniTuple(i8[::1], 2)(u8[::1], u4[::1])", **_options)
def ranges(keys: Keys, lefts: Ids) -> tuple[Rows, Rows]:
    """For each of the sorted left ids the range of keys whose upper half it is."""
    n = lefts.shape[0]
    low, high = np.empty(n, np.int64), np.empty(n, np.int64)
    step = 1 + keys.shape[0] // (n + 1)
    at = 0
    for i in range(n):
        if i > 0 and lefts[i] == lefts[i - 1]:
            low[i], high[i] = low[i - 1], high[i - 1]
            continue
        left = np.uint64(lefts[i])
        low[i] = _lower_bound(keys, at, left << np.uint64(32), step)
        high[i] = _lower_bound(keys, low[i], (left << np.uint64(32)) | np.uint64(0xFFFFFFFF), 1)
        at = high[i]
        if at < keys.shape[0] and keys[at] == ((left << np.uint64(32)) | np.uint64(0xFFFFFFFF)):
            at += 1
            high[i] = at
    return low, high


@njit("i8[::1](u8[::1], i8)", **_options)
def offsets(keys: Keys, lefts: int) -> Rows:
    """Where the keys of each left id from 0 to `lefts` begin; those of `i` end where those of `i + 1` begin."""
    starts = np.empty(lefts + 2, np.int64)
    at = 0
    for left in range(lefts + 2):
        while at < keys.shape[0] and (keys[at] >> np.uint64(32)) < np.uint64(left):
            at += 1
        starts[left] = at
    return starts


@njit("Tuple((i8[::1], u4[::1]))(u8[::1], u1[::1], i8[::1], i8[::1])", **_options)
def expand(keys: Keys, dead: Flags, low: Rows, high: Rows) -> tuple[Rows, Ids]:
    """Each range spelt out: the number of the probe, and the lower half of the key found."""
    total = 0
    marks = dead.shape[0] > 0
    for i in range(low.shape[0]):
        if marks:
            for j in range(low[i], high[i]):
                total += dead[j] == 0
        else:
            total += high[i] - low[i]
    probe, right = np.empty(total, np.int64), np.empty(total, np.uint32)
    at = 0
    for i in range(low.shape[0]):
        for j in range(low[i], high[i]):
            if not marks or dead[j] == 0:
                probe[at] = i
                right[at] = keys[j] & np.uint64(0xFFFFFFFF)
                at += 1
    return probe, right


@njit("b1[::1](u1[::1], i8[::1], i8[::1])", **_options)
def first_live(dead: Flags, low: Rows, high: Rows) -> NDArray[np.bool_]:
    """For each range whether something in it is live; no marks stand for all live."""
    found = np.zeros(low.shape[0], np.bool_)
    for i in range(low.shape[0]):
        for j in range(low[i], high[i]):
            if dead.shape[0] == 0 or dead[j] == 0:
                found[i] = True
                break
    return found


_LIST = "u8[::1], i8[::1], i8[::1], i8[::1]"
_SHORT = "u4[::1], i4[::1], i8[::1], i8[::1]"
"""Keys, or only their lower halves, with counts, and per row where its keys begin and end."""
_MUCH_LONGER = 16
_NEVER = -(1 << 63)
"""No weight has this value. A loop that might end at one is not made into gather instructions, which, on processors that
guard them against leaks, take five times as long as plain loads."""


@njit(["i8(u8[::1], i8, i8, u8, i8)", "i8(u4[::1], i8, i8, u8, i8)"], **_options)
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


@njit(
    ["void(u8[::1], i8[::1], i8, i8, i8[::1], b1)", "void(u4[::1], i4[::1], i8, i8, i8[::1], b1)"], **_options
)
def _spread(keys: Keys, counts: Rows, low: int, high: int, weights: Rows, clear: bool) -> None:
    """Write the counts of a range of keys to their lower halves' places, or zeros."""
    for j in range(low, high):
        place = keys[j] & np.uint64(0xFFFFFFFF)
        weights[place] = 0 if clear else (counts[j] if counts.shape[0] else 1)


@njit([f"i8({kind}, i8[::1], i8, i8)" for kind in (_LIST, _SHORT)], **_options)
def _spread_next(a: Keys, x: Rows, low: Rows, high: Rows, weights: Rows, spread: int, i: int) -> int:
    """Have range number i spread out in place of another; -1 is none. Returns the number of the one that is."""
    if spread >= 0 and low[spread] == low[i]:
        return spread
    if spread >= 0:
        _spread(a, x, low[spread], high[spread], weights, True)
    _spread(a, x, low[i], high[i], weights, False)
    return i


_MEET = "({0}, {0}, i8[::1], i8[::1], "


@njit([f"void{_MEET.format(kind)} i8[::1])" for kind in (_LIST, _SHORT)], **_options)
def meet_sizes(
    a: Keys, x: Rows, a_low: Rows, a_high: Rows, b: Keys, y: Rows, b_low: Rows, b_high: Rows,
    order: Rows, weights: Rows, found: Rows
) -> None:  # fmt: skip
    """For each pair of ranges, over how many lower halves they meet, each weighted by the product of its counts.

    `order` has pairs with the same first range together; that range is spread over `weights`, all zero and with a place for
    each lower half, and the other read against it, unless that is much the longer: then it is searched.
    No counts stand for ones. The sums are written to `found`.
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
        found[i] = total
    if spread >= 0:
        _spread(a, x, a_low[spread], a_high[spread], weights, True)


@njit([f"Tuple((i8[::1], u4[::1], i8[::1])){_MEET.format(kind)} b1)" for kind in (_LIST, _SHORT)], **_options)
def meet_lists(
    a: Keys, x: Rows, a_low: Rows, a_high: Rows, b: Keys, y: Rows, b_low: Rows, b_high: Rows,
    order: Rows, weights: Rows, counted: bool
) -> tuple[Rows, Ids, Rows]:  # fmt: skip
    """For each pair of ranges the lower halves that are in both: number of the pair, lower half, product of counts.

    `order` and `weights` are those of `meet_sizes`.
    """
    half = np.uint64(0xFFFFFFFF)
    room = 1024
    probe, right = np.empty(room, np.int64), np.empty(room, np.uint32)
    counts = np.empty(room if counted else 0, np.int64)
    at = 0
    spread = -1
    for n in range(order.shape[0]):
        i = order[n]
        most = at + min(a_high[i] - a_low[i], b_high[i] - b_low[i])
        if most > room:
            room = 2 * most
            more, values = np.empty(room, np.int64), np.empty(room, np.uint32)
            more[:at], values[:at] = probe[:at], right[:at]
            probe, right = more, values
            if counted:
                more = np.empty(room, np.int64)
                more[:at] = counts[:at]
                counts = more
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
    return probe[:at].copy(), right[:at].copy(), counts[: at if counted else 0].copy()


_SUMS = "Tuple((i8[::1], u4[::1], i8[::1]))"


@njit([f"{_SUMS}{_MEET.format(kind)} i8[::1], i8[::1], i8[::1], b1)" for kind in (_LIST, _SHORT)], **_options)
def meet_groups(
    a: Keys, x: Rows, a_low: Rows, a_high: Rows, b: Keys, y: Rows, b_low: Rows, b_high: Rows,
    order: Rows, weights: Rows, groups: Rows, factors: Rows, sums: Rows, single: bool
) -> tuple[Rows, Ids, Rows]:  # fmt: skip
    """The lower halves that are in both ranges of a pair, added up over the pairs of a group.

    `order` has the pairs of a group together, and in it those with the same first range. `weights` and `sums` are all zero,
    with a place for each lower half. Returns a pair of the group, the lower half, and the sum of the products of the counts
    and of the pair's own factor. No counts and no factors stand for ones. With `single` there are no second ranges.
    """
    half = np.uint64(0xFFFFFFFF)
    room = 1024
    member, right, found = np.empty(room, np.int64), np.empty(room, np.uint32), np.empty(room, np.int64)
    at = start = 0
    spread = -1
    for n in range(order.shape[0] + 1):
        if n == order.shape[0] or (n > 0 and groups[order[n]] != groups[order[n - 1]]):
            # A group is complete: its sums to their places, and without those that cancelled out.
            kept = start
            for j in range(start, at):
                place = right[j]
                if sums[place] != 0:
                    member[kept] = order[n - 1]
                    right[kept] = place
                    found[kept] = sums[place]
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
        if at + length > room:
            room = 2 * (at + length)
            more, values, numbers = (
                np.empty(room, np.int64),
                np.empty(room, np.uint32),
                np.empty(room, np.int64),
            )
            more[:at], values[:at], numbers[:at] = member[:at], right[:at], found[:at]
            member, right, found = more, values, numbers
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
    return member[:at].copy(), right[:at].copy(), found[:at].copy()


@njit("i8[::1](u8[::1], u8[::1])", **_options)
def merge_order(a: Keys, b: Keys) -> Rows:
    """The order in which the concatenation of two sorted arrays is sorted."""
    n, m = a.shape[0], b.shape[0]
    order = np.empty(n + m, np.int64)
    i = j = 0
    for k in range(n + m):
        if j >= m or (i < n and a[i] <= b[j]):
            order[k] = i
            i += 1
        else:
            order[k] = n + j
            j += 1
    return order


@njit("Tuple((u8[::1], i8[::1]))(u8[::1])", **_options)
def count_keys(keys: Keys) -> tuple[Keys, Rows]:
    """Sorted keys once each, with how often each occurs; no counts where all occur once."""
    distinct = 0
    for i in range(keys.shape[0]):
        distinct += i == 0 or keys[i] != keys[i - 1]
    if distinct == keys.shape[0]:
        return keys, np.empty(0, np.int64)
    unique, counts = np.empty(distinct, np.uint64), np.empty(distinct, np.int64)
    at = -1
    for i in range(keys.shape[0]):
        if i == 0 or keys[i] != keys[i - 1]:
            at += 1
            unique[at] = keys[i]
            counts[at] = 0
        counts[at] += 1
    return unique, counts


@njit("f8(u8[::1], u8[::1])", **_options)
def agreeing_pairs(a: Keys, b: Keys) -> float:
    """How many pairs of a sorted key of each have the same upper half."""
    total = 0.0
    i = j = 0
    while i < a.shape[0] and j < b.shape[0]:
        x, y = a[i] >> np.uint64(32), b[j] >> np.uint64(32)
        if x < y:
            i = _lower_bound(a, i, y << np.uint64(32), 1)
        elif y < x:
            j = _lower_bound(b, j, x << np.uint64(32), 1)
        else:
            first, second = i, j
            while i < a.shape[0] and a[i] >> np.uint64(32) == x:
                i += 1
            while j < b.shape[0] and b[j] >> np.uint64(32) == x:
                j += 1
            total += float(i - first) * float(j - second)
    return total


@njit("u8[::1](u8[::1], u1[::1], i8, u1[::1], i8)", **_options)
def reach_pairs(keys: Keys, lefts: Flags, left: int, rights: Flags, right: int) -> Keys:
    """The keys both of whose halves have come to a stage, and bring them to the next."""
    found = np.empty(keys.shape[0], np.uint64)
    n = 0
    for i in range(keys.shape[0]):
        a, b = keys[i] >> np.uint64(32), keys[i] & np.uint64(0xFFFFFFFF)
        if lefts[a] >= left and rights[b] >= right:
            lefts[a], rights[b] = left + 1, right + 1
            found[n] = keys[i]
            n += 1
    return found[:n].copy()


@njit("Tuple((u8[::1], i8[::1], u8[::1]))(u8[::1], u1[::1], i8[::1], u8[::1], i8[::1])", **_options)
def grow_run(keys: Keys, dead: Flags, support: Counts, probes: Keys, counts: Rows) -> tuple[Keys, Rows, Keys]:
    """Add counts to the supports of the sorted probes that a run has, in place, and wake the dead among them.

    Returns the probes it has not, their counts, and those woken. No counts stand for ones.
    """
    n = probes.shape[0]
    missed, missed_counts, woken = np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(n, np.uint64)
    step = 1 + keys.shape[0] // (n + 1)
    at = k = w = 0
    for i in range(n):
        at = _lower_bound(keys, at, probes[i], step)
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
    return missed[:k], missed_counts[:k], woken[:w]


_RUN = "u8[::1], u1[::1], u1[::1], i8[::1], i8[::1]"


@njit(f"Tuple(({_RUN}))({_RUN}, {_RUN})", **_options)
def merge_runs(
    a: Keys, a_dead: Flags, a_asserted: Flags, a_fixed: Counts, a_recursive: Counts,
    b: Keys, b_dead: Flags, b_asserted: Flags, b_fixed: Counts, b_recursive: Counts,
) -> tuple[Keys, Flags, Flags, Counts, Counts]:  # fmt: skip
    """Two runs with disjoint keys as one, without what is dead and has no support.

    No marks stand for all live; the result has marks only if something is dead.
    """
    n, m = a.shape[0], b.shape[0]
    keys, dead = np.empty(n + m, np.uint64), np.empty(n + m, np.uint8)
    asserted = np.empty(n + m, np.uint8)
    fixed, recursive = np.empty(n + m, np.int64), np.empty(n + m, np.int64)
    i = j = k = 0
    marked = False
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
            marked = True
        k += 1
    return keys[:k], dead[: k if marked else 0], asserted[:k], fixed[:k], recursive[:k]


@njit("Tuple((u8[::1], i8[::1]))(u8[::1], i8[::1], u8[::1], i8[::1])", **_options)
def merge_add(a: Keys, x: Rows, b: Keys, y: Rows) -> tuple[Keys, Rows]:
    """Two sorted sets of keys as one; counts of the same key add up, and keys with count 0 vanish.

    No counts stand for ones.
    """
    n, m = a.shape[0], b.shape[0]
    keys, counts = np.empty(n + m, np.uint64), np.empty(n + m, np.int64)
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
    return keys[:k], counts[:k]


@njit("u8(u8)", **_options)
def _hash(key: Any) -> Any:
    key ^= key >> np.uint64(32)
    key *= np.uint64(0xD6E8FEB86659FD93)
    key ^= key >> np.uint64(32)
    key *= np.uint64(0xD6E8FEB86659FD93)
    key ^= key >> np.uint64(32)
    return key


@njit("i8(u8[::1], u4[::1], u8[::1], i8, u4[::1], b1)", **_options)
def intern(keys: Keys, slots: Ids, stored: Keys, size: int, ids: Ids, grow: bool) -> int:
    """Write the id of each key to `ids`, new keys getting the next ids; returns the new size.

    `slots` is an open hash table of ids plus one, a power of two long. Without `grow` unknown
    keys get the id 0xFFFFFFFF.
    """
    mask = np.uint64(slots.shape[0] - 1)
    for i in range(keys.shape[0]):
        at = _hash(keys[i]) & mask
        while True:
            entry = slots[at]
            if entry == 0:
                if grow:
                    stored[size] = keys[i]
                    size += 1
                    slots[at] = size
                    ids[i] = size - 1
                else:
                    ids[i] = 0xFFFFFFFF
                break
            if stored[entry - 1] == keys[i]:
                ids[i] = entry - 1
                break
            at = (at + np.uint64(1)) & mask
    return size


@njit("void(u8[::1], i8, u4[::1])", **_options)
def rehash(stored: Keys, size: int, slots: Ids) -> None:
    """Fill an empty, larger hash table."""
    mask = np.uint64(slots.shape[0] - 1)
    for i in range(size):
        at = _hash(stored[i]) & mask
        while slots[at] != 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = i + 1
