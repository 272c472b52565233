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

_options: dict[str, Any] = {"cache": True, "nogil": True}


@njit("i8(u8[::1], i8, u8)", **_options)
def _lower_bound(keys: Keys, start: int, key: Any) -> int:
    """The first position from `start` on whose key is not below `key`, by galloping."""
    n = keys.shape[0]
    step = 1
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
    at = 0
    for i in range(probes.shape[0]):
        at = _lower_bound(keys, at, probes[i])
        found[i] = at if at < keys.shape[0] and keys[at] == probes[i] else -1
    return found


@njit("UniTuple(i8[::1], 2)(u8[::1], u4[::1])", **_options)
def ranges(keys: Keys, lefts: Ids) -> tuple[Rows, Rows]:
    """For each of the sorted left ids the range of keys whose upper half it is."""
    n = lefts.shape[0]
    low, high = np.empty(n, np.int64), np.empty(n, np.int64)
    at = 0
    for i in range(n):
        if i > 0 and lefts[i] == lefts[i - 1]:
            low[i], high[i] = low[i - 1], high[i - 1]
            continue
        left = np.uint64(lefts[i])
        low[i] = _lower_bound(keys, at, left << np.uint64(32))
        high[i] = _lower_bound(keys, low[i], (left << np.uint64(32)) | np.uint64(0xFFFFFFFF))
        at = high[i]
        if at < keys.shape[0] and keys[at] == ((left << np.uint64(32)) | np.uint64(0xFFFFFFFF)):
            at += 1
            high[i] = at
    return low, high


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
