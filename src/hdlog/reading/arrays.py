"""Texts as bytes, for compiled loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


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
