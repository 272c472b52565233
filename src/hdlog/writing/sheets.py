"""Facts of one predicate on their way out, whoever has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hdlog.program.model import Predicate
from hdlog.reading.tables import HOLDS, IRIS, KIND, PREDICATE, STRINGS
from hdlog.writing.values import INTEGERS, TEXTS, column_type, convert_column, plain_texts

Columns = list[pa.Array]
"""A column of integers has numbers of 64 bits, any other N-Triples terms as large strings, encoded by a dictionary that has each of them once."""


_BATCH = 1 << 20
"""Rows that are written at once."""


@dataclass
class Sheet:
    predicate: Predicate
    rows: int
    decode: Callable[[], Columns]
    names: tuple[str, ...] = ()
    """of the columns, as they are declared"""

    def batches(self) -> Iterator[Columns]:
        """The columns, some rows at a time; in all of them a column has the same type, and the same dictionary."""
        columns = self.decode()
        if "_profiles" not in vars(self):
            self._profiles = list(map(_profile, columns))
        for start in range(0, self.rows if columns else min(1, self.rows), _BATCH):
            yield [column.slice(start, _BATCH) for column in columns]

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
        return list(map(_profile, self.decode()))

    def make_tables(self) -> Iterator[pa.Table]:
        """Batches of values, as every tool knows them."""
        convert = _Once(_values)
        for columns in self.batches():
            values = [convert(i, c, t) for i, (c, t) in enumerate(zip(columns, self.types, strict=True))]
            yield pa.table(values, schema=self.schema)

    def make_texts(self) -> Iterator[Columns]:
        """Batches of numbers, and of texts, encoded by a dictionary: IRIs, lexical forms."""
        convert = _Once(lambda texts, _: plain_texts(texts))
        for columns in self.batches():
            yield [convert(i, column, None) for i, column in enumerate(columns)]


class _Once:
    """Columns with other values in their dictionaries, each dictionary converted once."""

    def __init__(self, convert: Callable[[pa.Array, Any], pa.Array]) -> None:
        self._convert = convert
        self._made: dict[int, pa.Array] = {}

    def __call__(self, number: int, column: pa.Array, kind: pa.DataType | None) -> pa.Array:
        if column.type == INTEGERS:
            return column
        if number not in self._made:
            self._made[number] = self._convert(column.dictionary, kind)
        values = self._made[number]
        if kind is not None:
            return values.take(column.indices)
        return pa.DictionaryArray.from_arrays(column.indices, values)


def _profile(column: pa.Array) -> tuple[pa.DataType, str]:
    if column.type == INTEGERS:
        return INTEGERS, ""
    texts = column.dictionary
    kind = column_type(texts)
    if kind == TEXTS:
        if pc.all(pc.starts_with(texts, "<")).as_py():
            return TEXTS, IRIS
        if pc.all(pc.and_(pc.starts_with(texts, '"'), pc.ends_with(texts, '"'))).as_py():
            return TEXTS, STRINGS
    return kind, ""


def _values(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    return convert_column(texts, kind).cast(kind)
