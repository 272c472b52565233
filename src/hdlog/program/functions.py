"""What the built-in functions mean, one term at a time.

This is the definition: engines may compute in bulk, but must agree with it. A function that has
no value for its arguments (a type error, a division by zero, an integer beyond 64 bits) raises
`NoValue`; a rule then has no match, as a filter that fails.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, DecimalException
from fractions import Fraction
from functools import lru_cache
from urllib.parse import quote

from hdlog.program.model import AggregateCall, Call, Expression
from hdlog.program.ntriples import is_iri, is_language
from hdlog.program.terms import (
    LANG_STRING,
    UNBOUND,
    XSD,
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATETIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    XSD_STRING,
    BlankNode,
    Constant,
    Iri,
    Literal,
    Skolem,
    Variable,
    boolean,
    decimal,
    double,
    integer,
    string,
)

IS_BOUND, VALUE = "#bound", "#value"
"""Functions of queries, which no rule can name: whether there is a value, and that value."""
RANDOM, UUID, UUID_TEXT, NEW_NODE = "#random", "#uuid", "#struuid", "#bnode"
"""Likewise: a new value in each row, whose number is the first argument."""


class NoValue(Exception):
    """The expression has no value for this row."""


Number = int | Decimal | float
INTEGER_TYPES = frozenset(
    XSD + name
    for name in [
        "integer",
        "int",
        "long",
        "short",
        "byte",
        "nonNegativeInteger",
        "positiveInteger",
        "nonPositiveInteger",
        "negativeInteger",
        "unsignedLong",
        "unsignedInt",
        "unsignedShort",
        "unsignedByte",
    ]
)
NUMERIC_TYPES = INTEGER_TYPES | {XSD_DECIMAL, XSD_FLOAT, XSD_DOUBLE}
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1
EXACT = Context(prec=34)
"""How decimals are rounded."""
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SPECIAL_DOUBLES = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
_DATETIME = re.compile(
    r"(-?[0-9]{4,9})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"(?:T([01][0-9]|2[0-4]):([0-5][0-9]):([0-5][0-9](?:\.[0-9]{1,30})?))?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)


# Terms to Python values and back.


def number(term: Constant) -> Number:
    if isinstance(term, Literal) and term.datatype in NUMERIC_TYPES:
        if term.datatype in INTEGER_TYPES:
            if _INTEGER.fullmatch(term.lexical) and len(term.lexical) < 25:
                return _require_64_bits(int(term.lexical))
        elif term.datatype == XSD_DECIMAL:
            if _DECIMAL.fullmatch(term.lexical):
                return Decimal(term.lexical)
        elif term.lexical in _SPECIAL_DOUBLES:
            return _SPECIAL_DOUBLES[term.lexical]
        elif _DOUBLE.fullmatch(term.lexical):
            return float(term.lexical)
    raise NoValue


def _require_64_bits(value: int) -> int:
    if MIN_INTEGER <= value <= MAX_INTEGER:
        return value
    raise NoValue


def from_number(value: Number) -> Literal:
    if isinstance(value, int):
        return integer(_require_64_bits(value))
    return decimal(value) if isinstance(value, Decimal) else double(value)


def text(term: Constant) -> str:
    """The string of a string or language-tagged literal."""
    if isinstance(term, Literal) and term.datatype in (XSD_STRING, LANG_STRING):
        return term.lexical
    raise NoValue


def text_of(term: Constant) -> str:
    """What STR gives: the IRI, or the lexical form of any literal."""
    if isinstance(term, Iri):
        return term.value
    if isinstance(term, Literal):
        return term.lexical
    raise NoValue


def truth(term: Constant) -> bool:
    """The effective boolean value."""
    if isinstance(term, Literal):
        if term.datatype == XSD_BOOLEAN:
            if term.lexical in ("true", "1"):
                return True
            if term.lexical in ("false", "0"):
                return False
        elif term.datatype in (XSD_STRING, LANG_STRING):
            return term.lexical != ""
        elif term.datatype in NUMERIC_TYPES:
            value = number(term)
            return not (value == 0 or value != value)
    raise NoValue


def moment(term: Constant) -> tuple[float, ...]:
    """Minutes since an epoch, and seconds, of a date or dateTime; moved to UTC where a zone is given."""
    if isinstance(term, Literal) and term.datatype in (XSD_DATE, XSD_DATETIME):
        match = _DATETIME.fullmatch(term.lexical)
        if match:
            year, month, day, hours, minutes, seconds, zone = match.groups()
            if int(day) > _month_length(int(year), int(month)):
                raise NoValue
            if hours == "24" and (int(minutes) or float(seconds)):
                raise NoValue
            shift = 0
            if zone and zone != "Z":
                sign = -1 if zone[0] == "-" else 1
                shift = sign * (int(zone[1:3]) * 60 + int(zone[4:6]))
                if abs(shift) > _WIDEST_ZONE or int(zone[4:6]) > 59:
                    raise NoValue
            at = (_days(int(year), int(month), int(day)) * 24 + int(hours or 0)) * 60
            return (at + int(minutes or 0) - shift, float(seconds or 0))
    raise NoValue


_WIDEST_ZONE = 14 * 60


def _month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days(year: int, month: int, day: int) -> int:
    """Days since an epoch in the proleptic Gregorian calendar, any year."""
    year, month = (year - 1, month + 12) if month <= 2 else (year, month)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day


_SECONDS = 6


def _make_part(index: int) -> Callable[[Constant], Constant]:
    def part(term: Constant) -> Constant:
        if isinstance(term, Literal) and term.datatype in (XSD_DATE, XSD_DATETIME):
            match = _DATETIME.fullmatch(term.lexical)
            if match and match.group(index):
                moment(term)  # a day that is in no calendar has no parts
                value = match.group(index)
                return decimal(Decimal(value)) if index == _SECONDS else integer(int(value))
        raise NoValue

    return part


# Order and equality by value.


def order_key(term: Constant) -> tuple[str, object]:
    """Kind and value: values of one kind are ordered, others are not."""
    if isinstance(term, Iri):
        return ("iri", term.value)
    if isinstance(term, Literal):
        if term.datatype in NUMERIC_TYPES:
            return ("number", number(term))
        if term.datatype == XSD_STRING:
            return ("string", term.lexical)
        if term.datatype == LANG_STRING:
            return ("text", (term.lexical, term.language))
        if term.datatype == XSD_BOOLEAN:
            return ("boolean", truth(term))
        if term.datatype in (XSD_DATE, XSD_DATETIME):
            return (term.datatype, moment(term))
    raise NoValue


def _is_same_value(a: Constant, b: Constant) -> bool:
    try:
        (kind_a, value_a), (kind_b, value_b) = order_key(a), order_key(b)
        return kind_a == kind_b and value_a == value_b
    except NoValue:
        return a == b


def _make_comparison(test: Callable[[object, object], bool]) -> Callable[[Constant, Constant], Constant]:
    def compare(a: Constant, b: Constant) -> Constant:
        (kind_a, value_a), (kind_b, value_b) = order_key(a), order_key(b)
        if kind_a != kind_b:
            raise NoValue
        # NaN is in no order, and decimals refuse to be compared with it.
        ordered = value_a == value_a and value_b == value_b
        return boolean(ordered and test(value_a, value_b))

    return compare


def total_order_key(term: Constant) -> tuple[object, ...]:
    """A total order on constants that agrees with `order_key` within a kind; used by min and max."""
    try:
        kind, value = order_key(term)
        if value != value:
            return ("~", str(term))
        return (kind, value, str(term))
    except NoValue:
        return ("~", str(term))


# Arithmetic.


def _widen(a: Number, b: Number) -> tuple[Number, Number]:
    """Both as integers, decimals or doubles: the wider of the two."""
    if isinstance(a, float) or isinstance(b, float):
        return float(a), float(b)
    if isinstance(a, Decimal) or isinstance(b, Decimal):
        return Decimal(a), Decimal(b)
    return a, b


def _make_arithmetic(
    ints: Callable[[int, int], Number],
    decimals: Callable[[Decimal, Decimal], Decimal],
    floats: Callable[[float, float], float],
) -> Callable[[Constant, Constant], Constant]:
    def apply(a: Constant, b: Constant) -> Constant:
        x, y = _widen(number(a), number(b))
        try:
            if isinstance(x, int) and isinstance(y, int):
                return from_number(ints(x, y))
            if isinstance(x, Decimal) and isinstance(y, Decimal):
                return from_number(decimals(x, y))
            return from_number(floats(float(x), float(y)))
        except (ArithmeticError, DecimalException, ValueError):
            raise NoValue from None

    return apply


def _quotient(a: int, b: int) -> int:
    """Integer division towards zero, as in C and in Soufflé."""
    if b == 0:
        raise NoValue
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _remainder(a: int, b: int) -> int:
    return a - b * _quotient(a, b)


def _float_division(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _float_power(a: float, b: float) -> float:
    return math.pow(a, b)


def _int_power(a: int, b: int) -> int:
    if b < 0 or (abs(a) > 1 and b > 64):
        raise NoValue
    return int(a**b)


def _make_integer_operation(apply: Callable[[int, int], int]) -> Callable[[Constant, Constant], Constant]:
    def on_terms(a: Constant, b: Constant) -> Constant:
        x, y = number(a), number(b)
        if isinstance(x, int) and isinstance(y, int):
            return integer(_require_64_bits(apply(x, y)))
        raise NoValue

    return on_terms


def _wrap_to_64_bits(value: int) -> int:
    """`value` as a signed 64-bit word."""
    return (value + 2**63) % 2**64 - 2**63


def _make_unary(apply: Callable[[Number], Number]) -> Callable[[Constant], Constant]:
    def on_term(a: Constant) -> Constant:
        value = number(a)
        if isinstance(value, float) and not math.isfinite(value) and apply not in (_negate, _drop_sign):
            return double(value)
        return from_number(apply(value))

    return on_term


def _negate(value: Number) -> Number:
    return value.copy_negate() if isinstance(value, Decimal) else -value


def _drop_sign(value: Number) -> Number:
    return value.copy_abs() if isinstance(value, Decimal) else abs(value)


def _make_rounding(to_integral: Callable[[Number], int]) -> Callable[[Constant], Constant]:
    """CEIL and its kin keep the type of their argument."""

    def apply(value: Number) -> Number:
        return type(value)(to_integral(value))

    return _make_unary(apply)


def _round_half_up(value: Number) -> int:
    below = math.floor(value)
    return below + (Fraction(value) - below >= Fraction(1, 2))


def _make_extremum(pick: Callable[..., Constant]) -> Callable[..., Constant]:
    def apply(*terms: Constant) -> Constant:
        if len({order_key(t)[0] for t in terms}) != 1:
            raise NoValue
        return pick(terms, key=total_order_key)

    return apply


# Strings. A result keeps the language of the first argument, as in SPARQL.


def _like(original: Constant, value: str) -> Constant:
    assert isinstance(original, Literal)
    return Literal(value, original.datatype, original.language)


def _make_text_change(change: Callable[[str], str]) -> Callable[[Constant], Constant]:
    return lambda a: _like(a, change(text(a)))


def _make_text_test(check: Callable[[str, str], bool]) -> Callable[[Constant, Constant], Constant]:
    return lambda a, b: boolean(check(*_require_compatible(a, b)))


def _require_compatible(a: Constant, b: Constant) -> tuple[str, str]:
    """Two strings, the second without a language or with that of the first, as SPARQL asks."""
    values = text(a), text(b)
    if isinstance(a, Literal) and isinstance(b, Literal) and b.language not in ("", a.language):
        raise NoValue
    return values


def _position(term: Constant) -> int:
    value = number(term)
    if isinstance(value, float) and not math.isfinite(value):
        raise NoValue
    return _round_half_up(value)


def _substr(a: Constant, start: Constant, length: Constant | None = None) -> Constant:
    """SPARQL's SUBSTR: positions count from 1."""
    first, value = _position(start), text(a)
    last = len(value) + 1 if length is None else first + _position(length)
    return _like(a, value[max(first, 1) - 1 : max(last, 1) - 1])


def _byte_count(a: Constant) -> Constant:
    """Soufflé's strlen."""
    return integer(len(text(a).encode()))


def _byte_substr(a: Constant, start: Constant, length: Constant) -> Constant:
    """Soufflé's substr: positions count bytes from 0; a character that is cut in two becomes U+FFFD."""
    first, count, value = _position(start), _position(length), text(a).encode()
    if first < 0 or count < 0:
        return string("")
    return string(value[first : first + count].decode(errors="replace"))


def _souffle_text(a: Constant) -> Constant:
    """Soufflé's to_string: floats with six digits behind the point."""
    if isinstance(a, Literal) and a.datatype in (XSD_DOUBLE, XSD_FLOAT):
        value = float(number(a))
        return string(f"{value:f}")
    return string(text_of(a))


_SOUFFLE_INTEGER = re.compile(r"[+-]?[0-9]+|-?0x[0-9a-fA-F]+|-?0b[01]+")


def _souffle_number(a: Constant) -> Constant:
    """Soufflé's to_number: decimal, 0x or 0b digits; of a float what is before the point."""
    if isinstance(a, Literal) and a.datatype == XSD_STRING:
        if not _SOUFFLE_INTEGER.fullmatch(a.lexical) or len(a.lexical) > 70:
            raise NoValue
        base = {"0x": 16, "0b": 2}.get(a.lexical.lstrip("-")[:2], 10)
        return integer(_require_64_bits(int(a.lexical, base)))
    return _to_integer(a)


def _souffle_unsigned(a: Constant) -> Constant:
    term = _souffle_number(a)
    if number(term) < 0:
        raise NoValue
    return term


def _before(a: Constant, b: Constant) -> Constant:
    whole, mark = _require_compatible(a, b)
    head, separator, _ = whole.partition(mark) if mark else ("", "", "")
    return _like(a, head) if separator or not mark else string("")


def _after(a: Constant, b: Constant) -> Constant:
    whole, mark = _require_compatible(a, b)
    _, separator, tail = whole.partition(mark) if mark else ("", "", whole)
    return _like(a, tail) if separator or not mark else string("")


_POSIX = {
    "alpha": "A-Za-z",
    "digit": "0-9",
    "alnum": "A-Za-z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "xdigit": "0-9A-Fa-f",
    "space": r" \t\n\r\f\v",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
    "cntrl": r"\x00-\x1f\x7f",
    "graph": "!-~",
    "print": " -~",
    "w": "A-Za-z0-9_",
    "d": "0-9",
    "s": r" \t\n\r\f\v",
}
_POSIX_CLASS = re.compile(r"\[:(\w+):\]")
_DOLLAR = re.compile(r"(\\.|\[(?:\\.|[^\]])*\])|\$", re.DOTALL)
_TEMPLATE = re.compile(r"\\([\\$])|\$([0-9])|(\\)")


def is_pattern(regex: str, flags: str = "") -> bool:
    try:
        _pattern(regex, flags)
    except NoValue:
        return False
    return True


def _posix_class(match: re.Match[str]) -> str:
    if match.group(1) not in _POSIX:
        raise NoValue
    return _POSIX[match.group(1)]


@lru_cache(maxsize=1024)
def _pattern(regex: str, flags: str = "") -> re.Pattern[str]:
    regex = _POSIX_CLASS.sub(_posix_class, regex)
    bits = 0
    for flag in flags:
        if flag not in "imsx":
            raise NoValue
        bits |= {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}[flag]
    if "m" not in flags:
        # `$` is the end of the string in XPath, not the end before a last newline.
        regex = end_of_text(regex, r"\Z")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(regex, bits)
    except (re.error, RecursionError, OverflowError):
        raise NoValue from None


def end_of_text(regex: str, mark: str = r"\z") -> str:
    """A pattern whose `$` is the very end, also where the text ends with a new line."""
    return _DOLLAR.sub(lambda m: m.group(1) or mark, regex)


_AGREED = re.compile(r"(?:[ -Z^-~\]]|\\[!-/:-@\[-`{-~]|\[(?!:))*", re.ASCII)
_ELSEWHERE = re.compile(r"\(\?|\{,|[*+?}][+]")
"""groups with a meaning, counts without a lower bound, and repetitions that give nothing back"""


def common_pattern(regex: str, flags: str = "") -> str | None:
    """A pattern in the words that Python shares with libraries that match in linear time; None if it has others."""
    if not is_pattern(regex, flags) or not set(flags) <= set("ims"):
        return None
    regex = _POSIX_CLASS.sub(_posix_class, regex)
    if not _AGREED.fullmatch(regex) or _ELSEWHERE.search(regex):
        return None
    return f"(?{''.join(sorted(set(flags)))}){regex}" if flags else regex


def _regex(a: Constant, regex: Constant, flags: Constant | None = None) -> Constant:
    return boolean(bool(_pattern(text(regex), text(flags) if flags else "").search(text(a))))


def _match(regex: Constant, a: Constant) -> Constant:
    """Soufflé's match: the whole string matches."""
    return boolean(bool(_pattern(text(regex)).fullmatch(text(a))))


def _replace(a: Constant, regex: Constant, replacement: Constant, flags: Constant | None = None) -> Constant:
    pattern = _pattern(text(regex), text(flags) if flags else "")
    if pattern.match(""):
        raise NoValue
    wanted = text(replacement)

    def expand_match(match: re.Match[str]) -> str:
        def fill_mark(mark: re.Match[str]) -> str:
            if mark.group(2):
                number = int(mark.group(2))
                return (match.group(number) or "") if number <= pattern.groups else ""
            return mark.group(1) or "\\"

        return _TEMPLATE.sub(fill_mark, wanted)

    return _like(a, pattern.sub(expand_match, text(a)))


def _concat(*terms: Constant) -> Constant:
    values = [text(t) for t in terms]
    languages = {t.language for t in terms if isinstance(t, Literal)}
    language = languages.pop() if len(languages) == 1 else ""
    return Literal("".join(values), LANG_STRING if language else XSD_STRING, language)


def _lang_matches(a: Constant, wanted: Constant) -> Constant:
    tag, prefix = text(a).lower(), text(wanted).lower()
    if prefix == "*":
        return boolean(tag != "")
    return boolean(tag == prefix or tag.startswith(prefix + "-"))


# Constructors, tests and casts.


def _lang(a: Constant) -> Constant:
    if isinstance(a, Literal):
        return string(a.language)
    raise NoValue


def _datatype(a: Constant) -> Constant:
    if isinstance(a, Literal):
        return Iri(a.datatype)
    raise NoValue


def _strdt(a: Constant, datatype: Constant) -> Constant:
    if isinstance(datatype, Iri) and isinstance(a, Literal) and a.datatype == XSD_STRING:
        if datatype.value == LANG_STRING:
            raise NoValue
        return Literal(a.lexical, datatype.value)
    raise NoValue


def _strlang(a: Constant, language: Constant) -> Constant:
    if isinstance(a, Literal) and a.datatype == XSD_STRING and is_language(text(language)):
        return Literal(a.lexical, LANG_STRING, text(language).lower())
    raise NoValue


def _iri(a: Constant) -> Constant:
    if isinstance(a, Iri):
        return a
    if not is_iri(text(a)):
        raise NoValue
    return Iri(text(a))


def _skolem(name: Constant, *arguments: Constant) -> Constant:
    return Skolem(text(name), arguments)


def _new_node(row: Constant, label: Constant | None = None) -> Constant:
    """A blank node of the row; with a label, the same one for the same label."""
    name = text_of(row) if label is None else f"{text_of(row)}.{text(label).encode().hex()}"
    return BlankNode(f"query.{_QUERY}.{name}")


_QUERY = uuid.uuid4().hex[:8]
"""Tells blank nodes that queries make from those of other processes."""


def _make_digest(name: str) -> Callable[[Constant], Constant]:
    def digest(a: Constant) -> Constant:
        if not isinstance(a, Literal) or a.datatype != XSD_STRING:
            raise NoValue
        return string(hashlib.new(name, a.lexical.encode(), usedforsecurity=False).hexdigest())

    return digest


def _zone(a: Constant) -> str:
    """What stands for the time zone of a moment, nothing if it has none."""
    moment(a)
    assert isinstance(a, Literal)
    match = _DATETIME.fullmatch(a.lexical)
    return (match.group(7) or "") if match is not None else ""


def _timezone(a: Constant) -> Constant:
    zone = _zone(a)
    if not zone:
        raise NoValue
    if zone in ("Z", "+00:00", "-00:00"):
        return Literal("PT0S", XSD + "dayTimeDuration")
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    parts = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    return Literal(f"{'-' if zone[0] == '-' else ''}PT{parts}", XSD + "dayTimeDuration")


def _require_value(a: Constant) -> Constant:
    if a == UNBOUND:
        raise NoValue
    return a


def _make_kind_test(*kinds: type) -> Callable[[Constant], Constant]:
    return lambda a: boolean(isinstance(a, kinds))


def _is_numeric(a: Constant) -> Constant:
    try:
        number(a)
    except NoValue:
        return boolean(False)
    return boolean(True)


def _number_source(a: Constant) -> str | Number:
    """What a cast to a number starts from."""
    if isinstance(a, Literal) and a.datatype == XSD_BOOLEAN:
        return int(truth(a))
    if isinstance(a, Literal) and a.datatype == XSD_STRING:
        return a.lexical.strip()
    return number(a)


def _to_integer(a: Constant) -> Constant:
    source = _number_source(a)
    if isinstance(source, str):
        return from_number(number(Literal(source, XSD_INTEGER)))
    if isinstance(source, float) and not math.isfinite(source):
        raise NoValue
    return from_number(int(source))


def _make_bounded(bits: int) -> Callable[[Constant], Constant]:
    def cast(a: Constant) -> Constant:
        term = _to_integer(a)
        if not -(1 << bits - 1) <= number(term) < 1 << bits - 1:
            raise NoValue
        return term

    return cast


def _to_decimal(a: Constant) -> Constant:
    source = _number_source(a)
    if isinstance(source, str):
        return from_number(number(Literal(source, XSD_DECIMAL)))
    if isinstance(source, float) and not math.isfinite(source):
        raise NoValue
    return from_number(Decimal(source))


def _to_double(a: Constant) -> Constant:
    source = _number_source(a)
    if isinstance(source, str):
        return from_number(number(Literal(source, XSD_DOUBLE)))
    return double(float(source))


def _to_float(a: Constant) -> Constant:
    term = _to_double(a)
    assert isinstance(term, Literal)
    return Literal(term.lexical, XSD_FLOAT)


def _to_boolean(a: Constant) -> Constant:
    if isinstance(a, Literal) and a.datatype == XSD_STRING:
        return boolean(truth(Literal(a.lexical, XSD_BOOLEAN)))
    return boolean(truth(a))


_DATE_WIDTH = len("2020-01-01")
_ZONE = re.compile(r"(Z|[+-][0-9]{2}:[0-9]{2})$")


def _to_datetime(a: Constant) -> Constant:
    whole = text_of(a)
    if "T" not in whole:
        whole = f"{whole[:_DATE_WIDTH]}T00:00:00{whole[_DATE_WIDTH:]}"
    term = Literal(whole, XSD_DATETIME)
    moment(term)
    return term


def _to_date(a: Constant) -> Constant:
    day, _, clock = text_of(a).partition("T")
    zone = _ZONE.search(clock)
    term = Literal(day + (zone.group() if zone else ""), XSD_DATE)
    moment(term)
    return term


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    least: int
    most: int | None
    apply: Callable[..., Constant]

    def accepts(self, count: int) -> bool:
        return self.least <= count and (self.most is None or count <= self.most)


def _refuse_call(*_: Constant) -> Constant:
    raise AssertionError("evaluated by `evaluate`, which does not need all arguments")


def _functions() -> dict[str, Function]:
    def f(name: str, least: int, most: int | None, apply: Callable[..., Constant]) -> Function:
        return Function(name, least, most, apply)

    listed = [
        f("add", 2, 2, _make_arithmetic(lambda a, b: a + b, EXACT.add, lambda a, b: a + b)),
        f("sub", 2, 2, _make_arithmetic(lambda a, b: a - b, EXACT.subtract, lambda a, b: a - b)),
        f("mul", 2, 2, _make_arithmetic(lambda a, b: a * b, EXACT.multiply, lambda a, b: a * b)),
        f(
            "div",
            2,
            2,
            _make_arithmetic(
                lambda a, b: EXACT.divide(Decimal(a), Decimal(b)), EXACT.divide, _float_division
            ),
        ),
        f("idiv", 2, 2, _make_integer_operation(_quotient)),
        f("mod", 2, 2, _make_integer_operation(_remainder)),
        f("pow", 2, 2, _make_arithmetic(_int_power, lambda a, b: EXACT.power(a, b), _float_power)),
        f("neg", 1, 1, _make_unary(_negate)),
        f("abs", 1, 1, _make_unary(_drop_sign)),
        f("ceil", 1, 1, _make_rounding(math.ceil)),
        f("floor", 1, 1, _make_rounding(math.floor)),
        f("round", 1, 1, _make_rounding(_round_half_up)),
        f("min", 2, None, _make_extremum(min)),
        f("max", 2, None, _make_extremum(max)),
        f("band", 2, 2, _make_integer_operation(lambda a, b: a & b)),
        f("bor", 2, 2, _make_integer_operation(lambda a, b: a | b)),
        f("bxor", 2, 2, _make_integer_operation(lambda a, b: a ^ b)),
        f("bshl", 2, 2, _make_integer_operation(lambda a, b: _wrap_to_64_bits(a << (b & 63)))),
        f("bshr", 2, 2, _make_integer_operation(lambda a, b: a >> (b & 63))),
        f("bnot", 1, 1, lambda a: _make_integer_operation(lambda x, _: ~x)(a, a)),
        f("eq", 2, 2, lambda a, b: boolean(_is_same_value(a, b))),
        f("ne", 2, 2, lambda a, b: boolean(not _is_same_value(a, b))),
        f("lt", 2, 2, _make_comparison(lambda a, b: a < b)),  # type: ignore[operator]
        f("le", 2, 2, _make_comparison(lambda a, b: a <= b)),  # type: ignore[operator]
        f("gt", 2, 2, _make_comparison(lambda a, b: a > b)),  # type: ignore[operator]
        f("ge", 2, 2, _make_comparison(lambda a, b: a >= b)),  # type: ignore[operator]
        f("and", 2, 2, _refuse_call),
        f("or", 2, 2, _refuse_call),
        f("not", 1, 1, lambda a: boolean(not truth(a))),
        f("if", 3, 3, _refuse_call),
        f("coalesce", 1, None, _refuse_call),
        f("in", 1, None, lambda a, *list_: boolean(any(_is_same_value(a, b) for b in list_))),
        f("sameterm", 2, 2, lambda a, b: boolean(a == b)),
        f(IS_BOUND, 1, 1, lambda a: boolean(a != UNBOUND)),
        f(VALUE, 1, 1, _require_value),
        f(RANDOM, 1, 1, lambda _: double(random.random())),
        f(UUID, 1, 1, lambda _: Iri(f"urn:uuid:{uuid.uuid4()}")),
        f(UUID_TEXT, 1, 1, lambda _: string(str(uuid.uuid4()))),
        f(NEW_NODE, 1, 2, _new_node),
        f("str", 1, 1, lambda a: string(text_of(a))),
        f("strlen", 1, 1, lambda a: integer(len(text(a)))),
        f("substr", 2, 3, _substr),
        f("bytelen", 1, 1, _byte_count),
        f("bytesubstr", 3, 3, _byte_substr),
        f("souffle_string", 1, 1, _souffle_text),
        f("souffle_number", 1, 1, _souffle_number),
        f("souffle_unsigned", 1, 1, _souffle_unsigned),
        f("ucase", 1, 1, _make_text_change(str.upper)),
        f("lcase", 1, 1, _make_text_change(str.lower)),
        f("concat", 0, None, _concat),
        f("contains", 2, 2, _make_text_test(lambda a, b: b in a)),
        f("strstarts", 2, 2, _make_text_test(str.startswith)),
        f("strends", 2, 2, _make_text_test(str.endswith)),
        f("strbefore", 2, 2, _before),
        f("strafter", 2, 2, _after),
        f("replace", 3, 4, _replace),
        f("regex", 2, 3, _regex),
        f("match", 2, 2, _match),
        f("encode_for_uri", 1, 1, lambda a: string(quote(text(a), safe="-_.~"))),
        f("lang", 1, 1, _lang),
        f("langmatches", 2, 2, _lang_matches),
        f("datatype", 1, 1, _datatype),
        f("strdt", 2, 2, _strdt),
        f("strlang", 2, 2, _strlang),
        f("iri", 1, 1, _iri),
        f("skolem", 1, None, _skolem),
        f("isiri", 1, 1, _make_kind_test(Iri)),
        f("isblank", 1, 1, _make_kind_test(BlankNode, Skolem)),
        f("isliteral", 1, 1, _make_kind_test(Literal)),
        f("isnumeric", 1, 1, _is_numeric),
        f("year", 1, 1, _make_part(1)),
        f("month", 1, 1, _make_part(2)),
        f("day", 1, 1, _make_part(3)),
        f("hours", 1, 1, _make_part(4)),
        f("minutes", 1, 1, _make_part(5)),
        f("seconds", 1, 1, _make_part(6)),
        f("tz", 1, 1, lambda a: string(_zone(a))),
        f("timezone", 1, 1, _timezone),
        *(f(name, 1, 1, _make_digest(name)) for name in ("md5", "sha1", "sha256", "sha384", "sha512")),
        f(XSD_INTEGER, 1, 1, _to_integer),
        f(XSD_DECIMAL, 1, 1, _to_decimal),
        f(XSD_DOUBLE, 1, 1, _to_double),
        f(XSD_FLOAT, 1, 1, _to_float),
        f(XSD + "int", 1, 1, _make_bounded(32)),
        f(XSD + "long", 1, 1, _to_integer),
        f(XSD_BOOLEAN, 1, 1, _to_boolean),
        f(XSD_STRING, 1, 1, lambda a: string(text_of(a))),
        f(XSD_DATETIME, 1, 1, _to_datetime),
        f(XSD_DATE, 1, 1, _to_date),
    ]
    return {function.name: function for function in listed}


FUNCTIONS: Mapping[str, Function] = _functions()
"""Every built-in function by its name in a `Call`; casts go by the IRI of their type."""


def evaluate(expression: Expression, binding: Mapping[Variable, Constant]) -> Constant:
    """The value of an expression whose variables are all bound, or `NoValue`."""
    if isinstance(expression, Variable):
        return binding[expression]
    if not isinstance(expression, Call):
        return expression
    match expression.function:
        case "and":
            return _evaluate_logical(expression.arguments, binding, decides=False)
        case "or":
            return _evaluate_logical(expression.arguments, binding, decides=True)
        case "if":
            test, yes, no = expression.arguments
            return evaluate(yes if truth(evaluate(test, binding)) else no, binding)
        case "coalesce":
            for argument in expression.arguments:
                try:
                    return evaluate(argument, binding)
                except NoValue:
                    continue
            raise NoValue
    arguments = [evaluate(a, binding) for a in expression.arguments]
    return FUNCTIONS[expression.function].apply(*arguments)


def _evaluate_logical(
    arguments: Sequence[Expression], binding: Mapping[Variable, Constant], decides: bool
) -> Constant:
    """SPARQL's three-valued `&&` and `||`: an argument that decides outweighs one without value."""
    failed = False
    for argument in arguments:
        try:
            if truth(evaluate(argument, binding)) is decides:
                return boolean(decides)
        except NoValue:
            failed = True
    if failed:
        raise NoValue
    return boolean(not decides)


def holds(condition: Expression, binding: Mapping[Variable, Constant]) -> bool:
    try:
        return truth(evaluate(condition, binding))
    except NoValue:
        return False


def aggregate(
    call: AggregateCall, values: Iterable[Constant], times: Iterable[int] | None = None
) -> Constant:
    """The aggregated value of a bag, whatever its order, in which each value occurs so many times; `NoValue` where there is none."""
    bag = list(dict.fromkeys(values)) if call.distinct else list(values)
    counts = [1] * len(bag) if times is None or call.distinct else list(times)
    if call.function == "count":
        return integer(sum(counts))
    if call.function in ("min", "max"):
        if not bag or len({order_key(t)[0] for t in bag}) != 1:
            raise NoValue
        return (min if call.function == "min" else max)(bag, key=total_order_key)
    numbers = [number(t) for t in bag]
    if call.function == "sum":
        return from_number(_total(numbers, counts))
    if not bag:
        raise NoValue
    if not all(math.isfinite(n) for n in numbers):
        return double(sum(map(float, numbers)))
    doubles = any(isinstance(n, float) for n in numbers)
    return mean_of(call, _exact_total(numbers, counts), sum(counts), doubles)


def mean_of(call: AggregateCall, exact: Fraction, count: int, doubles: bool) -> Constant:
    """The mean of finite numbers by their exact sum; `doubles`: whether there is one among them."""
    mean = exact / count
    if call.function == "mean" or doubles:
        return double(_as_double(mean))
    return decimal(quotient(mean))


def quotient(value: Fraction) -> Decimal:
    return EXACT.divide(Decimal(value.numerator), Decimal(value.denominator))


def _as_double(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        raise NoValue from None


def sum_of_doubles(values: Sequence[float]) -> float:
    """The double nearest to the exact sum of finite ones; `NoValue` if that is beyond all doubles."""
    try:
        return math.fsum(values) + 0.0  # a sum of nothing but -0.0 is 0.0
    except OverflowError:
        # On the way, not in the end, perhaps.
        return _as_double(sum(map(Fraction, values), Fraction(0)))


def _total(numbers: Sequence[Number], times: Sequence[int]) -> Number:
    """The sum of numbers, each so many times; exact, so that it does not depend on their order."""
    if any(isinstance(n, float) for n in numbers):
        if not all(math.isfinite(n) for n in numbers):
            return sum(map(float, numbers))
        return _as_double(_exact_total(list(map(float, numbers)), times)) + 0.0
    if any(isinstance(n, Decimal) for n in numbers):
        return quotient(_exact_total(numbers, times))
    return _require_64_bits(sum(int(n) * t for n, t in zip(numbers, times, strict=True)))


def _exact_total(numbers: Sequence[Number], times: Sequence[int]) -> Fraction:
    return sum((Fraction(n) * t for n, t in zip(numbers, times, strict=True)), Fraction(0))
