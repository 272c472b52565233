"""What engines have in common where facts come in and go out: terms, and the numbers they work with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdlog.program.model import Predicate
from hdlog.program.terms import Constant
from hdlog.reading.chunks import Chunk

N = TypeVar("N", bound=np.generic)
Ids = NDArray[Any]
"""What terms are to an engine: numbers of 32 or 64 bits."""


class Dictionary(Protocol):
    """Terms, as N-Triples texts, and their ids."""

    def encode(self, texts: Iterable[str] | pa.Array) -> Ids:
        """The id of each text; new texts get new ids."""

    def ids_of_shared(self, known: int) -> Any:
        """The ids of the first texts of the table that is shared, by number."""

    def translate(self, numbers: NDArray[np.int64], ids: Any) -> Ids:
        """Places among texts that have these ids, or ids of integers below zero, as ids."""

    def encode_terms(self, terms: Iterable[Constant]) -> Ids: ...

    def encode_integers(self, values: NDArray[np.int64]) -> Ids: ...

    def text(self, identifier: int) -> str: ...

    def texts(self, ids: Ids) -> list[str]: ...

    def text_array(self, ids: Ids) -> pa.Array:
        """The N-Triples text of each id, as large strings."""

    def integer_values(self, ids: Ids) -> NDArray[np.int64] | None:
        """The numbers that ids stand for, if all of them are integers of 64 bits in their shortest form."""

    def double_values(self, ids: Ids) -> NDArray[np.float64] | None:
        """The numbers that ids stand for, if all of them are finite doubles."""


class Encoder(Protocol):
    """The part of an engine that takes facts in."""

    @property
    def dictionary(self) -> Dictionary: ...

    def facts_from_columns(self, columns: Sequence[Ids], rows: int) -> Any:
        """Each row once."""


_SHORT = 10_000
"""Rows of a column that is translated together with others."""


_SPAN = 8
"""Ids of so small a range, in multiples of their number, are counted, not sorted."""


def number_distinct(ids: Ids) -> tuple[Ids, NDArray[np.int32]]:
    """The different ids, in order, and the place of each id among them."""
    span = int(ids.max(initial=0)) + 1 if ids.dtype == np.uint32 else 0
    if not 0 < span < _SPAN * len(ids):
        unique, inverse = np.unique(ids, return_inverse=True)
        return unique, inverse.astype(np.int32)
    is_there = np.zeros(span, np.bool_)
    is_there[ids] = True
    distinct = np.flatnonzero(is_there).astype(np.uint32)
    places = np.empty(span, np.int32)
    places[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, places[ids]


def cut(array: NDArray[N], lengths: Iterable[int]) -> Iterator[NDArray[N]]:
    """An array in pieces of these lengths; `np.split` takes microseconds for each."""
    ends = accumulate(lengths)
    start = 0
    for end in ends:
        yield array[start:end]
        start = end


def _translate(dictionary: Dictionary, columns: Sequence[NDArray[np.int64]], ids: Any) -> list[Ids]:
    short = [c for c in columns if len(c) < _SHORT]
    if len(short) < 2:
        return [dictionary.translate(c, ids) for c in columns]
    together = dictionary.translate(np.concatenate(short), ids)
    pieces = cut(together, map(len, short))
    return [next(pieces) if len(c) < _SHORT else dictionary.translate(c, ids) for c in columns]


def encode_chunks(encoder: Encoder, chunks: Iterable[Chunk]) -> dict[Predicate, Any]:
    """The facts of chunks, with ids of an engine, each once."""
    parts: dict[Predicate, list[list[Ids]]] = {}
    rows: dict[Predicate, int] = {}
    for chunk in chunks:
        if chunk.known is not None:
            ids = encoder.dictionary.ids_of_shared(chunk.known)
        else:
            ids = encoder.dictionary.encode(chunk.texts)
        translated = iter(_translate(encoder.dictionary, [c for cs in chunk.facts.values() for c in cs], ids))
        for predicate, columns in chunk.facts.items():
            parts.setdefault(predicate, []).append(list(islice(translated, len(columns))))
            rows[predicate] = rows.get(predicate, 0) + (len(columns[0]) if columns else 1)
    facts = {}
    for predicate, several in parts.items():
        joined = [np.concatenate(c) if len(c) > 1 else c[0] for c in zip(*several, strict=True)]
        facts[predicate] = encoder.facts_from_columns(joined, rows[predicate])
    return facts
