"""The compiled loops that read facts: bytes of N-Triples into places of terms, and terms into numbers.

Each releases the GIL and has one explicit signature, so that everything is compiled once and kept on disk (hdlog/compiling.py); they allocate nothing.
`tests/unit/test_reading.py` has a naive twin for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.compiling import inner, kernel
from hdlog.program.functions import INTEGER_TYPES
from hdlog.program.terms import RDF, XSD, XSD_STRING
from hdlog.reading.identifiers import INTEGER_LIMIT, INTEGER_MARK, INTEGERS

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Slots = NDArray[np.uint64]

_BYTES = "Array(u1, 1, 'C', readonly=True)"
_PLACES = "Array(i8, 1, 'C', readonly=True)"
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS = b"0123456789"
_HOST = _LETTERS + _DIGITS + b"-._~!$&'()*+,;="
LETTER, DIGIT, SCHEME, HOST, IRI, LABEL, STRING, HEX, ESCAPE, RARE_ESCAPE, AFTER_HOST = (
    1 << n for n in range(11)
)
"""What a byte can be part of. Those of an IRI are the ones that stand for themselves in any part behind the host. Where
literals are written the one canonical way, only an ESCAPE comes after a backslash."""


def _classes() -> NDArray[np.uint16]:
    classes = np.zeros(256, np.uint16)
    for kind, members in (
        (LETTER, _LETTERS),
        (DIGIT, _DIGITS),
        (SCHEME, _LETTERS + _DIGITS + b"+-."),
        (HOST, _HOST),
        (IRI, _HOST + b":@/?"),
        (LABEL, _LETTERS + _DIGITS + b"_-."),
        (STRING, bytes(set(range(0x80)) - set(b'"\\\n\r'))),
        (AFTER_HOST, b"/?#>"),
        (HEX, b"0123456789abcdefABCDEF"),
        (ESCAPE, b'\\"nrt'),
        (RARE_ESCAPE, b"bf'"),
    ):
        classes[list(members)] |= np.uint16(kind)
    return classes


def _constant(text: str) -> Bytes:
    return np.frombuffer(text.encode(), np.uint8)


_HALF = np.uint64(0xFFFFFFFF)
_PRIME, _FACTOR = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F)
_ONES, _TOPS, _SPACES, _QUOTES, _BACKSLASHES = (
    np.uint64(0x0101010101010101 * byte) for byte in (1, 0x80, 0x20, 0x22, 0x5C)
)
"""Eight times the same byte."""
_TWO_QUOTES = np.uint64(0x2222)
_AHEAD = 64
"""Terms that are looked up at once."""
_WRITTEN_SO, _REPEATED, _NUMBERED = (np.uint64(1 << n) for n in (32, 33, 34))
"""Marks of terms: written the one way they are written, the same as the one before, and integers, which have an id of their own."""
_CLASSES = _classes()
_INTEGER_MARK = _constant(INTEGER_MARK)
_STRING_MARK = _constant(f'"^^<{XSD_STRING}>')
_RDF_MARK = _constant(f"^^<{RDF}")
_XSD_MARK = _constant(f'"^^<{XSD}')
_DOUBLE_NAME = _constant("double")
_INTEGERS = sorted((t.removeprefix(XSD) for t in INTEGER_TYPES), key=lambda t: (t != "integer", t))
_INTEGER_LENGTHS = np.array([len(name) for name in _INTEGERS])
_INTEGER_NAMES = np.array([list(name.encode().ljust(_INTEGER_LENGTHS.max())) for name in _INTEGERS], np.uint8)
_MOST = np.uint64(1 << 63)
OTHER, INTEGER, DOUBLE, PLAIN = 0, 1, 2, 3
"""Kinds of terms: with a value of 64 bits, or plain: equal by value just when equal as terms."""
_TAB, _LF, _CR, _SPACE, _QUOTE, _HASH, _PERCENT, _MINUS, _DOT, _SLASH, _ZERO = b'\t\n\r "#%-./0'
_COLON, _LESS, _GREATER, _AT, _LARGE_U, _BACKSLASH, _CARET, _UNDERSCORE, _SMALL_U = b":<>@U\\^_u"
_PLUS, _SMALL_E = b"+e"
_APOSTROPHE, _SMALL_B, _SMALL_N, _SMALL_R, _SMALL_T = b"'bnrt"


@inner(f"i8({_BYTES}, i8, i8)")
def _character(data: Bytes, i: int, end: int) -> Any:
    """The code point of more than one byte that begins here, or 0 if these bytes are not UTF-8."""
    first = np.int64(data[i])
    if 0xC2 <= first < 0xE0:
        length, point = 2, first & 0x1F
    elif 0xE0 <= first < 0xF0:
        length, point = 3, first & 0x0F
    elif 0xF0 <= first < 0xF5:
        length, point = 4, first & 0x07
    else:
        return 0
    if i + length > end:
        return 0
    for j in range(i + 1, i + length):
        if data[j] & 0xC0 != 0x80:
            return 0
        point = (point << 6) | (np.int64(data[j]) & 0x3F)
    if length == 3 and (point < 0x800 or 0xD800 <= point < 0xE000):
        return 0
    return 0 if length == 4 and not 0x10000 <= point < 0x110000 else point


@inner("i8(i8)")
def _width(point: int) -> int:
    """How many bytes a code point above 127 takes in UTF-8."""
    return 2 if point < 0x800 else 3 if point < 0x10000 else 4


@inner(f"i8({_BYTES}, i8, i8)")
def _iri(data: Bytes, i: int, end: int) -> int:
    """The end of the plain absolute IRI that begins here with its angle bracket, or -1."""
    i += 1
    if i >= end or not _CLASSES[data[i]] & LETTER:
        return -1
    while i < end and _CLASSES[data[i]] & SCHEME:
        i += 1
    if i >= end or data[i] != _COLON:
        return -1
    i += 1
    if i + 1 < end and data[i] == _SLASH and data[i + 1] == _SLASH:
        i += 2
        while i < end and _CLASSES[data[i]] & HOST:
            i += 1
        if i < end and data[i] == _COLON:
            i += 1
            while i < end and _CLASSES[data[i]] & DIGIT:
                i += 1
        # Users, IP addresses and host names not in ASCII are left to others.
        if i < end and not _CLASSES[data[i]] & AFTER_HOST:
            return -1
    fragment = False
    while i < end:
        byte = data[i]
        if _CLASSES[byte] & IRI:
            i += 1
        elif byte == _GREATER:
            return i + 1
        elif byte == _HASH and not fragment:
            fragment = True
            i += 1
        elif byte == _PERCENT and i + 2 < end and _CLASSES[data[i + 1]] & _CLASSES[data[i + 2]] & HEX:
            i += 3
        elif byte >= 0x80:
            point = _character(data, i, end)
            if not (0xA0 <= point < 0xD800 or 0xF900 <= point < 0xFDD0 or 0xFDF0 <= point < 0xFFF0):
                return -1
            i += _width(point)
        else:
            return -1
    return -1


@inner(f"i8({_BYTES}, i8, i8)")
def _blank(data: Bytes, i: int, end: int) -> int:
    """The end of the plain blank node that begins here, or -1."""
    i += 2
    if i >= end or data[i - 1] != _COLON or not _CLASSES[data[i]] & LABEL:
        return -1
    if data[i] == _MINUS or data[i] == _DOT:
        return -1
    while i < end and _CLASSES[data[i]] & LABEL:
        i += 1
    if i < end and data[i] >= 0x80:
        return -1
    while data[i - 1] == _DOT:
        i -= 1
    return i


@inner(f"i8({_BYTES}, i8, i8)")
def _tag(data: Bytes, i: int, end: int) -> int:
    """The end of a language tag that is a language, a script if any, and a region if any; or -1.

    `i` is behind the `@`. Other tags that are fine are rare.
    """
    part = 0
    while True:
        start = i
        letters = True
        while i < end and _CLASSES[data[i]] & (LETTER | DIGIT):
            letters = letters and _CLASSES[data[i]] & LETTER != 0
            i += 1
        length = i - start
        if part == 0 and letters and 2 <= length <= 3:
            part = 1
        elif part == 1 and letters and length == 4:
            part = 2
        elif (part == 1 or part == 2) and letters and length == 2:
            part = 3
        else:
            return -1
        if i >= end or data[i] != _MINUS:
            return i
        i += 1


@inner(f"b1({_BYTES}, i8, i8, {_BYTES})")
def _says(data: Bytes, i: int, end: int, text: Bytes) -> bool:
    """Whether the text stands here."""
    if i < 0 or i + text.shape[0] > end:
        return False
    j = text.shape[0]
    while j > 0 and data[i + j - 1] == text[j - 1]:
        j -= 1
    return bool(j == 0)


@inner(f"i8({_BYTES}, i8, i8)")
def _decode_escape(data: Bytes, i: int, end: int) -> Any:
    """The code point that hexadecimal digits behind a `\\u` or `\\U` stand for, or -1; `i` is where the letter is."""
    digits = 4 if data[i] == _SMALL_U else 8
    if i + digits >= end:
        return -1
    point: Any = 0
    for j in range(i + 1, i + 1 + digits):
        if not _CLASSES[data[j]] & HEX:
            return -1
        digit = np.int64(data[j])
        point = point * 16 + (digit - _ZERO if digit < _AT else (digit & 7) + 9)
    return -1 if 0xD800 <= point < 0xE000 or point >= 0x110000 else point


@inner(f"i8({_BYTES}, i8, i8)")
def _literal(data: Bytes, i: int, end: int) -> int:
    """The end of the literal that begins here, if it is plain, or -1."""
    i += 1
    while i < end and data[i] != _QUOTE:
        byte = data[i]
        if _CLASSES[byte] & STRING:
            i += 1
        elif byte >= 0x80:
            point = _character(data, i, end)
            if point == 0:
                return -1
            i += _width(point)
        elif byte == _BACKSLASH and i + 1 < end and _CLASSES[data[i + 1]] & (ESCAPE | RARE_ESCAPE):
            i += 2
        elif byte == _BACKSLASH and i + 1 < end and (data[i + 1] == _SMALL_U or data[i + 1] == _LARGE_U):
            if _decode_escape(data, i + 1, end) < 0:
                return -1
            i += 6 if data[i + 1] == _SMALL_U else 10
        else:
            return -1
    i += 1
    if i >= end:
        return -1
    if data[i] == _AT:
        return _tag(data, i + 1, end)
    if data[i] == _CARET:
        # rdf:langString and its like need a second look.
        if i + 3 >= end or data[i + 1] != _CARET or data[i + 2] != _LESS or _says(data, i, end, _RDF_MARK):
            return -1
        return _iri(data, i + 2, end)
    return i


@inner(f"i8({_BYTES}, i8, i8)")
def _blanks(data: Bytes, i: int, end: int) -> int:
    """The end of the spaces and tabs that begin here."""
    while i < end and (data[i] == _SPACE or data[i] == _TAB):
        i += 1
    return i


@inner(f"i8({_BYTES}, i8, i8)")
def _rest(data: Bytes, i: int, end: int) -> int:
    """Where the next line begins, if nothing but a comment is left of this one, or -1."""
    i = _blanks(data, i, end)
    if i < end and data[i] == _HASH:
        while i < end and data[i] != _LF and data[i] != _CR:
            i += 1
    if i < end and data[i] == _CR:
        i += 1
    if i >= end:
        return i
    return i + 1 if data[i] == _LF else -1


@inner(f"i8({_BYTES}, i8, i8, b1)")
def _term(data: Bytes, i: int, end: int, literals: bool) -> int:
    """The end of the plain term that begins here, or -1."""
    if i >= end:
        return -1
    if data[i] == _LESS:
        return _iri(data, i, end)
    if data[i] == _UNDERSCORE:
        return _blank(data, i, end)
    return _literal(data, i, end) if literals and data[i] == _QUOTE else -1


@inner(f"u8({_BYTES}, i8)")
def _word(data: Bytes, at: int) -> Any:
    """Eight bytes as a number: one load, once the compiler is through with it."""
    i = np.uint64(at)
    word = np.uint64(0)
    for j in range(8):
        word |= np.uint64(data[i + np.uint64(j)]) << np.uint64(8 * j)
    return word


@inner(f"i8({_BYTES}, i8, i8, u1[::1], i8)")
def copy(data: Bytes, low: int, high: int, out: Bytes, at: int) -> int:
    """Copy what stands between two places; where it ends. Places that cannot be below zero make this one instruction for many bytes."""
    source, target = np.uint64(low), np.uint64(at)
    for j in range(high - low):
        out[target + np.uint64(j)] = data[source + np.uint64(j)]
    return at + high - low


@inner(f"b1({_BYTES}, i8, {_BYTES}, i8, i8)")
def _is_same(data: Bytes, low: int, others: Bytes, other: int, length: int) -> bool:
    """Whether as many bytes are the same in two places."""
    if length < 8:
        j = 0
        while j < length and data[low + j] == others[other + j]:
            j += 1
        return j == length
    for j in range(0, length - 8, 8):
        if _word(data, low + j) != _word(others, other + j):
            return False
    return bool(_word(data, low + length - 8) == _word(others, other + length - 8))


@inner(f"i8({_BYTES}, i8, i8, b1, i8[:, ::1], i8)")
def _statement(data: Bytes, i: int, end: int, quads: bool, places: Places, row: int) -> int:
    """Where the next line begins, if a plain triple or quad begins here, or -1; its terms' places go to a row."""
    after = -1
    if row > 0:
        # Most subjects are that of the line before.
        length = places[1, row - 1] - places[0, row - 1]
        if (
            i + length < end
            and data[i + length] == _SPACE
            and _is_same(data, places[0, row - 1], data, i, length)
        ):
            after = i + length
    if after < 0:
        after = _term(data, i, end, False)
    places[0, row], places[1, row] = i, after
    if after < 0:
        return -1
    for place in (2, 4):
        i = _blanks(data, after, end)
        if i == after or (place == 2 and i < end and data[i] != _LESS):
            return -1
        after = _term(data, i, end, place == 4)
        if after < 0:
            return -1
        places[place, row], places[place + 1, row] = i, after
    i = _blanks(data, after, end)
    if quads:
        places[6, row] = places[7, row] = i
        if i > after and i < end and data[i] != _DOT:
            i = _term(data, i, end, False)
            if i < 0:
                return -1
            places[7, row] = i
            i = _blanks(data, i, end)
    if i >= end or data[i] != _DOT:
        return -1
    return _rest(data, i + 1, end)


@kernel(f"UniTuple(i8, 2)({_BYTES}, b1, i8[:, ::1], i8[:, ::1])")
def scan(data: Bytes, quads: bool, places: Places, others: Places) -> tuple[int, int]:
    """Find the terms of lines of N-Triples or N-Quads; how many triples there are, and how many lines that are not plain.

    `places` gets begin and end of subject, predicate and object of each triple, and of its graph, of which both are the same in the default
    graph; `others` begin and end of each
    line that is malformed, or that needs a closer look: escapes or users in IRIs, tags with variants. Both have a column
    for each line. Everything in `places` is well-formed.
    """
    end = data.shape[0]
    rows = unclear = i = 0
    while i < end:
        start = _blanks(data, i, end)
        after = _rest(data, start, end)
        if after < 0:
            after = _statement(data, start, end, quads, places, rows)
            rows += after >= 0
        if after < 0:
            after = start
            while after < end and data[after] != _LF:
                after += 1
            others[0, unclear], others[1, unclear] = i, after
            unclear += 1
            after += 1
        i = after
    return rows, unclear


@inner(f"i8({_BYTES}, i8, i8)")
def _parse_integer(data: Bytes, low: int, high: int) -> Any:
    """The id of an integer in its shortest form, from its digits; 0 if it is none, or too large to be its own id."""
    i = low + (low < high and data[low] == _MINUS)
    if i >= high or high - i > 19 or (data[i] == _ZERO and high - low > 1):
        return 0
    value = np.uint64(0)
    for j in range(i, high):
        if not _CLASSES[data[j]] & DIGIT:
            return 0
        value = value * np.uint64(10) + np.uint64(data[j] - _ZERO)
    if value >= np.uint64(INTEGER_LIMIT):
        return 0
    return INTEGERS + (np.int64(value) if i == low else -np.int64(value))


@inner(f"i8({_BYTES}, i8, i8)")
def _integer(data: Bytes, low: int, high: int) -> Any:
    """The id of a literal that is an integer in its shortest form, or 0."""
    quote = high - _INTEGER_MARK.shape[0]
    return _parse_integer(data, low + 1, quote) if _says(data, quote, high, _INTEGER_MARK) else 0


def integers(data: Bytes, begins: Places, ends: Places, digits: int) -> Places:
    """The id of each text that is an integer in its shortest form, of at most so many digits; 0 for others."""
    ids = np.zeros(len(begins), np.int64)
    _integers(data, begins, ends, digits, ids)
    return ids


@kernel(f"void({_BYTES}, {_PLACES}, {_PLACES}, i8, i8[::1])")
def _integers(data: Bytes, begins: Places, ends: Places, digits: int, ids: Places) -> None:
    for n in range(ids.shape[0]):
        low, high = begins[n], ends[n]
        if low < high and high - low - (data[low] == _MINUS) <= digits:
            ids[n] = _parse_integer(data, low, high)


@kernel(f"i8({_BYTES}, i8, i8[::1])")
def find_records(data: Bytes, delimiter: int, starts: Places) -> int:
    """Write where each record of a table with quotes begins, and where the last ends; how many there are.

    A quote at the beginning of a field opens it, and ends at the next one that is not doubled; line ends in between are part of the value. The
    last record is left open if its quote is: then the place after the last is -1.
    """
    count = 0
    field = quoted = False
    begin = True  # of a record
    i, n = 0, data.shape[0]
    while i < n:
        if begin:
            starts[count] = i
            count += 1
            begin, field = False, True
        byte = data[i]
        if quoted:
            if byte == _QUOTE:
                if i + 1 < n and data[i + 1] == _QUOTE:
                    i += 1
                else:
                    quoted = False
        elif byte == _QUOTE and field:
            quoted, field = True, False
        elif byte == _LF:
            begin = True
        else:
            field = byte == delimiter
        i += 1
    starts[count] = -1 if quoted else n
    return count


@kernel(f"UniTuple(i8, 2)({_BYTES}, i8, b1, i8[:, ::1], i8[:, ::1], i8[:, ::1])", work=0)
def find_fields(
    data: Bytes, delimiter: int, empty: bool, begins: Places, ends: Places, ragged: Places
) -> tuple[int, int]:
    """Write where each field of lines without quotes begins and ends, a row for each column; how many lines have as many fields as there are columns,
    and how many have not.

    The number of each of the latter among all lines, and its fields, go to `ragged`, as far as there is room. Empty lines count if `empty`. The last line ends
    with a line feed.
    """
    width, n = begins.shape[0], data.shape[0]
    delimiters, feeds = np.uint64(delimiter) * _ONES, np.uint64(_LF) * _ONES
    good = bad = field = begin = j = 0
    while j < n:
        if j + 8 <= n:
            word = _word(data, j)
            marked = _less(word ^ delimiters, _ONES) | _less(word ^ feeds, _ONES)
            if not marked:
                j += 8
                continue
            # The lowest mark is right; its byte is found by counting those below it.
            lowest = marked & (~marked + np.uint64(1))
            below = ((lowest - np.uint64(1)) & _ONES) * _ONES
            j += np.int64(below >> np.uint64(56)) - 1  # type: ignore[assignment]
        byte = data[j]
        if byte in (_LF, delimiter):
            end = j
            if byte == _LF and end > begin and data[end - 1] == _CR:
                end -= 1
            if field < width:
                begins[field, good], ends[field, good] = begin, end
            field += 1
            if byte == _LF:
                if field > 1 or end > begin or empty:
                    if field == width:
                        good += 1
                    else:
                        if bad < ragged.shape[1]:
                            ragged[0, bad], ragged[1, bad] = good + bad, field
                        bad += 1
                field = 0
            begin = j + 1
        j += 1
    return good, bad


@inner("i8(i8, u1[::1], i8)")
def _put(point: int, texts: Bytes, at: int) -> int:
    """Write a character of a literal the one way it is written; the end of it."""
    letter = 0
    if point in (_BACKSLASH, _QUOTE):
        letter = point
    elif point == _LF:
        letter = _SMALL_N
    elif point == _CR:
        letter = _SMALL_R
    elif point == _TAB:
        letter = _SMALL_T
    if letter:
        texts[at], texts[at + 1] = _BACKSLASH, letter
        return at + 2
    if point < 0x80:
        texts[at] = point
        return at + 1
    width = _width(point)
    for j in range(width - 1, 0, -1):
        texts[at + j] = 0x80 | (point & 0x3F)
        point >>= 6
    texts[at] = ((0xF00 >> width) & 0xFF) | point
    return at + width


@inner(f"i8({_BYTES}, i8, i8, u1[::1], i8)")
def _copy_string(data: Bytes, low: int, high: int, texts: Bytes, at: int) -> int:
    """Write what stands between the quotes of a literal the one way it is written; the end of it."""
    while low < high:
        byte = data[low]
        if byte == _TAB:
            at = _put(_TAB, texts, at)
            low += 1
        elif byte != _BACKSLASH:
            texts[at] = byte
            at += 1
            low += 1
        elif _CLASSES[data[low + 1]] & ESCAPE:
            texts[at], texts[at + 1] = byte, data[low + 1]
            at += 2
            low += 2
        elif _CLASSES[data[low + 1]] & RARE_ESCAPE:
            letter = data[low + 1]
            texts[at] = letter if letter == _APOSTROPHE else 0x08 if letter == _SMALL_B else 0x0C
            at += 1
            low += 2
        else:
            at = _put(_decode_escape(data, low + 1, high), texts, at)
            low += 6 if data[low + 1] == _SMALL_U else 10
    return at


@inner(f"i8({_BYTES}, i8, i8, u1[::1], i8)")
def _copy_literal(data: Bytes, low: int, high: int, texts: Bytes, at: int) -> int:
    """Write a literal the one way it is written: xsd:string goes without saying, tags are in lower case. Its end.

    It takes at most twice the room.
    """
    quote = high - 1
    while data[quote] != _QUOTE:
        quote -= 1
    texts[at] = _QUOTE
    at = _copy_string(data, low + 1, quote, texts, at + 1)
    if _says(data, quote, high, _STRING_MARK):
        high = quote + 1
    tag = quote + 1 < high and data[quote + 1] == _AT
    for j in range(quote, high):
        byte = data[j]
        texts[at] = byte | 0x20 if tag and _CLASSES[byte] & LETTER else byte
        at += 1
    return at


@inner(f"i8({_BYTES}, i8, i8, u1[::1], i8)")
def _quote(data: Bytes, low: int, high: int, texts: Bytes, at: int) -> int:
    """Write a string as a literal; its end. It takes at most twice the room, and quotes."""
    texts[at] = _QUOTE
    at += 1
    for j in range(low, high):
        byte = data[j]
        if byte < 0x80:
            at = _put(byte, texts, at)
        else:
            texts[at] = byte
            at += 1
    texts[at] = _QUOTE
    return at + 1


@inner("u8(u8, u8)")
def _less(word: Any, limit: Any) -> Any:
    """A word that is not 0 if one of its bytes is below a limit of at most 128, each byte of which is given."""
    return (word - limit) & ~word & _TOPS


@inner(f"b1({_BYTES}, i8, i8, b1)")
def is_special(data: Bytes, low: int, high: int, quotes: bool) -> bool:
    """Whether there is a control character or a backslash, or, if asked for, a quote."""
    if high - low < 8:
        for j in range(low, high):
            if data[j] < _SPACE or data[j] == _BACKSLASH or (quotes and data[j] == _QUOTE):
                return True
        return False
    marked = np.uint64(0)
    j = low
    while j < high:
        at = j if j + 8 <= high else high - 8
        word = _word(data, at)
        marked |= _less(word, _SPACES) | _less(word ^ _BACKSLASHES, _ONES)
        if quotes:
            marked |= _less(word ^ _QUOTES, _ONES)
        j += 8
    return bool(marked != np.uint64(0))


@inner(f"u8({_BYTES}, i8, i8, u8)")
def _hash(texts: Bytes, low: int, high: int, ends: Any) -> Any:
    """A hash of 32 bits of what stands between the first and the last byte of a text, and of these."""
    state = (np.uint64(high - low) ^ (ends << np.uint64(32))) * _PRIME
    if high - low < 8:
        for j in range(low, high):
            state = (state ^ np.uint64(texts[j])) * _FACTOR
    else:
        for j in range(low, high - 8, 8):
            state = (state ^ _word(texts, j)) * _FACTOR
            state ^= state >> np.uint64(32)
        state = (state ^ _word(texts, high - 8)) * _FACTOR
    state ^= state >> np.uint64(29)
    return (state * _PRIME) >> np.uint64(32)


@inner(f"u8({_BYTES}, i8, i8)")
def _hash_text(texts: Bytes, low: int, high: int) -> Any:
    ends = np.uint64(texts[low]) << np.uint64(8) | np.uint64(texts[high - 1])
    return _hash(texts, low + 1, high - 1, ends)


@inner(f"u8({_BYTES}, i8, i8, u8, u8[::1], {_BYTES}, i8[::1], i8)")
def _slot(
    data: Bytes, low: int, high: int, tag: Any, slots: Slots, texts: Bytes, starts: Places, bare: int
) -> Any:
    """The slot of the text that stands here, or the empty one where it belongs. A bare (1) one stands here without its quotes."""
    mask = np.uint64(slots.shape[0] - 1)
    slot = tag & mask
    length = high - low
    while slots[slot]:
        if slots[slot] >> np.uint64(32) == tag:
            known = np.int64(slots[slot] & _HALF) - 1
            start = starts[known]
            if starts[known + 1] - start == length + 2 * bare:
                if _is_same(data, low, texts, start + bare, length):
                    # Bare ones have a quote at either end, where others may have something else.
                    if not bare or (texts[start] == _QUOTE and texts[start + length + 1] == _QUOTE):
                        break
        slot = (slot + np.uint64(1)) & mask
    return slot


@inner(f"b1({_BYTES}, i8, i8)")
def _is_canonical(data: Bytes, low: int, high: int) -> bool:
    """Whether a term is surely written the one way it is written."""
    if data[low] != _QUOTE:
        return True
    if data[high - 1] != _QUOTE:
        if data[high - 1] != _GREATER or _says(data, high - _STRING_MARK.shape[0], high, _STRING_MARK):
            return False
    return not is_special(data, low + 1, high - 1, False)


@kernel(f"void({_BYTES}, {_PLACES}, {_PLACES}, b1, u8[::1], i8[::1])", work=1)
def mark_terms(data: Bytes, begins: Places, ends: Places, bare: bool, marks: Slots, ids: Places) -> None:
    """What is known of each of the terms in `data` before it is looked up: its hash, whether it is written the one way it is written, is the same as the
    one before, or is an integer in its shortest form. Those have their id then.

    Bare terms are strings without quotes and escapes.
    """
    for n in range(begins.shape[0]):
        low, high = begins[n], ends[n]
        if n > 0 and high - low == ends[n - 1] - begins[n - 1]:
            if _is_same(data, low, data, begins[n - 1], high - low):
                marks[n] = marks[n - 1] | _REPEATED
                ids[n] = ids[n - 1]
                continue
        if bare:
            is_plain = not is_special(data, low, high, True)
            mark = _hash(data, low, high, _TWO_QUOTES)
        else:
            if data[low] == _QUOTE:
                ids[n] = _integer(data, low, high)
                if ids[n]:
                    marks[n] = _NUMBERED
                    continue
            is_plain = _is_canonical(data, low, high)
            mark = _hash_text(data, low, high)
        marks[n] = mark | _WRITTEN_SO if is_plain else mark


@kernel(
    f"i8({_BYTES}, {_PLACES}, {_PLACES}, b1, Array(u8, 1, 'C', readonly=True), i8, u8[::1], u1[::1], i8[::1], i8[::1], i8[::1])",
    work=1,
)
def intern(
    data: Bytes, begins: Places, ends: Places, bare: bool, marks: Slots, done: int,
    slots: Slots, texts: Bytes, starts: Places, size: Places, ids: Places,
) -> int:  # fmt: skip
    """Give each of the terms in `data` from number `done` on an id; how many have one when the table is full.

    `mark_terms` has been there before. The id of an integer in its shortest form says its value; that of any other
    term is its place in the table. The table is `size[0]` texts, one behind the other, of which number n begins at `starts[n]`. A
    slot that is taken has the text's hash in its upper half and its number, plus one, in its lower half. The slots are a power of two.

    The slots of some terms are looked at before the first of them is looked up, then where the texts are that these name, then the texts: so
    they are in the cache by then, for a processor waits for several at once.
    """
    mask = np.uint64(slots.shape[0] - 1)
    seen = np.uint64(0)
    count = begins.shape[0]
    for first in range(done, count, _AHEAD):
        last_ahead = min(first + _AHEAD, count)
        for n in range(first, last_ahead):
            seen ^= slots[marks[n] & _HALF & mask]
        for n in range(first, last_ahead):
            entry = slots[marks[n] & _HALF & mask]
            if entry and entry >> np.uint64(32) == marks[n] & _HALF:
                seen ^= np.uint64(starts[np.int64(entry & _HALF) - 1])
        for n in range(first, last_ahead):
            entry = slots[marks[n] & _HALF & mask]
            if entry and entry >> np.uint64(32) == marks[n] & _HALF:
                seen ^= np.uint64(texts[starts[np.int64(entry & _HALF) - 1]])
        for n in range(first, last_ahead):
            if marks[n] & _NUMBERED:
                continue
            if marks[n] & _REPEATED:
                ids[n] = ids[n - 1]
                continue
            low, high = begins[n], ends[n]
            last = size[0]
            at = starts[last]
            room = at + 2 * (high - low) + 2 <= texts.shape[0]
            if 2 * last >= slots.shape[0] or last + 1 >= starts.shape[0] or not room:
                return n
            plain, tag = marks[n] & _WRITTEN_SO, marks[n] & _HALF
            if plain:
                slot = _slot(data, low, high, tag, slots, texts, starts, int(bare))
                stop = at + high - low + 2 * int(bare)
            else:
                if bare:
                    stop = _quote(data, low, high, texts, at)
                else:
                    stop = _copy_literal(data, low, high, texts, at)
                    ids[n] = _integer(texts, at, stop)
                    if ids[n]:
                        continue
                tag = _hash_text(texts, at, stop)
                slot = _slot(texts, at, stop, tag, slots, texts, starts, 0)
            if not slots[slot]:
                if plain:
                    if bare:
                        texts[at], texts[stop - 1] = _QUOTE, _QUOTE
                    copy(data, low, high, texts, at + int(bare))
                slots[slot] = (tag << np.uint64(32)) | np.uint64(last + 1)
                starts[last + 1] = stop
                size[0] = last + 1
            ids[n] = np.int64(slots[slot] & _HALF) - 1
    return count if seen >= np.uint64(0) else -1


@kernel(f"void({_BYTES}, {_PLACES}, {_PLACES}, b1, u8[::1], u1[::1], i8[::1], i8[::1], u1[::1])", work=1)
def look_up(
    data: Bytes, begins: Places, ends: Places, bare: bool,
    slots: Slots, texts: Bytes, starts: Places, ids: Places, scratch: Bytes,
) -> None:  # fmt: skip
    """The id of each term in `data` that a table has, or that says it itself; -1 for the others. The table is as in `intern`.

    `scratch` has room for twice the longest term, and two more.
    """
    for n in range(begins.shape[0]):
        low, high = begins[n], ends[n]
        if not bare and data[low] == _QUOTE:
            ids[n] = _integer(data, low, high)
            if ids[n]:
                continue
        if bare and not is_special(data, low, high, True):
            slot = _slot(data, low, high, _hash(data, low, high, _TWO_QUOTES), slots, texts, starts, 1)
        elif not bare and _is_canonical(data, low, high):
            slot = _slot(data, low, high, _hash_text(data, low, high), slots, texts, starts, 0)
        else:
            if bare:
                stop = _quote(data, low, high, scratch, 0)
            else:
                stop = _copy_literal(data, low, high, scratch, 0)
                ids[n] = _integer(scratch, 0, stop)
                if ids[n]:
                    continue
            slot = _slot(scratch, 0, stop, _hash_text(scratch, 0, stop), slots, texts, starts, 0)
        ids[n] = np.int64(slots[slot] & _HALF) - 1


@kernel("void(u8[::1], u8[::1])")
def move(slots: Slots, larger: Slots) -> None:
    """Fill a larger, empty table's slots from those of one."""
    mask = np.uint64(larger.shape[0] - 1)
    for entry in slots:
        if entry:
            slot = (entry >> np.uint64(32)) & mask
            while larger[slot]:
                slot = (slot + np.uint64(1)) & mask
            larger[slot] = entry


@inner(f"i8({_BYTES}, i8, i8)")
def _integer_type(data: Bytes, low: int, high: int) -> int:
    """Which of the integer types of XML Schema has this local name, or -1."""
    for n in range(_INTEGER_NAMES.shape[0]):
        length = _INTEGER_LENGTHS[n]
        if high - low == length and _says(data, low, high, _INTEGER_NAMES[n, :length]):
            return n
    return -1


@inner(f"b1({_BYTES}, i8, i8)")
def _is_double(data: Bytes, low: int, high: int) -> bool:
    """Whether these are the digits of a finite double: [+-] digits, a point among or around them, an exponent if any."""
    if low < high and (data[low] == _MINUS or data[low] == _PLUS):
        low += 1
    digits = points = 0
    while low < high and (_CLASSES[data[low]] & DIGIT or (data[low] == _DOT and points == 0)):
        points += data[low] == _DOT
        digits += data[low] != _DOT
        low += 1
    if digits == 0:
        return False
    if low == high:
        return True
    if data[low] | 0x20 != _SMALL_E:
        return False
    low += 1
    if low < high and (data[low] == _MINUS or data[low] == _PLUS):
        low += 1
    if low == high:
        return False
    while low < high and _CLASSES[data[low]] & DIGIT:
        low += 1
    return bool(low == high)


@kernel(f"void({_BYTES}, {_PLACES}, u1[::1], i8[::1], b1[::1])")
def classify(data: Bytes, starts: Places, kinds: Bytes, integers: Places, shortest: Any) -> None:
    """The kind of each term; for integers of 64 bits their value, and whether they are xsd:integer in the shortest form."""
    for n in range(starts.shape[0] - 1):
        low, high = starts[n], starts[n + 1]
        kinds[n], integers[n], shortest[n] = OTHER, 0, False
        if high == low or data[low] != _QUOTE or data[high - 1] == _QUOTE:
            kinds[n] = PLAIN
            continue
        quote = high - 1
        while data[quote] != _QUOTE:
            quote -= 1
        if not _says(data, quote, high, _XSD_MARK):
            continue
        name = quote + _XSD_MARK.shape[0]
        if _says(data, name, high - 1, _DOUBLE_NAME) and high - 1 - name == _DOUBLE_NAME.shape[0]:
            kinds[n] = DOUBLE if _is_double(data, low + 1, quote) else OTHER
            continue
        which = _integer_type(data, name, high - 1)
        if which < 0:
            continue
        i = low + 1
        signed = bool(i < quote and (data[i] == _MINUS or data[i] == _PLUS))
        i += signed
        if i >= quote or quote - i >= 25:
            continue
        value = np.uint64(0)
        fits = True
        for j in range(i, quote):
            digit = np.uint64(data[j]) - np.uint64(_ZERO)
            fits = bool(fits and digit < np.uint64(10) and value <= (_MOST - digit) // np.uint64(10))
            value = value * np.uint64(10) + digit
        negative = signed and data[low + 1] == _MINUS
        if not fits or (value == _MOST and not negative):
            continue
        kinds[n] = INTEGER
        integers[n] = np.int64(-np.int64(value)) if negative else np.int64(value)
        zeros = data[i] == _ZERO and (quote - i > 1 or signed)
        shortest[n] = which == 0 and not zeros and (not signed or negative)
