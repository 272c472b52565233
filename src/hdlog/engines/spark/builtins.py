"""Built-in functions over columns of ids.

Integers are their own ids, so arithmetic and comparisons of them are expressions of Spark, and so are Skolem terms. Everything
else is evaluated by its definition in `hdlog.program.functions`, once per distinct combination of argument values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from hdlog.engines.spark.dictionary import Dictionary
from hdlog.engines.spark.frames import CARE, Frame, Keeper, union
from hdlog.engines.spark.relation import Relation, column
from hdlog.engines.spark.values import VALUE_SCHEMA, with_values
from hdlog.program.functions import NoValue, evaluate, holds, number, text
from hdlog.program.model import Call, Expression, expression_variables
from hdlog.program.ntriples import parse_term, term_text
from hdlog.program.terms import XSD_INTEGER, Constant, Literal, Variable
from hdlog.reading.identifiers import INTEGER_LIMIT, INTEGERS, SKOLEMS, name_number

_ARITHMETIC = {"add": "try_add", "sub": "try_subtract", "mul": "try_multiply"}
_COMPARISONS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ALWAYS = "true"


@dataclass(frozen=True)
class Native:
    """An expression of Spark, and when it gives what the definition gives."""

    value: str
    exact: str


def select(dictionary: Dictionary, keeper: Keeper, relation: Relation, condition: Expression) -> Relation:
    """The rows for which the condition holds."""
    if relation.frame is None:
        return relation
    if not _variables(condition):
        return relation if holds(condition, {}) else Relation(relation.names, None, 0.0, 0)
    native = _truth(dictionary, condition)
    if native is not None and (native.exact == _ALWAYS or not keeper.careful):
        return _narrow(relation, relation.frame.where(_guard(native, "BOOLEAN")))
    frame, slow = _watch(keeper, relation, native)
    parts = [frame.where(f"({native.exact}) AND ({native.value})")] if native is not None else []
    if slow:
        rest = frame.where(f"NOT ({native.exact})") if native is not None else frame
        kept = _combinations(dictionary, keeper, rest, condition, decide=True)
        names = [column(v.name) for v in _variables(condition)]
        parts.append(rest.join(kept.select(*names), names, "left_semi").select(*relation.columns, "m"))
    return _narrow(relation, union(parts))


def extend(
    dictionary: Dictionary, keeper: Keeper, relation: Relation, expression: Expression, name: str
) -> Relation:
    """The relation with a column for the value of the expression, without the rows where it has none."""
    names = (*relation.names, name)
    if relation.frame is None:
        return Relation(names, None, 0.0, 0)
    if isinstance(expression, Variable):
        frame = relation.frame.select("*", f"{column(expression.name)} AS {column(name)}")
        return Relation(names, _order_columns(frame, names), relation.estimate, relation.bound)
    if not _variables(expression):
        try:
            identifier = int(dictionary.encode_terms([evaluate(expression, {})])[0])
        except NoValue:
            return Relation(names, None, 0.0, 0)
        frame = relation.frame.select("*", f"{identifier}L AS {column(name)}")
        return Relation(names, _order_columns(frame, names), relation.estimate, relation.bound)
    assert isinstance(expression, Call), "what has variables and is none is a call"
    if expression.function == "skolem" and isinstance(expression.arguments[0], Literal):
        return _skolem(dictionary, keeper, relation, expression, name)
    native = _integer(dictionary, expression)
    if native is not None and not keeper.careful:
        number_sql = Native(f"try_add({INTEGERS}L, {native.value})", native.exact)
        frame = relation.frame.select("*", f"{_guard(number_sql, 'BIGINT')} AS {column(name)}")
        return Relation(names, _order_columns(frame, names), relation.estimate, relation.bound)
    frame, slow = _watch(keeper, relation, native)
    parts = []
    if native is not None:
        chosen = frame.where(native.exact) if slow else frame
        parts.append(
            _order_columns(
                chosen.select("*", f"try_add({INTEGERS}L, {native.value}) AS {column(name)}"), names
            )
        )
    if slow:
        rest = frame.where(f"NOT ({native.exact})") if native is not None else frame
        made = _combinations(dictionary, keeper, rest, expression, decide=False)
        argument_names = [column(v.name) for v in _variables(expression)]
        values = made.select(*argument_names, f"value AS {column(name)}")
        parts.append(_order_columns(rest.join(values, argument_names), names))
    return Relation(names, union(parts), relation.estimate, relation.bound)


def _guard(native: Native, kind: str) -> str:
    """Spark's own expression where it is exact; where it is not, the update is to be run again, with care."""
    if native.exact == _ALWAYS:
        return native.value
    return f"CASE WHEN {native.exact} THEN {native.value} ELSE CAST(raise_error('{CARE}') AS {kind}) END"


def _narrow(relation: Relation, frame: Frame) -> Relation:
    return Relation(relation.names, frame, relation.estimate, relation.bound)


def _order_columns(frame: Frame, names: tuple[str, ...]) -> Frame:
    return frame.select(*map(column, names), "m")


def _watch(keeper: Keeper, relation: Relation, native: Native | None) -> tuple[Frame, bool]:
    """The relation, kept, and whether some rows need more than Spark's own expressions."""
    assert relation.frame is not None, "there is something to evaluate"
    if native is None:
        return keeper.keep(relation.frame, {})[0], True
    frame, figures = keeper.keep(relation.frame, {"slow": f"count_if(NOT ({native.exact}))"})
    return frame, figures["slow"] > 0


def _skolem(
    dictionary: Dictionary, keeper: Keeper, relation: Relation, expression: Call, name: str
) -> Relation:
    """A hash of name and arguments; the dictionary remembers what it stands for."""
    label, *arguments = expression.arguments
    assert isinstance(label, Literal)
    names = (*relation.names, name)
    inner = []
    for i, argument in enumerate(arguments):
        if isinstance(argument, Variable):
            inner.append(column(argument.name))
        else:
            temporary = f"{name} argument {i}"
            relation = extend(dictionary, keeper, relation, argument, temporary)
            inner.append(column(temporary))
    if relation.frame is None:
        return Relation(names, None, 0.0, 0)
    mark = text(label)
    hashed = f"xxhash64({', '.join([f'{name_number(mark)}L', f'{len(inner)}L', *inner])})"
    identifier = f"({hashed} & {SKOLEMS - 1}L) | {SKOLEMS}L AS {column(name)}"
    kept, figures = keeper.keep(relation.frame.select("*", identifier), {})
    if not figures["rows"]:
        return Relation(names, None, 0.0, 0)
    dictionary.note_skolems(mark, kept, column(name), inner)
    return Relation(names, _order_columns(kept, names), float(figures["rows"]), figures["rows"], kept=True)


def _variables(expression: Expression) -> list[Variable]:
    return list(dict.fromkeys(expression_variables(expression)))


def _combinations(
    dictionary: Dictionary, keeper: Keeper, frame: Frame, expression: Expression, decide: bool
) -> Frame:
    """The distinct combinations of arguments for which a condition holds, or with the value of an expression."""
    variables = _variables(expression)
    names = [column(v.name) for v in variables]
    combined = frame.totals(names, "count(1) AS n").select(*names)
    combined, _ = keeper.keep(combined, {})
    for i, name in enumerate(names):
        ids = combined.select(f"{name} AS id").distinct("id")
        texts = dictionary.texts_of(ids).select(f"id AS {name}", f"text AS t{i}")
        combined = combined.join(texts, [name])
    schema = ", ".join([*(f"{n} BIGINT" for n in names), VALUE_SCHEMA])
    work = _worker(expression, variables, names, decide)
    made, _ = keeper.keep_data(keeper.data(combined).mapInArrow(work, schema), {}, "a function of values")
    if decide:
        return made
    return dictionary.with_ids(made)


def _worker(
    expression: Expression, variables: list[Variable], names: list[str], decide: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Python worker of Spark does with batches of combinations."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [batch.column(f"t{i}").to_pylist() for i in range(len(names))]
            rows = (map(parse_term, texts) for texts in zip(*columns, strict=True))
            bindings = (dict(zip(variables, row, strict=True)) for row in rows)
            yield with_values(batch, names, [_outcome(expression, b, decide) for b in bindings])

    return work


def _outcome(expression: Expression, binding: dict[Variable, Constant], decide: bool) -> str | None:
    """The text of a value, or of nothing for a condition that holds; None otherwise."""
    if decide:
        return "" if holds(expression, binding) else None
    try:
        return term_text(evaluate(expression, binding))
    except NoValue:
        return None


def _truth(dictionary: Dictionary, condition: Expression) -> Native | None:
    if not isinstance(condition, Call):
        return None
    if condition.function in ("and", "or"):
        sides = [_truth(dictionary, c) for c in condition.arguments]
        if any(s is None for s in sides):
            return None
        return Native(
            f" {condition.function.upper()} ".join(f"({s.value})" for s in sides if s),
            _conjoin(*(s for s in sides if s)),
        )
    if condition.function == "not":
        inner = _truth(dictionary, condition.arguments[0])
        return None if inner is None else Native(f"NOT ({inner.value})", inner.exact)
    if condition.function == "sameterm":
        ids = [_identifier(dictionary, a) for a in condition.arguments]
        return None if None in ids else Native(f"{ids[0]} = {ids[1]}", _ALWAYS)
    if condition.function not in _COMPARISONS:
        return None
    sign = _COMPARISONS[condition.function]
    left, right = (_integer(dictionary, a) for a in condition.arguments)
    ids = [_identifier(dictionary, a) for a in condition.arguments]
    if condition.function in ("eq", "ne") and None not in ids and not dictionary.typed:
        # Integers, or none of the two: terms that are equal by value just when they are equal.
        return Native(f"{ids[0]} {sign} {ids[1]}", f"({ids[0]} < 0) = ({ids[1]} < 0)")
    if left is None or right is None:
        return None
    return Native(f"{left.value} {sign} {right.value}", _conjoin(left, right))


def _identifier(dictionary: Dictionary, expression: Expression) -> str | None:
    if isinstance(expression, Variable):
        return column(expression.name)
    if isinstance(expression, Call):
        return None
    return f"{int(dictionary.encode_terms([expression])[0])}L"


def _integer(dictionary: Dictionary, expression: Expression) -> Native | None:
    """The value as a 64-bit integer."""
    if isinstance(expression, Variable):
        name = column(expression.name)
        return Native(f"try_subtract({name}, {INTEGERS}L)", f"{name} < 0")
    if isinstance(expression, Literal) and expression.datatype == XSD_INTEGER:
        try:
            value = number(expression)
        except NoValue:
            return None
        return Native(f"{value}L", _ALWAYS) if isinstance(value, int) and abs(value) < INTEGER_LIMIT else None
    if isinstance(expression, Call) and expression.function in _ARITHMETIC:
        sides = [_integer(dictionary, a) for a in expression.arguments]
        if any(s is None for s in sides):
            return None
        a, b = (s for s in sides if s is not None)
        value_sql = f"{_ARITHMETIC[expression.function]}({a.value}, {b.value})"
        limited = f"coalesce({value_sql} BETWEEN {-INTEGER_LIMIT + 1}L AND {INTEGER_LIMIT - 1}L, false)"
        return Native(value_sql, f"({_conjoin(a, b)}) AND {limited}")
    return None


def _conjoin(*sides: Native) -> str:
    conditions = dict.fromkeys(s.exact for s in sides if s.exact != _ALWAYS)
    return " AND ".join(f"({c})" for c in conditions) or _ALWAYS
