"""The compiled loops that write facts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdlog.compiling import kernel

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]

_BYTES = "Array(u1, 1, 'C', readonly=True)"
_PLACES = "Array(i8, 1, 'C', readonly=True)"
_QUOTE, _LESS, _BACKSLASH = b'"<\\'
_ESCAPED = np.zeros(256, np.uint8)
for _letter, _character in zip(b'tbnrf"\\', b'\t\b\n\r\f"\\', strict=True):
    _ESCAPED[_letter] = _character


@kernel(f"Tuple((u1[::1], i8[::1]))({_BYTES}, {_PLACES})")
def plain_texts(data: Bytes, starts: Places) -> tuple[Bytes, Places]:
    """For each of some canonical N-Triples terms the IRI, the lexical form, or the label: bytes, and where each begins."""
    count = starts.shape[0] - 1
    offsets = np.empty(count + 1, np.int64)
    offsets[0] = 0
    texts = np.empty(starts[count] - starts[0], np.uint8)
    at = 0
    for n in range(count):
        low, high = starts[n], starts[n + 1]
        if low < high and data[low] == _LESS:
            low, high = low + 1, high - 1
            texts[at : at + high - low] = data[low:high]
            at += high - low
        elif low < high and data[low] == _QUOTE:
            high -= 1
            while data[high] != _QUOTE:
                high -= 1
            low += 1
            while low < high:
                byte = data[low]
                if byte == _BACKSLASH:
                    low += 1
                    byte = _ESCAPED[data[low]]
                texts[at] = byte
                at += 1
                low += 1
        else:
            texts[at : at + high - low] = data[low:high]
            at += high - low
        offsets[n + 1] = at
    return texts[:at], offsets
