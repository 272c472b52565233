"""Terms into values: what tables of other programs have in place of a term.

A column gets the type that all its terms share: integers of 64 bits, doubles, booleans, decimals, dates or dateTimes. Otherwise it has
texts: the IRI, the lexical form, the label. Kinds of terms, languages and datatypes are not told apart then; N-Triples keep them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hdlog.program.functions import INTEGER_TYPES, MAX_INTEGER, MIN_INTEGER, NoValue, number, truth
from hdlog.program.ntriples import parse_term
from hdlog.program.terms import (
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATETIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    BlankNode,
    Constant,
    Iri,
    Literal,
)
from hdlog.reading.arrays import string_bytes
from hdlog.reading.values import value_text
from hdlog.writing import kernels

INTEGERS, DOUBLES = pa.int64(), pa.float64()
TEXTS = pa.string()
_LOCAL, _ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
_MOST_DIGITS = 38


def plain_value(term: Constant) -> Any:
    """A term as a Python value."""
    if isinstance(term, Literal):
        try:
            return _convert_literal(term)
        except (NoValue, ValueError, OverflowError):
            pass
    return plain_text(term)


def exact_value(text: str) -> Any:
    """An N-Triples term as the Python value that stands for just this term, or, where there is none, as the term itself."""
    term = parse_term(text)
    if isinstance(term, Literal) and not term.language:
        value = plain_value(term)
        if value_text(value) == text:
            return value
    return term


def _convert_literal(term: Literal) -> Any:
    if term.datatype in INTEGER_TYPES:
        return number(term)
    if term.datatype in (XSD_DOUBLE, XSD_FLOAT):
        return float(number(term))
    if term.datatype == XSD_DECIMAL:
        return number(term)
    if term.datatype == XSD_BOOLEAN:
        return truth(term)
    if term.datatype == XSD_DATE:
        return date.fromisoformat(term.lexical)
    if term.datatype == XSD_DATETIME:
        return datetime.fromisoformat(term.lexical)
    return term.lexical


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


def plain_texts(texts: pa.Array) -> pa.Array:
    """What a table shows for each of some N-Triples terms."""
    data, starts = string_bytes(texts)
    plain, offsets = kernels.plain_texts(data, starts)
    return pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(plain))


@lru_cache(maxsize=1)
def _tests() -> dict[type, Callable[[Any], pa.DataType]]:
    return {
        int: lambda v: INTEGERS if MIN_INTEGER <= v <= MAX_INTEGER else TEXTS,
        float: lambda _: DOUBLES,
        bool: lambda _: pa.bool_(),
        date: lambda _: pa.date32(),
        datetime: lambda v: _LOCAL if v.tzinfo is None else _ZONED,
        Decimal: lambda v: pa.decimal128(_MOST_DIGITS, max(0, -int(v.as_tuple().exponent))),
    }


def column_type(texts: pa.Array) -> pa.DataType:
    """The type of a column with these N-Triples terms, each of them once."""
    typed = pc.and_(pc.starts_with(texts, '"'), pc.ends_with(texts, ">"))
    if not pc.all(typed).as_py():
        return TEXTS
    alike = _shared_type(texts)
    if alike is not None:
        return alike
    kinds: set[pa.DataType] = set()
    for text in texts.to_pylist():
        value = plain_value(parse_term(text))
        kinds.add(_tests().get(type(value), lambda _: TEXTS)(value))
        if TEXTS in kinds or (len(kinds) > 1 and not all(map(pa.types.is_decimal, kinds))):
            return TEXTS
    if len(kinds) > 1:
        return pa.decimal128(_MOST_DIGITS, max(kind.scale for kind in kinds))
    return kinds.pop() if kinds else TEXTS


_ARROW_TYPES = {XSD_DOUBLE: DOUBLES, XSD_DATE: pa.date32()}
"""Types whose values Arrow reads from the forms that terms are kept in, but for some."""


def _shared_type(texts: pa.Array) -> pa.DataType | None:
    """The type of terms that all have the same datatype, where Arrow can read them all."""
    if not len(texts):
        return TEXTS
    mark = texts[0].as_py().rpartition('"')[2]
    kind = _ARROW_TYPES.get(mark[3:-1])
    if kind is None or not pc.all(pc.ends_with(texts, mark)).as_py():
        return None
    return None if _read_plain(texts, kind) is None else kind


def _read_plain(texts: pa.Array, kind: pa.DataType) -> pa.Array | None:
    try:
        return plain_texts(texts).cast(kind)
    except pa.ArrowInvalid:
        return None


def convert_column(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """N-Triples terms as values of a type that fits them all."""
    if kind == TEXTS:
        return plain_texts(texts)
    if kind in _ARROW_TYPES.values():
        values = _read_plain(texts, kind)
        if values is not None:
            return values
    return pa.array([plain_value(parse_term(text)) for text in texts.to_pylist()], kind)
