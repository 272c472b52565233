"""Keys in a hash table, with dense positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from hdlog.compiling import inner, kernel
from hdlog.engines.columnar.kernels import Ids, Keys


@inner("u8(u8)")
def _hash(key: Any) -> Any:
    key ^= key >> np.uint64(32)
    key *= np.uint64(0xD6E8FEB86659FD93)
    key ^= key >> np.uint64(32)
    key *= np.uint64(0xD6E8FEB86659FD93)
    key ^= key >> np.uint64(32)
    return key


@kernel("i8(u8[::1], u4[::1], u8[::1], i8, u4[::1], b1)", work=0)
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


@kernel("void(u8[::1], i8, u4[::1])")
def rehash(stored: Keys, size: int, slots: Ids) -> None:
    """Fill an empty, larger hash table."""
    mask = np.uint64(slots.shape[0] - 1)
    for i in range(size):
        at = _hash(stored[i]) & mask
        while slots[at] != 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = i + 1
