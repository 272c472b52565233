"""Keys, and their halves, which are ids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdlog.compiling import kernel
from hdlog.engines.columnar.kernels import Flags, Ids, Keys

Occurrences = NDArray[np.uint32]
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_FEW = 4096
"""Keys up to which numpy does as well as a loop that is yet to be loaded."""


def pack(left: Ids, right: Ids) -> Keys:
    """Two ids as one key."""
    if len(left) < _FEW and not _pack.is_compiled:
        return (left.astype(np.uint64) << _HALF) | right
    keys = np.empty(len(left), np.uint64)
    _pack(np.ascontiguousarray(left, np.uint32), np.ascontiguousarray(right, np.uint32), keys)
    return keys


@kernel("void(u4[::1], u4[::1], u8[::1])")
def _pack(left: Ids, right: Ids, keys: Keys) -> None:
    for i in range(keys.shape[0]):
        keys[i] = (np.uint64(left[i]) << np.uint64(32)) | np.uint64(right[i])


def unpack(keys: Keys) -> tuple[Ids, Ids]:
    if len(keys) < _FEW and not _unpack.is_compiled:
        return (keys >> _HALF).astype(np.uint32), (keys & _LOW).astype(np.uint32)
    left, right = np.empty(len(keys), np.uint32), np.empty(len(keys), np.uint32)
    _unpack(np.ascontiguousarray(keys), left, right)
    return left, right


@kernel("void(u8[::1], u4[::1], u4[::1])")
def _unpack(keys: Keys, left: Ids, right: Ids) -> None:
    for i in range(keys.shape[0]):
        left[i] = keys[i] >> np.uint64(32)
        right[i] = keys[i] & np.uint64(0xFFFFFFFF)


def largest_half(keys: Keys, shift: int) -> int:
    """The largest of the upper halves (32) or the lower ones (0); below zero if there are none."""
    return _largest_half(keys, shift) if len(keys) else -1


@kernel("i8(u8[::1], i8)")
def _largest_half(keys: Keys, shift: int) -> int:
    largest = np.uint64(0)
    for i in range(keys.shape[0]):
        largest = max(largest, (keys[i] >> np.uint64(shift)) & np.uint64(0xFFFFFFFF))
    return np.int64(largest)  # type: ignore[return-value]


def count_halves(keys: Keys, shift: int, ids: int) -> Occurrences:
    """How often each of the first ids is an upper half (32) or a lower one (0)."""
    occurrences = np.zeros(ids, np.uint32)
    _count_halves(keys, shift, occurrences)
    return occurrences


@kernel("void(u8[::1], i8, u4[::1])")
def _count_halves(keys: Keys, shift: int, occurrences: Occurrences) -> None:
    for i in range(keys.shape[0]):
        occurrences[(keys[i] >> np.uint64(shift)) & np.uint64(0xFFFFFFFF)] += 1


def count_distinct_halves(keys: Keys, shift: int, ids: int) -> int:
    """How many of the first ids are upper halves (32) or lower ones (0)."""
    return int(_count_distinct_halves(keys, shift, np.zeros(ids, np.uint8)))


@kernel("i8(u8[::1], i8, u1[::1])")
def _count_distinct_halves(keys: Keys, shift: int, marks: Flags) -> int:
    distinct = 0
    for i in range(keys.shape[0]):
        half = (keys[i] >> np.uint64(shift)) & np.uint64(0xFFFFFFFF)
        distinct += marks[half] == 0
        marks[half] = 1
    return distinct


def count_uppers(keys: Keys) -> int:
    """How many upper halves sorted keys have."""
    return int(_count_uppers(keys))


@kernel("i8(u8[::1])")
def _count_uppers(keys: Keys) -> int:
    distinct = 0
    for i in range(keys.shape[0]):
        distinct += i == 0 or keys[i] >> np.uint64(32) != keys[i - 1] >> np.uint64(32)
    return distinct
