"""Facts of the engine as terms, as Arrow, and as the tables people know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from hdlog.engines.encoding import Dictionary, Ids
from hdlog.program.functions import NoValue, number
from hdlog.program.ntriples import parse_term
from hdlog.program.terms import XSD_STRING, BlankNode, Constant, Iri, Literal


class FactTable:
    """Facts of one predicate; an Arrow table to every library that knows Arrow."""

    def __init__(
        self, dictionary: Dictionary, arity: int, rows: int, columns: Callable[[], Sequence[Ids]]
    ) -> None:
        self._dictionary = dictionary
        self._arity = arity
        self._rows = rows
        self._fetch = columns

    @cached_property
    def _columns(self) -> Sequence[Ids]:
        return self._fetch()

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Rows of plain Python values."""
        return (
            zip(*(column.to_pylist() for column in self.arrow.columns), strict=True)
            if self._arity
            else iter([()] * len(self))
        )

    def __repr__(self) -> str:
        return f"<{len(self):,} facts of {self._arity} arguments>"

    def rows(self) -> list[tuple[Constant, ...]]:
        """Rows of terms."""
        columns = [[parse_term(text) for text in texts] for texts in self.texts()]
        return list(zip(*columns, strict=True)) if columns else [()] * len(self)

    def texts(self) -> list[list[str]]:
        """Columns of N-Triples terms."""
        return [self._dictionary.texts(c) for c in self._columns]

    @cached_property
    def arrow(self) -> pa.Table:
        """Columns of integers, doubles, booleans or strings; mixed ones as strings."""
        columns = [_arrow_column(self._dictionary, c) for c in self._columns]
        return pa.table({f"c{i}": column for i, column in enumerate(columns)})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.arrow.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        return self.arrow.to_pandas()

    def to_polars(self) -> Any:
        import polars

        return polars.from_arrow(self.arrow)


def _arrow_column(dictionary: Dictionary, ids: Ids) -> pa.Array:
    integers = dictionary.integer_values(ids)
    if integers is not None and len(ids):
        return pa.array(integers)
    unique, inverse = np.unique(ids, return_inverse=True)
    terms = [parse_term(t) for t in dictionary.texts(unique)]
    values = [plain_value(t) for t in terms]
    if len({type(v) for v in values}) > 1:
        values = [plain_text(t) for t in terms]
    return pa.array(values, pa.string() if not values else None).take(pa.array(inverse))


def plain_value(term: Constant) -> int | float | bool | str:
    if isinstance(term, Literal) and term.datatype != XSD_STRING:
        if term.datatype.endswith("#boolean"):
            return term.lexical in ("true", "1")
        try:
            value = number(term)
            return value if isinstance(value, int) else float(value)
        except NoValue:
            pass
    return plain_text(term)


def plain_text(term: Constant) -> str:
    """What a table shows for a term: the IRI, the lexical form, the label."""
    match term:
        case Iri(value):
            return value
        case Literal(lexical):
            return lexical
        case BlankNode(label):
            return f"_:{label}"
    return str(term)
