"""Rows of a query, in which some names may have no value, and what is done with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Generic

import numpy as np

from hdlog.engines.encoding import Ids
from hdlog.engines.protocol import F, R, T, Version
from hdlog.program.functions import IS_BOUND, VALUE
from hdlog.program.model import Call, Expression, expression_variables
from hdlog.program.ntriples import term_text
from hdlog.program.terms import UNBOUND, Constant, Variable, boolean
from hdlog.query.snapshot import Snapshot

Names = frozenset[str]
NO_NAMES: Names = frozenset()
ROW = "#row"
"""The number of a row, for functions whose value is another in each."""


@dataclass(frozen=True)
class Rows(Generic[R]):
    """A relation; where a name has no value, `UNBOUND` stands in its column."""

    relation: R
    names: Names
    uncertain: Names = NO_NAMES
    """names that may have no value in some rows"""

    @property
    def certain(self) -> Names:
        return self.names - self.uncertain


class RowSets(Generic[R, F, T]):
    def __init__(self, snapshot: Snapshot[R, F, T]) -> None:
        self.snapshot = snapshot
        self.engine = snapshot.engine

    # Made.

    def unit(self) -> Rows[R]:
        """One row without names."""
        return Rows(self.engine.unit(), NO_NAMES)

    def empty(self, names: Names) -> Rows[R]:
        return Rows(self.engine.scan(self.engine.no_facts(len(names)), variables(names)), names)

    def of_facts(self, facts: F, names: Sequence[str]) -> Rows[R]:
        return Rows(self.engine.scan(facts, tuple(map(Variable, names))), frozenset(names))

    def make(self, names: Sequence[str], rows: Sequence[Sequence[Constant | None]]) -> Rows[R]:
        """Rows of terms; None where there is no value."""
        if not rows:
            return self.empty(frozenset(names))
        uncertain = frozenset(n for i, n in enumerate(names) if any(row[i] is None for row in rows))
        if not names:
            return Rows(self.engine.stack([self.engine.unit()] * len(rows)), NO_NAMES)
        made = self.make_of_texts(names, [[_text_of(row[i]) for row in rows] for i in range(len(names))])
        return Rows(made.relation, made.names, uncertain)

    def make_of_texts(self, names: Sequence[str], columns: Sequence[Sequence[str]]) -> Rows[R]:
        """Rows from columns of N-Triples terms; there are names, and values for all of them."""
        ids = [self.engine.dictionary.encode(column) for column in columns]
        if len(columns[0]) < 2:
            return self.of_facts(self.engine.facts_from_columns(ids, len(columns[0])), names)
        return self.keep(self._number(names, ids, len(columns[0])), frozenset(names))

    def _number(self, names: Sequence[str], columns: Sequence[Ids], rows: int) -> Rows[R]:
        """Rows of ids, with a number for each, which keeps equal ones apart: facts are there once."""
        numbers = self.engine.dictionary.encode_integers(np.arange(rows))
        return self.of_facts(self.engine.facts_from_columns([*columns, numbers], rows), (*names, ROW))

    def number(self, rows: Rows[R]) -> Rows[R]:
        """The same rows, with a number for each."""
        names = sorted(rows.names)
        columns, counts = self.engine.collect(rows.relation, names)
        places = np.repeat(np.arange(len(counts)), counts)
        numbered = self._number(names, [column[places] for column in columns], len(places))
        return Rows(numbered.relation, numbered.names, rows.uncertain)

    # Columns.

    def keep(self, rows: Rows[R], names: Names) -> Rows[R]:
        """Without other names."""
        if rows.names <= names:
            return rows
        kept = rows.names & names
        return Rows(self.engine.keep_columns(rows.relation, sorted(kept)), kept, rows.uncertain & kept)

    def complete(self, rows: Rows[R], names: Names) -> Rows[R]:
        """With all of some names, and no others."""
        rows = self.keep(rows, names)
        relation = rows.relation
        for name in sorted(names - rows.names):
            relation = self.engine.extend(relation, UNBOUND, name)
        return Rows(relation, names, rows.uncertain | (names - rows.names))

    # Put together.

    def stack(self, parts: Sequence[Rows[R]], names: Names) -> Rows[R]:
        """All rows; a name that some of them do not have has no value there."""
        filled = [p for p in parts if not self.engine.is_empty(p.relation)]
        if not filled:
            return self.empty(names)
        completed = [self.complete(p, names) for p in filled]
        uncertain = NO_NAMES.union(*(p.uncertain for p in completed))
        if len(completed) == 1:
            return completed[0]
        return Rows(self.engine.stack([p.relation for p in completed]), names, uncertain)

    def distinct(self, rows: Rows[R]) -> Rows[R]:
        columns = variables(rows.names)
        facts = self.engine.distinct(self.engine.project(rows.relation, columns))
        return Rows(self.engine.scan(facts, columns), rows.names, rows.uncertain)

    def join(self, left: Rows[R], right: Rows[R]) -> Rows[R]:
        """Rows of both sides that agree where both have values."""
        unsure = left.names & right.names & (left.uncertain | right.uncertain)
        if not unsure:
            return self._join_bound(left, right)
        pairs = product(self.split_by_bound(left, unsure), self.split_by_bound(right, unsure))
        return self.stack([self._join_bound(a, b) for a, b in pairs], left.names | right.names)

    def _join_bound(self, left: Rows[R], right: Rows[R]) -> Rows[R]:
        """Names that both have have values in all rows of both."""
        columns = variables(right.names)
        facts = self.engine.project(right.relation, columns)
        joined = self.engine.join(left.relation, self.snapshot.of_facts(facts, len(columns)), columns)
        return Rows(joined, left.names | right.names, left.uncertain | right.uncertain)

    def split_by_bound(self, rows: Rows[R], names: Names) -> list[Rows[R]]:
        """Rows by which of some names have values in them; names that have none are gone there."""
        parts = [rows]
        for name in sorted(names & rows.uncertain):
            parts = [p for part in parts for p in self._divide(part, name)]
        return [part for part in parts if not self.engine.is_empty(part.relation)] or parts[:1]

    def _divide(self, rows: Rows[R], name: str) -> tuple[Rows[R], Rows[R]]:
        bound = self.engine.filter(rows.relation, Call(IS_BOUND, (Variable(name),)))
        unbound = self.engine.filter(rows.relation, Call("sameterm", (Variable(name), UNBOUND)))
        rest = self.keep(Rows(unbound, rows.names, rows.uncertain), rows.names - {name})
        return Rows(bound, rows.names, rows.uncertain - {name}), rest

    # Compared.

    def matching(self, rows: Rows[R], others: Rows[R], names: Names) -> Rows[R]:
        """The rows that have the same values for some names as one of the others, and no value where that has none."""
        joined = self.engine.join(rows.relation, self._keys(others, names), variables(names))
        return Rows(joined, rows.names, rows.uncertain)

    def without(self, rows: Rows[R], others: Rows[R], names: Names) -> Rows[R]:
        """The rows that have not."""
        kept = self.engine.antijoin(rows.relation, self._keys(others, names), variables(names))
        return Rows(kept, rows.names, rows.uncertain)

    def _keys(self, rows: Rows[R], names: Names) -> Version[F, T]:
        facts = self.engine.distinct(self.engine.project(rows.relation, variables(names)))
        return self.snapshot.of_facts(facts, len(names))

    # Expressions.

    def filter(self, rows: Rows[R], condition: Expression) -> Rows[R]:
        if any(v.name == ROW for v in expression_variables(condition)) and ROW not in rows.names:
            numbered = self.filter(self.number(rows), condition)
            return self.keep(numbered, numbered.names - {ROW})
        kept = self.engine.filter(rows.relation, self.read(condition, rows))
        return Rows(kept, rows.names, rows.uncertain)

    def extend(self, rows: Rows[R], name: str, value: Expression, strict: bool = False) -> Rows[R]:
        """With the value of an expression, or without a value where it has none; such rows go if it is `strict`."""
        if any(v.name == ROW for v in expression_variables(value)) and ROW not in rows.names:
            numbered = self.extend(self.number(rows), name, value, strict)
            return self.keep(numbered, numbered.names - {ROW})
        read, names = self.read(value, rows), rows.names | {name}
        if strict:
            return Rows(self.engine.extend(rows.relation, read, name), names, rows.uncertain)
        if isinstance(value, Variable) and value.name in rows.names:
            uncertain = rows.uncertain | ({name} if value.name in rows.uncertain else NO_NAMES)
            return Rows(self.engine.extend(rows.relation, value, name), names, uncertain)
        is_counted = self.engine.hints.is_counted
        if is_counted(rows.relation) and not isinstance(value, Variable):
            # Where every row has a value, whole columns are worked out at once.
            relation = self.engine.extend(rows.relation, read, name)
            if is_counted(relation) and self.engine.count(relation) == self.engine.count(rows.relation):
                return Rows(relation, names, rows.uncertain)
        relation = self.engine.extend(rows.relation, Call("coalesce", (read, UNBOUND)), name)
        return Rows(relation, names, rows.uncertain | {name})

    def read(self, expression: Expression, rows: Rows[R]) -> Expression:
        """An expression in which names without a value are errors; IS_BOUND asks for them as they are."""
        match expression:
            case Variable(name):
                if name not in rows.names:
                    return Call(VALUE, (UNBOUND,))
                return Call(VALUE, (expression,)) if name in rows.uncertain else expression
            case Call(function, (Variable(name),)) if function == IS_BOUND:
                return expression if name in rows.names else boolean(False)
            case Call(function, arguments):
                return Call(function, tuple(self.read(a, rows) for a in arguments), expression.span)
        return expression


def _text_of(value: Constant | None) -> str:
    return term_text(UNBOUND if value is None else value)


def variables(names: Iterable[str]) -> tuple[Variable, ...]:
    return tuple(Variable(name) for name in sorted(names))
