"""Terms as 64-bit ids, the same in every store and on Spark.

An id follows from its term, so that nobody has to ask for it: an integer in its shortest form is its own id, that of any other term with a
text is a hash of the text, and that of a Skolem term a hash of its name and arguments. Hashes are Spark's `xxhash64`, cut to
62 bits. Two texts with the same hash are found when the second comes, and then the second has an id that a store notes
(docs/decisions/0011).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdlog.program.terms import XSD_INTEGER
from hdlog.reading.arrays import string_bytes
from hdlog.reading.hashing import P1, P2, P3, P4, P5, hash_texts

StoreIds = NDArray[np.int64]
INTEGERS = -(1 << 62)
"""The id of the integer 0; those of others lie around it."""
INTEGER_LIMIT = 1 << 61
"""Integers from here on, of either sign, have a text in the dictionary."""
SKOLEMS = 1 << 62
"""Ids from here on are Skolem terms; those from 0 on are hashes of texts."""
HASHED = SKOLEMS - 1
"""The bits of a hash that count."""
INTEGER_MARK = f'"^^<{XSD_INTEGER}>'


def text_ids(texts: pa.Array, clashes: Mapping[str, int] | None = None) -> StoreIds:
    """The ids of terms with a text, none of which is an integer in its shortest form or a Skolem term.

    `clashes` are texts that have other ids, because another text has their hash.
    """
    data, starts = string_bytes(texts)
    ids: StoreIds = (hash_texts(data, starts) & np.uint64(HASHED)).view(np.int64)
    if clashes:
        for text, identifier in clashes.items():
            for place in np.flatnonzero(ids == text_hash(text)).tolist():
                if texts[place].as_py() == text:
                    ids[place] = identifier
    return ids


def text_hash(text: str) -> int:
    return int(text_ids(pa.array([text]))[0])


def next_id(identifier: int) -> int:
    """What a text gets whose id is taken, and if that is taken as well, again."""
    return int(
        _hash_long(np.array([identifier], np.uint64), np.array([42], np.uint64))[0] & np.uint64(SKOLEMS - 1)
    )


def inline_integer(text: str) -> int | None:
    """The id of an N-Triples text that needs no place in the dictionary: an integer in its shortest form."""
    if not text.endswith(INTEGER_MARK):
        return None
    digits = text[1 : -len(INTEGER_MARK)]
    if not 0 < len(digits) < 21 or not digits.removeprefix("-").isdigit() or not digits.isascii():
        return None
    value = int(digits)
    return INTEGERS + value if str(value) == digits and abs(value) < INTEGER_LIMIT else None


def integer_text(identifier: int) -> str:
    return f'"{identifier - INTEGERS}{INTEGER_MARK}'


def name_number(name: str) -> int:
    """What stands for the name of a Skolem term in its hash."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little", signed=True)


def skolem_ids(name: str, arguments: Sequence[StoreIds], rows: int) -> StoreIds:
    """The ids of Skolem terms: Spark's `xxhash64` of name and arguments, cut to 62 bits."""
    state = np.full(rows, 42, np.uint64)
    for column in (np.full(rows, name_number(name)), np.full(rows, len(arguments)), *arguments):
        state = _hash_long(column.astype(np.int64).view(np.uint64), state)
    ids: StoreIds = (state & np.uint64(SKOLEMS - 1)).view(np.int64) | np.int64(SKOLEMS)
    return ids


def _hash_long(values: NDArray[np.uint64], seed: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """XXH64 of one 64-bit number."""
    state = seed + P5 + np.uint64(8)
    state ^= _rotate(values * P2, 31) * P1
    state = _rotate(state, 27) * P1 + P4
    state ^= state >> np.uint64(33)
    state *= P2
    state ^= state >> np.uint64(29)
    state *= P3
    state ^= state >> np.uint64(32)
    return state


def _rotate(values: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
