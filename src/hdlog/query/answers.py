"""Answers to a query, as rows, Arrow, pandas or polars; a value that is missing is None there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdlog.engines.decode import FactTable
from hdlog.engines.encoding import Dictionary, Ids
from hdlog.program.ntriples import parse_term, term_text
from hdlog.program.terms import UNBOUND, Constant
from hdlog.query.algebra import Selection
from hdlog.query.ordering import order_rows

_UNBOUND = term_text(UNBOUND)


class Answers(FactTable):
    """Rows over the names that a query asks for.

    >>> from hdlog import Reasoner
    >>> reasoner = Reasoner('edge[1, 2] . edge[2, 3] .')
    >>> answers = reasoner.query("?x, ?z <- edge[?x, ?y], edge[?y, ?z]")
    >>> answers
    <1 answer: x, z>
    >>> list(answers), answers.names
    ([(1, 3)], ('x', 'z'))
    """

    def __init__(
        self,
        dictionary: Dictionary,
        names: Sequence[str],
        rows: int,
        columns: Callable[[], Sequence[Ids]],
        uncertain: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(dictionary, len(names), rows, columns, names)
        self.names = tuple(names)
        self._uncertain = uncertain

    def __repr__(self) -> str:
        count = "1 answer" if len(self) == 1 else f"{len(self):,} answers"
        return f"<{count}: {', '.join(self.names)}>" if self.names else f"<{count}>"

    def __bool__(self) -> bool:
        """Whether there is an answer."""
        return len(self) > 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        if not self.names:
            return iter([()] * len(self))
        columns = []
        for name, ids in zip(self.names, self._columns, strict=True):
            values = self._python_values(ids)
            if name in self._uncertain:
                missing = self._is_missing(ids)
                values = [None if gone else value for value, gone in zip(values, missing, strict=True)]
            columns.append(values)
        return zip(*columns, strict=True)

    def texts_of(self, ids: Ids) -> list[str]:
        """The N-Triples texts of ids."""
        return self._dictionary.texts(ids)

    def terms(self) -> Iterator[tuple[Constant | None, ...]]:
        """Rows of terms."""
        made: dict[str, Constant | None] = {_UNBOUND: None}
        columns = []
        for texts in self.texts():
            for text in texts:
                if text not in made:
                    made[text] = parse_term(text)
            columns.append([made[text] for text in texts])
        return zip(*columns, strict=True) if columns else iter([()] * len(self))

    def _is_missing(self, ids: Ids) -> list[bool]:
        (gone,) = self._dictionary.encode([_UNBOUND])
        return list((ids == gone).tolist())

    @cached_property
    def arrow(self) -> pa.Table:
        """Columns of the type that all their terms share: integers, doubles, dates, ...; otherwise of texts."""
        columns = []
        for name, ids in zip(self.names, self._columns, strict=True):
            missing = np.array(self._is_missing(ids)) if name in self._uncertain else np.zeros(len(ids), bool)
            if not missing.any():
                columns.append(self.column_of(ids))
                continue
            places = np.cumsum(~missing) - 1
            present = self.column_of(ids[~missing])
            columns.append(present.take(pa.array(places, mask=missing)))
        return pa.table(columns, names=list(self.names)) if columns else pa.table({})


def arrange(
    dictionary: Dictionary,
    query: Selection,
    columns: Sequence[Ids],
    counts: Ids,
    keys: Sequence[tuple[Ids, bool]],
    uncertain: frozenset[str],
) -> Answers:
    """Rows in the order of keys, each as often as it counts, or once; and of these a part."""
    order = order_rows(dictionary, keys, len(counts))
    if query.distinct:
        order = first_of_each([c[order] for c in columns], order)
    else:
        order = np.repeat(order, counts[order])
    end = None if query.length is None else query.start + query.length
    chosen = order[query.start : end]
    return Answers(dictionary, query.names, len(chosen), lambda: [c[chosen] for c in columns], uncertain)


def first_of_each(columns: Sequence[Ids], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first of rows that are equal, in the order they have."""
    if not columns:
        return order[:1]
    _, first = np.unique(np.stack(columns, axis=1), axis=0, return_index=True)
    return order[np.sort(first)]
