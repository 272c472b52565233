"""Built-in functions over whole columns.

Arithmetic and comparisons of numbers, and comparisons of strings, run on arrays, as far as they give what the definition in
`hdlog.program.functions` gives: `arrays.py` says for which rows they do. All other rows are evaluated by the definition, once per
distinct combination of argument values.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hdlog import interrupts
from hdlog.engines.columnar.arrays import Arrays, Column, Truths
from hdlog.engines.columnar.dictionary import Dictionary
from hdlog.engines.columnar.kernels import Ids
from hdlog.engines.columnar.keys import PairTable, part
from hdlog.engines.columnar.relation import Relation
from hdlog.program.functions import NoValue, evaluate, holds, text
from hdlog.program.model import Call, Expression, expression_variables
from hdlog.program.ntriples import quote, term_text
from hdlog.program.terms import Constant, Literal, Variable, double

Binding = dict[Variable, Constant]
Outcome = TypeVar("Outcome")
_AT_ONCE = 50_000
"""Rows that are evaluated before somebody looks at the memory."""
_NONE = -1
"""In place of an id: no value."""


def select(dictionary: Dictionary, pairs: PairTable, relation: Relation, condition: Expression) -> Relation:
    """The rows for which the condition holds."""
    if not len(relation):
        return relation
    kept, known = Arrays(dictionary, relation).truths(condition)
    if not known.all():
        rest = np.flatnonzero(~known)
        kept[rest] = _decide_rows(dictionary, pairs, relation.take(rest), condition)
    return relation if kept.all() else relation.take(kept)


def _decide_rows(
    dictionary: Dictionary, pairs: PairTable, relation: Relation, condition: Expression
) -> Truths:
    def decide(binding: Binding) -> bool:
        return holds(condition, binding)

    outcomes, inverse = _evaluate_once_each(dictionary, pairs, relation, condition, decide)
    return np.array(outcomes, np.bool_)[inverse]


def extend(
    dictionary: Dictionary, pairs: PairTable, relation: Relation, expression: Expression, name: str
) -> Relation:
    """The relation with a column for the value of the expression, without the rows where it has none."""
    ids = _skolems(dictionary, relation, expression)
    if ids is None:
        values = _values(dictionary, pairs, relation, expression)
        kept = values != _NONE
        relation = relation if kept.all() else relation.take(kept)
        ids = values[kept].astype(np.uint32)
    return Relation({**relation.columns, name: ids}, relation.rows, relation.counts)


def _values(
    dictionary: Dictionary, pairs: PairTable, relation: Relation, expression: Expression
) -> NDArray[np.int64]:
    """The id of the value in each row, or _NONE."""
    if isinstance(expression, Variable):
        return relation.columns[expression.name].astype(np.int64)
    if isinstance(expression, Call) and expression.function == "if":
        return _choose(dictionary, pairs, relation, expression)
    ids = np.full(relation.rows, _NONE, np.int64)
    arrays = Arrays(dictionary, relation)
    column, known = arrays.number(expression), np.zeros(relation.rows, np.bool_)
    if column is not None and column.known.any():
        known = column.known
        ids[known] = _number_ids(dictionary, column, known)
    elif (texts := arrays.replaced(expression)) is not None:
        values, inverse, known = texts
        ids[known] = dictionary.encode([quote(v) for v in values])[inverse[known]]
    if not known.all():
        rest = np.flatnonzero(~known)
        ids[rest] = _identify_rows(dictionary, pairs, relation.take(rest), expression)
    return ids


def _choose(dictionary: Dictionary, pairs: PairTable, relation: Relation, choice: Call) -> NDArray[np.int64]:
    """IF: each branch for the rows that it is about."""
    test, *branches = choice.arguments
    holds, known = Arrays(dictionary, relation).truths(test)
    ids = np.full(relation.rows, _NONE, np.int64)
    for rows, branch in zip((known & holds, known & ~holds), branches, strict=True):
        if rows.any():
            ids[rows] = _values(dictionary, pairs, relation.take(rows), branch)
    if not known.all():
        ids[~known] = _identify_rows(dictionary, pairs, relation.take(~known), choice)
    return ids


def _number_ids(dictionary: Dictionary, column: Column, known: Truths) -> Ids:
    values = column.values[known]
    if not column.is_double:
        return dictionary.encode_integers(values)
    bits, inverse = np.unique(values.view(np.int64), return_inverse=True)  # 0 and -0 are two terms
    return dictionary.encode_terms(double(v) for v in bits.view(np.float64).tolist())[inverse]


def _identify_rows(
    dictionary: Dictionary, pairs: PairTable, relation: Relation, expression: Expression
) -> NDArray[np.int64]:
    def identify(binding: Binding) -> str | None:
        try:
            return term_text(evaluate(expression, binding))
        except NoValue:
            return None

    outcomes, inverse = _evaluate_once_each(dictionary, pairs, relation, expression, identify)
    ids = np.full(len(outcomes), _NONE, np.int64)
    valued = [i for i, value in enumerate(outcomes) if value is not None]
    # All at once: where terms are kept in a store, each question to it costs the same, whatever it asks for.
    ids[valued] = dictionary.encode([value for value in outcomes if value is not None])
    return ids[inverse]


def _skolems(dictionary: Dictionary, relation: Relation, expression: Expression) -> Ids | None:
    """Skolem terms of variables and constants, in bulk."""
    if not isinstance(expression, Call) or expression.function != "skolem":
        return None
    name, *arguments = expression.arguments
    if not isinstance(name, Literal) or any(isinstance(a, Call) for a in arguments):
        return None
    columns = [
        relation.columns[a.name]
        if isinstance(a, Variable)
        else np.full(relation.rows, dictionary.encode_terms([a])[0], np.uint32)  # type: ignore[list-item]
        for a in arguments
    ]
    return dictionary.encode_skolems(text(name), columns, relation.rows)


def _evaluate_once_each(
    dictionary: Dictionary,
    pairs: PairTable,
    relation: Relation,
    expression: Expression,
    outcome: Callable[[Binding], Outcome],
) -> tuple[list[Outcome], NDArray[np.int64]]:
    """The outcome for each distinct combination of the columns an expression uses, and which of them each row has."""
    variables = list(dict.fromkeys(expression_variables(expression)))
    columns = [relation.columns[v.name] for v in variables]
    combined = part(pairs, columns, relation.rows)
    unique, first, inverse = np.unique(combined, return_index=True, return_inverse=True)
    values = [dictionary.terms(column[first]) for column in columns]
    rows = zip(*values, strict=True) if values else [()] * len(unique)
    outcomes: list[Outcome] = []
    left = iter(rows)
    with interrupts.let_through():
        while several := list(islice(left, _AT_ONCE)):
            dictionary.check_memory(len(several), "a list of values")
            outcomes += [outcome(dict(zip(variables, row, strict=True))) for row in several]
    return outcomes, inverse
