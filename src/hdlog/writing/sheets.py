"""Facts of one predicate on their way out, whoever has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from hdlog.program.model import Predicate
from hdlog.reading.tables import HOLDS, IRIS, KIND, PREDICATE, STRINGS
from hdlog.writing.values import INTEGERS, TEXTS, column_type, convert_column, plain_texts

Columns = list[pa.Array]
"""A column of integers has numbers of 64 bits, any other N-Triples terms as large strings."""


@dataclass
class Sheet:
    predicate: Predicate
    rows: int
    batches: Callable[[], Iterator[Columns]]
    names: tuple[str, ...] = ()
    """of the columns, as they are declared"""

    @property
    def headings(self) -> tuple[str, ...]:
        return self.names or tuple(f"c{i}" for i in range(self.predicate.arity))

    @property
    def types(self) -> list[pa.DataType]:
        """The type of each column."""
        return [kind for kind, _ in self._profiles]

    @property
    def schema(self) -> pa.Schema:
        """Names and types, and what a reader needs to know to find the same terms again."""
        fields = []
        for name, (kind, mark) in zip(self.headings, self._profiles, strict=True):
            fields.append(pa.field(name, kind, metadata={KIND: mark} if mark else None))
        metadata = {PREDICATE: self.predicate.name}
        return pa.schema(
            fields, metadata=metadata if fields else {**metadata, HOLDS: str(bool(self.rows)).lower()}
        )

    @property
    def is_exact(self) -> bool:
        """Whether values tell which terms they stand for."""
        return all(kind != TEXTS or mark for kind, mark in self._profiles)

    @cached_property
    def _profiles(self) -> list[tuple[pa.DataType, str]]:
        """The type of each column, and the kind of term that its texts stand for if they all do; from all its terms."""
        distinct: list[pa.Array | None] = [None] * self.predicate.arity
        numbers = [False] * self.predicate.arity
        for columns in self.batches():
            for i, column in enumerate(columns):
                if column.type == INTEGERS:
                    numbers[i] = True
                else:
                    known = distinct[i]
                    several = column.unique()
                    distinct[i] = several if known is None else pa.concat_arrays([known, several]).unique()
        return [_profile(texts, whole) for texts, whole in zip(distinct, numbers, strict=True)]

    def make_tables(self) -> Iterator[pa.Table]:
        """Batches of values, as every tool knows them."""
        for columns in self.batches():
            yield pa.table(
                [_values(c, t) for c, t in zip(columns, self.types, strict=True)], schema=self.schema
            )

    def make_texts(self) -> Iterator[Columns]:
        """Batches of texts: digits, IRIs, lexical forms."""
        for columns in self.batches():
            yield [_texts(column) for column in columns]


def _profile(texts: pa.Array | None, with_numbers: bool) -> tuple[pa.DataType, str]:
    if texts is None:
        return (INTEGERS, "") if with_numbers else (TEXTS, STRINGS)
    kind = column_type(texts)
    if with_numbers and kind != INTEGERS:
        return TEXTS, ""
    if kind == TEXTS:
        if pc.all(pc.starts_with(texts, "<")).as_py():
            return TEXTS, IRIS
        if pc.all(pc.and_(pc.starts_with(texts, '"'), pc.ends_with(texts, '"'))).as_py():
            return TEXTS, STRINGS
    return kind, ""


def _values(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == INTEGERS:
        return column if kind == INTEGERS else column.cast(kind)
    encoded = column.dictionary_encode()
    return convert_column(encoded.dictionary, kind).cast(kind).take(encoded.indices)


def _texts(column: pa.Array) -> pa.Array:
    if column.type == INTEGERS:
        return column.cast(pa.string()).cast(pa.large_string())
    return plain_texts(column)
