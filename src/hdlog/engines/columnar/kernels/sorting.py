"""Keys sorted by their digits: some times as fast as `np.sort` and `np.argsort` where these are slow, and as fast where they are not.

numpy sorts with AVX-512, which takes 66 ns a key on AMD's Zen 4 and 5, where 13 are possible without it, and its `argsort` takes 90 to 160 ns
everywhere. A radix sort takes 8 to 15 ns for keys of about 50 bits that differ, and twice that where something is carried along, on any machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.compiling import inner, kernel
from hdlog.engines.columnar.kernels import Counts, Ids, Keys, Rows

_FEW = 1 << 10
"""Elements up to which numpy is as fast."""
_UNCOMPILED = 1 << 15
"""Likewise where a loop would have to be read from disk first."""
_NOTHING = np.empty(0, np.int64)


def sort(keys: Keys) -> Keys:
    """The keys in order; the array that is given may be overwritten."""
    if _is_for_numpy(keys):
        keys.sort()
        return keys
    return _sort_digits(keys, _NOTHING)[0]


def sort_places(places: Rows) -> Rows:
    """Places in order, likewise."""
    return sort(places.view(np.uint64)).view(np.int64)


def sort_with(keys: Keys, carried: Counts) -> tuple[Keys, Counts]:
    """The keys in order, each with what stood beside it; equal keys stay in the order they had. The keys that are given may be overwritten."""
    if _is_for_numpy(keys):
        order = np.argsort(keys, kind="stable")
        return keys[order], carried[order]
    return _sort_digits(keys, carried.copy())


def order_of(keys: Keys | Ids | NDArray[Any]) -> Rows:
    """The places of keys in their order; equal keys stay in the order they had."""
    if _is_for_numpy(keys):
        return np.argsort(keys, kind="stable")
    return _sort_digits(_as_keys(keys), np.arange(len(keys)))[1]


def _sort_digits(keys: Keys, carried: Counts) -> tuple[Keys, Counts]:
    """The keys in order, with what stood beside each, if anything did; both arrays are overwritten."""
    other, beside = np.empty_like(keys), np.empty_like(carried)
    starts = np.empty(1 << (8 if len(keys) < 50_000 else 10), np.int64)
    if sort_digits(keys, carried, other, beside, starts):
        return other, beside
    return keys, carried


def _as_keys(numbers: NDArray[Any]) -> Keys:
    """Numbers as keys of the same order, in an array of their own."""
    if numbers.dtype.kind == "u":
        return numbers.astype(np.uint64)
    assert numbers.dtype.kind == "i", "only whole numbers have digits"
    return numbers.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)


def _is_for_numpy(keys: NDArray[Any]) -> bool:
    return len(keys) <= _FEW or (len(keys) <= _UNCOMPILED and not sort_digits.is_compiled)


@inner("u8(u8[::1])")
def _find_differing(keys: Keys) -> np.uint64:
    """The bits in which keys differ from each other."""
    bits = np.uint64(0)
    for i in range(keys.shape[0]):
        bits |= keys[i] ^ keys[0]
    return bits


@inner("void(u8[::1], u8, u8, i8[::1])")
def _find_starts(keys: Keys, shift: np.uint64, digit: np.uint64, starts: Rows) -> None:
    """Where the keys of each digit will begin."""
    starts[:] = 0
    for i in range(keys.shape[0]):
        starts[np.int64((keys[i] >> shift) & digit)] += 1
    total = 0
    for d in range(starts.shape[0]):
        total, starts[d] = total + starts[d], total


@inner("void(u8[::1], i8[::1], u8[::1], i8[::1], u8, u8, i8[::1])")
def _scatter(
    keys: Keys, carried: Counts, other: Keys, beside: Counts, shift: np.uint64, digit: np.uint64, starts: Rows
) -> None:
    """Keys to where those of their digit go, with what stands beside them, if anything does."""
    if not carried.shape[0]:
        for i in range(keys.shape[0]):
            d = np.int64((keys[i] >> shift) & digit)
            other[starts[d]] = keys[i]
            starts[d] += 1
        return
    for i in range(keys.shape[0]):
        d = np.int64((keys[i] >> shift) & digit)
        other[starts[d]] = keys[i]
        beside[starts[d]] = carried[i]
        starts[d] += 1


@kernel("i8(u8[::1], i8[::1], u8[::1], i8[::1], i8[::1])", work=0)
def sort_digits(keys: Keys, carried: Counts, other: Keys, beside: Counts, starts: Rows) -> int:
    """Sort keys, with what stands beside each, if anything does; all arrays are overwritten. Whether the sorted ones are in `other` and `beside`.

    `starts` has a place for each digit.
    """
    digit = np.uint64(starts.shape[0] - 1)
    bits = np.uint64(0)
    while (np.uint64(1) << bits) <= digit:
        bits += np.uint64(1)
    moved = 0
    differing = _find_differing(keys)
    shift = np.uint64(0)
    while shift < np.uint64(64) and differing >> shift:
        # From the lowest bit in which they differ on, so many at a time.
        while not (differing >> shift) & np.uint64(1):
            shift += np.uint64(1)
        _find_starts(keys, shift, digit, starts)
        _scatter(keys, carried, other, beside, shift, digit, starts)
        keys, other = other, keys
        carried, beside = beside, carried
        moved = 1 - moved
        shift += bits
    return moved
