"""Texts as bytes, for compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Fields:
    """A column of values that stand somewhere among some bytes."""

    data: Bytes
    begins: Places
    ends: Places
    is_text: bool
    """whether all bytes are known to be UTF-8"""

    def __len__(self) -> int:
        return len(self.begins)

    def __getitem__(self, row: int) -> bytes:
        return self.data[self.begins[row] : self.ends[row]].tobytes()

    def array(self, chosen: NDArray[np.bool_] | None = None) -> pa.Array:
        """The values, or some of them, one behind the other."""
        begins, ends = (
            (self.begins, self.ends) if chosen is None else (self.begins[chosen], self.ends[chosen])
        )
        offsets = np.zeros(len(begins) + 1, np.int64)
        np.cumsum(ends - begins, out=offsets[1:])
        places = np.repeat(begins - offsets[:-1], ends - begins) + np.arange(offsets[-1])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data[places])]
        return pa.Array.from_buffers(pa.large_binary(), len(begins), buffers)


def list_bytes(texts: Sequence[str]) -> tuple[Bytes, Places]:
    """The bytes of some texts, and where each begins. Arrow would look whether they are of pandas, and import it for that."""
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


def string_bytes(array: pa.Array) -> tuple[Bytes, Places]:
    """The bytes of an array of strings, and where each begins and the last ends."""
    kind = (
        np.int64 if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type) else np.int32
    )
    _, offsets, data = array.buffers()
    if not len(array) or offsets is None:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    places = np.frombuffer(offsets, kind)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data or b"", np.uint8), places.astype(np.int64)
