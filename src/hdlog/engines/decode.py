"""Facts of the engine as terms, as Arrow, and as the tables people know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from hdlog.engines.encoding import Dictionary, Ids, number_distinct
from hdlog.program.model import Predicate
from hdlog.program.ntriples import parse_term
from hdlog.program.terms import Constant
from hdlog.writing.sheets import Columns, Sheet
from hdlog.writing.values import column_type, convert_column, exact_value


class FactTable:
    """Facts of one predicate; an Arrow table to every library that knows Arrow.

    >>> from hdlog import Reasoner
    >>> facts = Reasoner('@decl age(who: symbol, years: number) . age["ann", 41] . age["bob", 7] .').facts("age")
    >>> facts
    <2 facts of 2 arguments>
    >>> sorted(facts)
    [('ann', 41), ('bob', 7)]
    >>> facts.arrow.column_names
    ['who', 'years']
    >>> len(facts.to_pandas())
    2
    """

    def __init__(
        self,
        dictionary: Dictionary,
        arity: int,
        rows: int,
        columns: Callable[[], Sequence[Ids]],
        names: Sequence[str] = (),
    ) -> None:
        self._dictionary = dictionary
        self._arity = arity
        self._rows = rows
        self._fetch = columns
        self.names = tuple(names) or tuple(f"c{i}" for i in range(arity))
        """of the columns: as they are declared, or c0, c1, ..."""

    @cached_property
    def _columns(self) -> Sequence[Ids]:
        return self._fetch()

    def hold(self) -> None:
        """Have the facts here, wherever they are: what they were read from may go."""
        assert len(self._columns) == self._arity

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Rows of Python values: numbers, strings, booleans, dates; terms where there is no such value.

        Given back as facts, they are the same facts.
        """
        if not self._arity:
            return iter([()] * len(self))
        return zip(*(self._python_values(ids) for ids in self._columns), strict=True)

    def _python_values(self, ids: Ids) -> list[Any]:
        for numbers in (self._dictionary.integer_values(ids), self._dictionary.double_values(ids)):
            if numbers is not None:
                return list(numbers.tolist())
        unique, inverse = number_distinct(ids)
        values = [exact_value(text) for text in self._dictionary.texts(unique)]
        return [values[i] for i in inverse.tolist()]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with its terms, and without the dictionary of the engine."""
        return _unpickle, (self.texts(), self._rows, self.names)

    def __repr__(self) -> str:
        return f"<{len(self):,} facts of {self._arity} arguments>"

    def with_names(self, names: Sequence[str]) -> FactTable:
        """The same facts, with names for the columns."""
        return FactTable(self._dictionary, self._arity, self._rows, lambda: self._columns, names)

    def rows(self) -> list[tuple[Constant, ...]]:
        """Rows of terms."""
        columns = [[parse_term(text) for text in texts] for texts in self.texts()]
        return list(zip(*columns, strict=True)) if columns else [()] * len(self)

    def texts(self) -> list[list[str]]:
        """Columns of N-Triples terms."""
        return [self._dictionary.texts(c) for c in self._columns]

    def ids(self) -> Sequence[Ids]:
        """Columns of the engine's ids."""
        return self._columns

    def column_of(self, ids: Ids) -> pa.Array:
        """Values of ids, of the type that all of them share."""
        return _arrow_column(self._dictionary, ids)

    def sheet(self, predicate: Predicate) -> Sheet:
        """The facts on their way to a file."""
        return Sheet(predicate, len(self), self._term_columns, self.names)

    def _term_columns(self) -> Columns:
        return [self._term_column(ids) for ids in self._columns]

    def _term_column(self, ids: Ids) -> pa.Array:
        integers = self._dictionary.integer_values(ids)
        if integers is not None:
            return pa.array(integers)
        distinct, codes = number_distinct(ids)
        return pa.DictionaryArray.from_arrays(pa.array(codes), self._dictionary.text_array(distinct))

    @cached_property
    def arrow(self) -> pa.Table:
        """Columns of the type that all their terms share: integers, doubles, dates, ...; otherwise of texts."""
        columns = [self.column_of(c) for c in self._columns]
        return pa.table(columns, names=list(self.names)) if columns else pa.table({})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.arrow.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        return self.arrow.to_pandas()

    def to_polars(self) -> Any:
        import polars

        return polars.from_arrow(self.arrow)


def _arrow_column(dictionary: Dictionary, ids: Ids) -> pa.Array:
    if not len(ids):
        return pa.array([], pa.string())
    for values in (dictionary.integer_values(ids), dictionary.double_values(ids)):
        if values is not None:
            return pa.array(values)
    unique, inverse = number_distinct(ids)
    texts = dictionary.text_array(unique)
    kind = column_type(texts)
    return convert_column(texts, kind).cast(kind).take(pa.array(inverse))


def _unpickle(texts: list[list[str]], rows: int, names: Sequence[str]) -> FactTable:
    from hdlog.engines.columnar.dictionary import Dictionary as OwnDictionary

    dictionary = OwnDictionary()
    columns = [dictionary.encode(column) for column in texts]
    return FactTable(dictionary, len(texts), rows, lambda: columns, names)
