"""Into which bucket of a store's dictionary a term belongs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdlog.compiling import kernel
from hdlog.reading.term_table import string_bytes

_BYTES = "Array(u1, 1, 'C', readonly=True)"
_PLACES = "Array(i8, 1, 'C', readonly=True)"


@kernel(f"u8[::1]({_BYTES}, {_PLACES})")
def hash_texts(data: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.uint64]:
    """FNV-1a with a last mix. Stores rest on it: another function here would lose their terms."""
    hashes = np.empty(starts.shape[0] - 1, np.uint64)
    for n in range(hashes.shape[0]):
        state = np.uint64(0xCBF29CE484222325)
        for i in range(starts[n], starts[n + 1]):
            state = (state ^ np.uint64(data[i])) * np.uint64(0x100000001B3)
        hashes[n] = state ^ (state >> np.uint64(31))
    return hashes


def buckets_of(texts: pa.Array, buckets: int) -> NDArray[np.int64]:
    if buckets == 1:
        return np.zeros(len(texts), np.int64)
    data, starts = string_bytes(texts)
    return (hash_texts(data, starts) % np.uint64(buckets)).astype(np.int64)
