"""Built-in functions over whole columns.

Arithmetic and comparisons of 64-bit numbers run on arrays. Everything else is evaluated by its definition in
`hdlog.program.functions`, once per distinct combination of argument values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.dictionary import DOUBLE, INTEGER, PLAIN, Dictionary
from hdlog.engines.columnar.kernels import Ids
from hdlog.engines.columnar.keys import PairTable, part
from hdlog.engines.columnar.relation import Relation
from hdlog.program.functions import NoValue, evaluate, holds, number, text
from hdlog.program.model import Call, Expression, expression_variables
from hdlog.program.terms import XSD_INTEGER, Constant, Literal, Variable

Integers = NDArray[np.int64]
Doubles = NDArray[np.float64]
Truths = NDArray[np.bool_]
_SAFE = float(2**62)
_INTEGER_FUNCTIONS: dict[str, Callable[[Integers, Integers], Integers]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Truths]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def select(dictionary: Dictionary, pairs: PairTable, relation: Relation, condition: Expression) -> Relation:
    """The rows for which the condition holds."""
    if not len(relation):
        return relation
    truths = _truths(dictionary, relation, condition)
    if truths is None:
        truths = _per_combination(dictionary, pairs, relation, condition, _decide).astype(np.bool_)
    return relation if truths.all() else relation.take(truths)


def extend(
    dictionary: Dictionary, pairs: PairTable, relation: Relation, expression: Expression, name: str
) -> Relation:
    """The relation with a column for the value of the expression, without the rows where it has none."""
    integers = _integers(dictionary, relation, expression)
    if integers is not None and isinstance(expression, Call):
        ids = dictionary.encode_integers(np.broadcast_to(integers, relation.rows))
        return Relation({**relation.columns, name: ids}, relation.rows, relation.counts)
    skolems = _skolems(dictionary, relation, expression)
    if skolems is not None:
        return Relation({**relation.columns, name: skolems}, relation.rows, relation.counts)
    found = _per_combination(dictionary, pairs, relation, expression, _identify)
    kept = found >= 0
    relation = relation if kept.all() else relation.take(kept)
    return Relation({**relation.columns, name: found[kept].astype(np.uint32)}, relation.rows, relation.counts)


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


Outcome = Callable[[Dictionary, Expression, dict[Variable, Constant]], int]


def _decide(_: Dictionary, condition: Expression, binding: dict[Variable, Constant]) -> int:
    return int(holds(condition, binding))


def _identify(dictionary: Dictionary, expression: Expression, binding: dict[Variable, Constant]) -> int:
    try:
        return int(dictionary.encode_terms([evaluate(expression, binding)])[0])
    except NoValue:
        return -1


def _per_combination(
    dictionary: Dictionary, pairs: PairTable, relation: Relation, expression: Expression, outcome: Outcome
) -> Integers:
    """One evaluation for each distinct combination of the columns the expression uses."""
    variables = list(dict.fromkeys(expression_variables(expression)))
    columns = [relation.columns[v.name] for v in variables]
    combined = part(pairs, columns, relation.rows)
    unique, first, inverse = np.unique(combined, return_index=True, return_inverse=True)
    values = [[dictionary.term(i) for i in column[first].tolist()] for column in columns]
    results = np.fromiter(
        (
            outcome(dictionary, expression, dict(zip(variables, row, strict=True)))
            for row in (zip(*values, strict=True) if values else [()] * len(unique))
        ),
        np.int64,
        len(unique),
    )
    return results[inverse]


def _truths(dictionary: Dictionary, relation: Relation, condition: Expression) -> Truths | None:
    if not isinstance(condition, Call):
        return None
    if condition.function in ("and", "or"):
        a, b = (_truths(dictionary, relation, c) for c in condition.arguments)
        if a is None or b is None:
            return None
        return a & b if condition.function == "and" else a | b
    if condition.function == "not":
        inner = _truths(dictionary, relation, condition.arguments[0])
        return None if inner is None else ~inner
    if condition.function not in _COMPARISONS:
        return None
    compare = _COMPARISONS[condition.function]
    left, right = condition.arguments
    for read in (_integers, _doubles):
        m, n = read(dictionary, relation, left), read(dictionary, relation, right)
        if m is not None and n is not None:
            return np.broadcast_to(compare(m, n), relation.rows)
    if condition.function in ("eq", "ne"):
        x, y = _plain(dictionary, relation, left), _plain(dictionary, relation, right)
        if x is not None and y is not None:
            return np.broadcast_to(compare(x, y), relation.rows)
    return None


def _integers(dictionary: Dictionary, relation: Relation, expression: Expression) -> Integers | None:
    """The values as 64-bit integers, or None where not all are, or one might not fit."""
    if isinstance(expression, Variable):
        ids = relation.columns[expression.name]
        if (dictionary.kinds(ids) == INTEGER).all():
            return dictionary.integers(ids)
    elif isinstance(expression, Literal) and expression.datatype == XSD_INTEGER:
        try:
            return np.array([number(expression)], np.int64)
        except NoValue:
            return None
    elif isinstance(expression, Call) and expression.function in _INTEGER_FUNCTIONS:
        a, b = (_integers(dictionary, relation, x) for x in expression.arguments)
        if a is not None and b is not None:
            apply = _INTEGER_FUNCTIONS[expression.function]
            sizes = [np.abs(x.astype(np.float64)) for x in (a, b)]
            bound = sizes[0] * sizes[1] if expression.function == "mul" else sizes[0] + sizes[1]
            if not len(bound) or bound.max() < _SAFE:
                return apply(a, b)
    return None


def _doubles(dictionary: Dictionary, relation: Relation, expression: Expression) -> Doubles | None:
    """The values of numbers as doubles, where comparing them so is exact."""
    if isinstance(expression, Variable):
        ids = relation.columns[expression.name]
        kinds = dictionary.kinds(ids)
        if (kinds == DOUBLE).all():
            return dictionary.doubles(ids)
        return None
    integers = _integers(dictionary, relation, expression)
    if integers is not None and (np.abs(integers) < 2**53).all():
        return integers.astype(np.float64)
    return None


def _plain(dictionary: Dictionary, relation: Relation, expression: Expression) -> Ids | None:
    """Ids of terms that are equal by value just when they are equal."""
    if isinstance(expression, Variable):
        ids = relation.columns[expression.name]
    elif isinstance(expression, Call):
        return None
    else:
        ids = dictionary.encode_terms([expression])
    return ids if (dictionary.kinds(ids) == PLAIN).all() else None
