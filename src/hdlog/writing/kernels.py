"""The compiled loops that write facts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdlog.compiling import inner, kernel
from hdlog.reading.kernels import copy, is_special

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Codes = NDArray[np.int32]

_BYTES = "Array(u1, 1, 'C', readonly=True)"
_PLACES = "Array(i8, 1, 'C', readonly=True)"
_QUOTE, _LESS, _BACKSLASH = b'"<\\'
_ZERO, _MINUS = np.uint8(ord("0")), np.uint8(ord("-"))
_ESCAPED = np.zeros(256, np.uint8)
for _letter, _character in zip(b'tbnrf"\\', b'\t\b\n\r\f"\\', strict=True):
    _ESCAPED[_letter] = _character


def plain_texts(data: Bytes, starts: Places) -> tuple[Bytes, Places]:
    """For each of some canonical N-Triples terms the IRI, the lexical form, or the label: bytes, and where each begins."""
    offsets = np.zeros(len(starts), np.int64)
    texts = np.empty(starts[-1] - starts[0], np.uint8)
    return texts[: _plain_texts(data, starts, texts, offsets)], offsets


@kernel(f"i8({_BYTES}, {_PLACES}, u1[::1], i8[::1])")
def _plain_texts(data: Bytes, starts: Places, texts: Bytes, offsets: Places) -> int:
    count = starts.shape[0] - 1
    at = 0
    for n in range(count):
        low, high = starts[n], starts[n + 1]
        if low < high and data[low] == _LESS:
            at = copy(data, low + 1, high - 1, texts, at)
        elif low < high and data[low] == _QUOTE:
            high -= 1
            while data[high] != _QUOTE:
                high -= 1
            low += 1
            if not is_special(data, low, high, False):
                at = copy(data, low, high, texts, at)
                low = high
            while low < high:
                byte = data[low]
                if byte == _BACKSLASH:
                    low += 1
                    byte = _ESCAPED[data[low]]
                texts[at] = byte
                at += 1
                low += 1
        else:
            at = copy(data, low, high, texts, at)
        offsets[n + 1] = at
    return at


@kernel(f"i8({_BYTES}, {_BYTES})")
def count_bytes(data: Bytes, wanted: Bytes) -> int:
    """How often one of four bytes occurs."""
    a, b, c, d = wanted[0], wanted[1], wanted[2], wanted[3]
    total = 0
    for byte in data:
        total += (byte == a) | (byte == b) | (byte == c) | (byte == d)
    return total


@inner("i8(i8)")
def _count_digits(value: int) -> int:
    """How many characters a number takes."""
    rest = np.uint64(value) if value >= 0 else np.uint64(0) - np.uint64(value)
    digits = 1 if value >= 0 else 2
    while rest >= np.uint64(10):
        rest //= np.uint64(10)
        digits += 1
    return digits


@kernel("void(i8[::1], i8[::1], Array(i4, 1, 'C', readonly=True))")
def add_text_lengths(lengths: Places, starts: Places, codes: Codes) -> None:
    """Add to the length of each row that of the text it has, by its code."""
    for n in range(codes.shape[0]):
        lengths[n] += starts[codes[n] + 1] - starts[codes[n]]


@kernel("void(i8[::1], Array(i8, 1, 'C', readonly=True))")
def add_digit_lengths(lengths: Places, values: Places) -> None:
    """Likewise of a number."""
    for n in range(values.shape[0]):
        lengths[n] += _count_digits(values[n])


@kernel(f"void(u1[::1], i8[::1], {_BYTES}, i8[::1], Array(i4, 1, 'C', readonly=True), {_BYTES})")
def put_texts(out: Bytes, at: Places, data: Bytes, starts: Places, codes: Codes, ending: Bytes) -> None:
    """Write the text of each row where the row has come to, and what comes behind it."""
    for n in range(codes.shape[0]):
        place = copy(data, starts[codes[n]], starts[codes[n] + 1], out, at[n])
        at[n] = copy(ending, 0, ending.shape[0], out, place)


@kernel(f"void(u1[::1], i8[::1], Array(i8, 1, 'C', readonly=True), {_BYTES})")
def put_numbers(out: Bytes, at: Places, values: Places, ending: Bytes) -> None:
    """Likewise the digits of a number."""
    for n in range(values.shape[0]):
        value = values[n]
        rest = np.uint64(value) if value >= 0 else np.uint64(0) - np.uint64(value)
        end = at[n] + _count_digits(value)
        place = end
        while True:  # from behind
            place -= 1
            out[place] = _ZERO + np.uint8(rest % np.uint64(10))
            rest //= np.uint64(10)
            if not rest:
                break
        if value < 0:
            out[place - 1] = _MINUS
        at[n] = copy(ending, 0, ending.shape[0], out, end)
