"""SQL through DuckDB: each predicate that a statement names is a view of its facts.

Columns of integers and doubles are those of the engine. A column of other terms has ids, and a function of the view makes texts of them
where the statement asks for these: a count of rows needs none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

import numpy as np
import pyarrow as pa

from hdlog.engines.decode import FactTable
from hdlog.engines.encoding import Ids
from hdlog.engines.protocol import F, R, T
from hdlog.errors import UsageError, did_you_mean
from hdlog.program.model import Predicate
from hdlog.program.terms import last_part
from hdlog.reasoning import Reasoning
from hdlog.writing.values import plain_texts

_TEXT = "hdlog_text"
_SAMPLE = 1000
"""Terms that are looked at to tell whether a column has dates, decimals and the like."""


class Sql(Generic[R, F, T]):
    def __init__(self, reasoning: Reasoning[R, F, T]) -> None:
        self.reasoning = reasoning
        self.dictionary = reasoning.engine.dictionary

    def ask(self, statement: str) -> pa.Table:
        """The rows of a SELECT over predicates."""
        try:
            import duckdb
        except ImportError:
            raise UsageError("SQL needs DuckDB; install it with: pip install 'hdlog[query]'") from None
        if not isinstance(statement, str):
            raise UsageError(f"a statement is a text, not {type(statement).__name__}")
        with duckdb.connect() as connection:
            try:
                named = connection.get_table_names(statement, qualified=False)
                self._make_views(connection, sorted(named))
                found = connection.sql(statement)
                return pa.table({}) if found is None else found.to_arrow_table()
            except duckdb.Error as error:
                raise UsageError(f"DuckDB cannot run this statement: {error}") from None

    def _make_views(self, connection: Any, names: Sequence[str]) -> None:
        known = name_predicates(self.reasoning.predicates())
        types = [pa.uint32() if self._ids_are_short() else pa.int64()]
        connection.create_function(
            _TEXT,
            self._texts,
            [_sql_type(t) for t in types],
            "VARCHAR",
            type="arrow",
            null_handling="default",
        )
        for number, name in enumerate(names):
            predicate = known.get(name)
            if predicate is None:
                self._check_name(name, known)
                continue
            facts = self.reasoning.decode(predicate, self.reasoning.facts(predicate))
            self._make_view(connection, name, f"hdlog_facts_{number}", facts)

    def _check_name(self, name: str, known: dict[str, Predicate]) -> None:
        """A name that is no predicate may be one that the statement or DuckDB gives a meaning to."""
        hint = did_you_mean(name, [n for n in known if "://" not in n])
        if hint:
            raise UsageError(f"there is no predicate {name}; {hint}")

    def _make_view(self, connection: Any, name: str, source: str, facts: FactTable) -> None:
        columns, shown = [], []
        for column, ids in zip(facts.names, facts.ids(), strict=True):
            values, is_ids = self._column(facts, ids)
            columns.append(values)
            quoted = _quote(column)
            shown.append(f"{_TEXT}({quoted}) AS {quoted}" if is_ids else quoted)
        if not columns:
            # A predicate without arguments has a row or none.
            columns, shown = [pa.array([True] * len(facts), pa.bool_())], ["holds"]
            facts = facts.with_names(("holds",))
        connection.register(source, pa.table(columns, names=list(facts.names) or ["holds"]))
        connection.execute(f"CREATE VIEW {_quote(name)} AS SELECT {', '.join(shown)} FROM {source}")

    def _column(self, facts: FactTable, ids: Ids) -> tuple[pa.Array, bool]:
        """The values of a column, or ids of which texts are made when somebody asks."""
        for values in (self.dictionary.integer_values(ids), self.dictionary.double_values(ids)):
            if values is not None and len(ids):
                return pa.array(values), False
        step = max(1, len(ids) // _SAMPLE)
        sample = self.dictionary.texts(np.unique(ids[::step]))
        if sample and all("^^" in text for text in sample):
            return facts.column_of(ids), False
        return pa.array(ids), True

    def _ids_are_short(self) -> bool:
        return self.dictionary.encode([]).dtype == np.uint32

    def _texts(self, ids: pa.ChunkedArray | pa.Array) -> pa.Array:
        array = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
        unique, inverse = np.unique(array.to_numpy(zero_copy_only=False), return_inverse=True)
        texts = plain_texts(self.dictionary.text_array(unique)).cast(pa.string())
        return texts.take(pa.array(inverse))


def name_predicates(predicates: Sequence[Predicate]) -> dict[str, Predicate]:
    """Names for predicates in SQL: in full, and the last part of an IRI where only one has it; with the arity where a name has several."""
    names: dict[str, list[Predicate]] = {}
    for predicate in predicates:
        plain = predicate.without_graph()
        short = last_part(plain.name)
        for name in dict.fromkeys((plain.name, short)):
            for form in (name, f"{name}/{predicate.arity}"):
                own = f"{form} GRAPH" if predicate.has_graph else form
                names.setdefault(own, []).append(predicate)
    return {name: several[0] for name, several in names.items() if len(several) == 1}


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sql_type(kind: pa.DataType) -> str:
    return "UINTEGER" if kind == pa.uint32() else "BIGINT"
