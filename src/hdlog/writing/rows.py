"""Columns into lines: texts and numbers of each row, one behind the other, without a text in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np
import pyarrow as pa

from hdlog.reading.arrays import string_bytes
from hdlog.writing import kernels
from hdlog.writing.kernels import Bytes, Codes, Places

_ROWS = 1 << 15
"""Rows that are put together at once: their lines fit a processor's cache."""


@dataclass(frozen=True)
class Numbers:
    values: Places

    def add_lengths(self, lengths: Places, low: int) -> None:
        kernels.add_digit_lengths(lengths, self.values[low : low + len(lengths)])

    def put(self, out: Bytes, at: Places, low: int, ending: Bytes) -> None:
        kernels.put_numbers(out, at, self.values[low : low + len(at)], ending)


@dataclass(frozen=True)
class Texts:
    """Texts by their codes."""

    data: Bytes
    starts: Places
    codes: Codes

    def add_lengths(self, lengths: Places, low: int) -> None:
        kernels.add_text_lengths(lengths, self.starts, self.codes[low : low + len(lengths)])

    def put(self, out: Bytes, at: Places, low: int, ending: Bytes) -> None:
        kernels.put_texts(out, at, self.data, self.starts, self.codes[low : low + len(at)], ending)


def _read(column: pa.Array) -> Numbers | Texts:
    if not pa.types.is_dictionary(column.type):
        return Numbers(column.to_numpy(zero_copy_only=False))
    data, starts = string_bytes(column.dictionary)
    return Texts(data, starts, column.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False))


def write_rows(out: IO[bytes], columns: Sequence[pa.Array], before: str, behind: Sequence[str]) -> None:
    """Write each row: what comes before it, and its values, each with what comes behind it.

    Columns are of integers, or of texts that are encoded by a dictionary.
    """
    for lines in _make_lines(columns, before.encode(), [text.encode() for text in behind]):
        out.write(lines.data)


def _make_lines(columns: Sequence[pa.Array], before: bytes, behind: Sequence[bytes]) -> Iterator[Bytes]:
    read = [_read(column) for column in columns]
    endings = [np.frombuffer(text, np.uint8) for text in behind]
    fixed = len(before) + sum(map(len, behind))
    for low in range(0, len(columns[0]), _ROWS):
        lengths = np.full(min(_ROWS, len(columns[0]) - low), fixed, np.int64)
        for column in read:
            column.add_lengths(lengths, low)
        at = np.cumsum(lengths) - lengths
        out = np.empty(int(lengths.sum()), np.uint8)
        for n, byte in enumerate(before):
            out[at + n] = byte
        at += len(before)
        for column, ending in zip(read, endings, strict=True):
            column.put(out, at, low, ending)
        yield out
