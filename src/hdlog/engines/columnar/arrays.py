"""Expressions over arrays of values, with which rows the result is known for.

A row is known where the array has just what the definition of the function gives: not where a value is of another kind, an integer
might not fit into 64 bits, or there is no value at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdlog.engines.columnar.dictionary import DOUBLE, INTEGER, PLAIN, Dictionary
from hdlog.engines.columnar.kernels import Ids
from hdlog.engines.columnar.relation import Relation
from hdlog.engines.encoding import number_distinct
from hdlog.program.functions import NoValue, common_pattern, end_of_text, number
from hdlog.program.model import Call, Expression
from hdlog.program.ntriples import unquote
from hdlog.program.terms import XSD_DECIMAL, XSD_DOUBLE, XSD_INTEGER, Literal, Variable

Truths = NDArray[np.bool_]
Numbers = NDArray[Any]
_SAFE = 2**62
"""Below it, a sum, a product or an absolute value fits into 64 bits, as far as doubles can tell."""
_EXACT = 2**53
"""Integers below it are doubles."""
_DOUBT = 1e-12
"""Two numbers that are closer to each other than this share of them are not told apart by rounded quotients."""
_BITS = np.int64(63)


@dataclass(frozen=True)
class Column:
    """Integers of 64 bits, or doubles, and for which rows they are known."""

    values: Numbers
    known: Truths
    rounded: bool = False
    """whether the doubles stand for decimals: quotients of integers, or constants"""

    @property
    def is_double(self) -> bool:
        return bool(self.values.dtype == np.float64)

    def as_double(self) -> Column:
        if self.is_double:
            return self
        return Column(self.values.astype(np.float64), self.known & _are_below(_EXACT, self.values))


def _are_below(limit: int, values: Numbers) -> Truths:
    """Whether integers are smaller than a limit, whatever their sign."""
    return (values > -limit) & (values < limit)


def _divide_towards_zero(a: Numbers, b: Numbers) -> Numbers:
    """The quotient towards zero; b is nowhere zero."""
    quotient = np.abs(a) // np.abs(b)
    return np.where((a < 0) == (b < 0), quotient, -quotient)


_WHOLE: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "idiv": _divide_towards_zero,
    "mod": lambda a, b: a - b * _divide_towards_zero(a, b),
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
    "bshl": lambda a, b: np.left_shift(a, b & _BITS),
    "bshr": lambda a, b: np.right_shift(a, b & _BITS),
}
"""Of two integers."""
_REAL: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
}
"""Of two doubles, or a double and an integer."""
_UNARY: dict[str, Callable[[Numbers], Numbers]] = {"neg": np.negative, "abs": np.abs, "bnot": np.invert}
_ROUNDING: dict[str, Callable[[Numbers], Numbers]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": lambda a: np.floor(a) + (a - np.floor(a) >= 0.5),
}
_COMPARISONS: dict[str, Callable[[Any, Any], Truths]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_PICKED = ("min", "max")
"""Functions whose value is one of their arguments, which may be written in another way than its number."""


class Arrays:
    """Expressions over the columns of a relation."""

    def __init__(self, dictionary: Dictionary, relation: Relation) -> None:
        self.dictionary = dictionary
        self.relation = relation

    # Numbers.

    def number(self, expression: Expression) -> Column | None:
        """The value of a call as a new number; None where it is no number for certain."""
        if not isinstance(expression, Call) or expression.function in _PICKED:
            return None
        column = self._number(expression)
        return None if column is None or column.rounded else column

    def _number(self, expression: Expression) -> Column | None:
        if isinstance(expression, Variable):
            return self._variable(self.relation.columns[expression.name])
        if isinstance(expression, Literal):
            return self._literal(expression)
        if not isinstance(expression, Call):
            return None
        function, arguments = expression.function, expression.arguments
        if function in _UNARY and len(arguments) == 1:
            return self._apply_unary(function, self._number(arguments[0]))
        if function in _ROUNDING:
            return _round(function, self._number(arguments[0]))
        if len(arguments) == 2 and (function in _WHOLE or function in _REAL or function == "pow"):
            a, b = map(self._number, arguments)
            return None if a is None or b is None or a.rounded or b.rounded else _apply_binary(function, a, b)
        return None

    def _variable(self, ids: Ids) -> Column | None:
        kinds = self.dictionary.kinds(ids)
        whole = kinds == INTEGER
        real = kinds == DOUBLE
        if whole.sum() >= real.sum():
            return Column(self.dictionary.integers(ids), whole) if whole.any() else None
        return Column(self.dictionary.doubles(ids), real)

    def _literal(self, term: Literal) -> Column | None:
        if term.datatype not in (XSD_INTEGER, XSD_DECIMAL, XSD_DOUBLE):
            return None
        try:
            value = number(term)
        except NoValue:
            return None
        kind = np.int64 if isinstance(value, int) else np.float64
        known = np.ones(self.relation.rows, np.bool_)
        return Column(np.full(self.relation.rows, value, kind), known, rounded=term.datatype == XSD_DECIMAL)

    def _apply_unary(self, function: str, column: Column | None) -> Column | None:
        if column is None or column.rounded or (column.is_double and function == "bnot"):
            return None
        known = column.known if column.is_double else column.known & _are_below(_SAFE, column.values)
        return Column(_UNARY[function](column.values), known)

    # Truths.

    def truths(self, condition: Expression) -> tuple[Truths, Truths]:
        """Whether a condition holds in each row, and for which rows that is known."""
        if not isinstance(condition, Call):
            return self._nothing()
        function, arguments = condition.function, condition.arguments
        if function in ("and", "or"):
            return self._combine_truths(function == "or", *map(self.truths, arguments))
        if function == "not":
            holds, known = self.truths(arguments[0])
            return ~holds, known
        if function == "sameterm":
            return self._compare_terms(*arguments)
        if function in _COMPARISONS:
            return self._compare_values(function, *arguments)
        if function == "regex":
            return self._search(*arguments)
        if function == "match":
            return self._match(*arguments)
        return self._nothing()

    def _nothing(self) -> tuple[Truths, Truths]:
        return np.zeros(self.relation.rows, np.bool_), np.zeros(self.relation.rows, np.bool_)

    def _combine_truths(
        self, decides: bool, a: tuple[Truths, Truths], b: tuple[Truths, Truths]
    ) -> tuple[Truths, Truths]:
        """`&&` and `||`: known where both sides are, or one of them decides."""
        decided = [known & (holds == decides) for holds, known in (a, b)]
        holds = a[0] | b[0] if decides else a[0] & b[0]
        either = decided[0] | decided[1]
        return np.where(either, decides, holds), (a[1] & b[1]) | either

    def _compare_terms(self, left: Expression, right: Expression) -> tuple[Truths, Truths]:
        x, y = self._ids(left), self._ids(right)
        if x is None or y is None:
            return self._nothing()
        return x == y, np.ones(self.relation.rows, np.bool_)

    def _ids(self, expression: Expression) -> Ids | None:
        if isinstance(expression, Variable):
            return self.relation.columns[expression.name]
        if isinstance(expression, Call):
            column = self.number(expression)
            if column is None or column.is_double or not column.known.all():
                return None
            return self.dictionary.encode_integers(column.values)
        return np.full(self.relation.rows, self.dictionary.encode_terms([expression])[0], np.uint32)

    def _compare_values(self, function: str, left: Expression, right: Expression) -> tuple[Truths, Truths]:
        compare = _COMPARISONS[function]
        m, n = self._number(left), self._number(right)
        if m is not None and n is not None:
            if m.is_double or n.is_double:
                m, n = m.as_double(), n.as_double()
            known = m.known & n.known
            if m.rounded or n.rounded:
                sizes = np.abs(m.values) + np.abs(n.values)
                known = known & (np.abs(m.values - n.values) > _DOUBT * sizes)
            return compare(m.values, n.values), known
        if isinstance(left, Call) or isinstance(right, Call):
            return self._nothing()
        x, y = self._ids(left), self._ids(right)
        assert x is not None, "variables and constants have ids"
        assert y is not None, "variables and constants have ids"
        if function in ("eq", "ne"):
            plain = (self.dictionary.kinds(x) == PLAIN) & (self.dictionary.kinds(y) == PLAIN)
            return compare(x, y), plain
        return self._compare_strings(compare, x, y)

    def _search(
        self, subject: Expression, regex: Expression, flags: Expression | None = None
    ) -> tuple[Truths, Truths]:
        if not isinstance(regex, Literal) or not (flags is None or isinstance(flags, Literal)):
            return self._nothing()
        letters = flags.lexical if flags is not None else ""
        pattern = common_pattern(regex.lexical, letters)
        if pattern is not None and "m" not in letters:
            pattern = end_of_text(pattern)
        return self._find_pattern(subject, pattern)

    def _match(self, regex: Expression, subject: Expression) -> tuple[Truths, Truths]:
        pattern = common_pattern(regex.lexical) if isinstance(regex, Literal) else None
        return self._find_pattern(subject, None if pattern is None else rf"\A(?:{end_of_text(pattern)})\z")

    def _find_pattern(self, subject: Expression, pattern: str | None) -> tuple[Truths, Truths]:
        """In plain strings, in time that grows with their length, whatever the pattern."""
        if pattern is None or not isinstance(subject, Variable):
            return self._nothing()
        strings, is_string, inverse = self._strings(subject)
        found = np.zeros(len(is_string), np.bool_)
        try:
            found[is_string] = pc.match_substring_regex(strings, pattern).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            return self._nothing()
        return found[inverse], is_string[inverse]

    def _strings(self, variable: Variable) -> tuple[pa.Array, Truths, NDArray[Any]]:
        """The different plain strings of a column, which of its different terms they are, and which of these each row has."""
        ids, inverse = number_distinct(self.relation.columns[variable.name])
        texts = self.dictionary.texts(ids)
        is_string = np.array([t[0] == '"' and t[-1] == '"' for t in texts], np.bool_)
        return pa.array([unquote(t) for t in compress(texts, is_string)], pa.string()), is_string, inverse

    def replaced(self, expression: Expression) -> tuple[list[str], NDArray[np.int64], Truths] | None:
        """What REPLACE makes of the plain strings of a variable: different ones, which each row has, and for which rows it is known."""
        if not isinstance(expression, Call) or expression.function != "replace":
            return None
        subject, *words = expression.arguments
        literals = [w for w in words if isinstance(w, Literal)]
        if not isinstance(subject, Variable) or len(literals) < len(words):
            return None
        regex, wanted, letters = (*(w.lexical for w in literals), "")[:3]
        pattern = common_pattern(regex, letters)
        if pattern is None or set(wanted) & set("$\\"):
            return None
        strings, is_string, inverse = self._strings(subject)
        try:
            if pc.match_substring_regex(pa.array([""]), rf"\A(?:{pattern})")[0].as_py():
                return None  # it has no value
            pattern = pattern if "m" in letters else end_of_text(pattern)
            values = pc.replace_substring_regex(strings, pattern, wanted).to_pylist()
        except pa.ArrowInvalid:
            return None
        places = np.cumsum(is_string) - 1
        return values, places[inverse], is_string[inverse]

    def _compare_strings(
        self, compare: Callable[[Any, Any], Truths], x: Ids, y: Ids
    ) -> tuple[Truths, Truths]:
        """Plain strings by the order of their characters."""
        ids = np.unique(np.concatenate([x, y]))
        plain = np.flatnonzero(self.dictionary.kinds(ids) == PLAIN)
        texts = self.dictionary.texts(ids[plain])
        strings = [(unquote(t), i) for t, i in zip(texts, plain.tolist(), strict=True) if t[0] == '"']
        ranks = np.full(len(ids), -1, np.int64)
        strings.sort()
        ranks[[i for _, i in strings]] = np.arange(len(strings))
        a, b = (ranks[np.searchsorted(ids, side)] for side in (x, y))
        return compare(a, b), (a >= 0) & (b >= 0)


def _round(function: str, column: Column | None) -> Column | None:
    if column is None or column.rounded or not column.is_double:
        return column if column is None or not column.rounded else None
    return Column(_ROUNDING[function](column.values) + 0.0, column.known)  # 0.0 for -0.0


def _apply_binary(function: str, a: Column, b: Column) -> Column | None:
    with np.errstate(all="ignore"):
        if a.is_double or b.is_double:
            if function not in _REAL:
                return None
            x, y = a.as_double(), b.as_double()
            return Column(_REAL[function](x.values, y.values), x.known & y.known)
        known = a.known & b.known
        if function in ("idiv", "mod", "div"):
            known = known & (b.values != 0) & _are_below(_SAFE, a.values) & _are_below(_SAFE, b.values)
            divisor = np.where(b.values == 0, 1, b.values)
            if function == "div":
                return Column(a.values / divisor, known, rounded=True)
            return Column(_WHOLE[function](a.values, divisor), known)
        if function == "pow":
            known = known & (b.values >= 0)
            exponent = np.where(b.values < 0, 0, b.values)
            known &= np.power(np.abs(a.values.astype(np.float64)), exponent) < _SAFE
            return Column(np.power(a.values, exponent), known)
        if function in ("add", "sub", "mul"):
            m, n = np.abs(a.values.astype(np.float64)), np.abs(b.values.astype(np.float64))
            known = known & ((m * n if function == "mul" else m + n) < _SAFE)
        return Column(_WHOLE[function](a.values, b.values), known)
