"""Hashes of texts, as Spark's `xxhash64` has them. Stores rest on them: with another function here their terms would be lost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.compiling import inner, kernel

_BYTES = "Array(u1, 1, 'C', readonly=True)"
_PLACES = "Array(i8, 1, 'C', readonly=True)"
P1, P2, P3, P4, P5 = (
    np.uint64(n)
    for n in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_SEED = np.uint64(42)


@inner("u8(u8, i8)")
def _rotate(value: Any, bits: int) -> Any:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@inner("u8(u8, u8)")
def _round(state: Any, word: Any) -> Any:
    return _rotate(state + word * P2, 31) * P1


@inner(f"u8({_BYTES}, i8, i8)")
def _word(data: NDArray[np.uint8], at: int, width: int) -> Any:
    """Some bytes as a number, the lowest first."""
    word = np.uint64(0)
    for j in range(width):
        word |= np.uint64(data[at + j]) << np.uint64(8 * j)
    return word


@inner(f"u8({_BYTES}, i8, i8)")
def _hash_text(data: NDArray[np.uint8], low: int, high: int) -> Any:
    """XXH64 of the bytes between two places."""
    length = high - low
    if length >= 32:
        a, b, c, d = _SEED + P1 + P2, _SEED + P2, _SEED, _SEED - P1
        while low + 32 <= high:
            a = _round(a, _word(data, low, 8))
            b = _round(b, _word(data, low + 8, 8))
            c = _round(c, _word(data, low + 16, 8))
            d = _round(d, _word(data, low + 24, 8))
            low += 32
        state = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
        for lane in (a, b, c, d):
            state = (state ^ _round(np.uint64(0), lane)) * P1 + P4
    else:
        state = _SEED + P5
    state += np.uint64(length)
    while low + 8 <= high:
        state = _rotate(state ^ _round(np.uint64(0), _word(data, low, 8)), 27) * P1 + P4
        low += 8
    if low + 4 <= high:
        state = _rotate(state ^ (_word(data, low, 4) * P1), 23) * P2 + P3
        low += 4
    while low < high:
        state = _rotate(state ^ (np.uint64(data[low]) * P5), 11) * P1
        low += 1
    state = (state ^ (state >> np.uint64(33))) * P2
    state = (state ^ (state >> np.uint64(29))) * P3
    return state ^ (state >> np.uint64(32))


def hash_texts(data: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The hash of each text; a text begins where the one before it ends."""
    hashes = np.empty(len(starts) - 1, np.uint64)
    _hash_texts(data, starts, hashes)
    return hashes


@kernel(f"void({_BYTES}, {_PLACES}, u8[::1])")
def _hash_texts(data: NDArray[np.uint8], starts: NDArray[np.int64], hashes: NDArray[np.uint64]) -> None:
    for n in range(hashes.shape[0]):
        hashes[n] = _hash_text(data, starts[n], starts[n + 1])
