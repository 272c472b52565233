"""Values of any kind into terms: the one place that says which term a value stands for.

A *typed* value says what it is: a Python object, a cell of an Arrow, pandas, polars or Spark table, of Parquet, of JSON. A string is a
string, whatever it looks like. A *written* value is a field of a text file: what it stands for follows from its look, unless
the program declares a type.

| written | stands for |
|---|---|
| `12`, `-3`, any number of digits, no leading zeros | an integer |
| `1.5`, `-2e10` | a double |
| `true`, `false` | a boolean |
| `2024-02-29`, `2024-02-29T12:30:00Z` | a date, a dateTime |
| `<http://example.org/a>` | an IRI |
| anything else | a string |

Values become ids of a `TermTable`. One that is missing, or is none of its declared type, has the id BAD.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hdlog.errors import InputError
from hdlog.program.functions import NoValue, moment
from hdlog.program.ntriples import parse_term, quote, term_text
from hdlog.program.terms import (
    XSD,
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATETIME,
    XSD_DOUBLE,
    BlankNode,
    Iri,
    Literal,
    Skolem,
    decimal,
    double,
)
from hdlog.program.types import fits
from hdlog.reading import kernels
from hdlog.reading.arrays import Fields
from hdlog.reading.identifiers import INTEGER_LIMIT, INTEGER_MARK, INTEGERS
from hdlog.reading.kernels import Places
from hdlog.reading.shared_terms import Terms

BAD = int(np.iinfo(np.int64).min)
_STRINGS = (pa.string(), pa.large_string(), pa.string_view())
_IRI = r'^[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\]*$'
_XSD_TIME = XSD + "time"
_MOST_DIGITS = {"number": 19, "unsigned": 19, "any": 19, "": 19}
"""How long an integer is at most, by declared type, to be told from its digits alone; longer ones are looked at closer."""

_TERMS = {Iri, Literal, BlankNode, Skolem}

# Typed values, one at a time.


def value_text(value: Any) -> str:
    """A Python value, or a term of hdlog, pyoxigraph or rdflib, as N-Triples text."""
    kind = type(value)
    if kind is str:
        return quote(value)
    if kind is int:
        return f'"{value}{INTEGER_MARK}'
    if isinstance(value, Iri | Literal | BlankNode | Skolem):
        return term_text(value)
    if isinstance(value, np.generic):
        return value_text(value.item())
    if isinstance(value, bool):
        return f'"{str(value).lower()}"^^<{XSD_BOOLEAN}>'
    if isinstance(value, int):
        return f'"{int(value)}{INTEGER_MARK}'
    if isinstance(value, float):
        return term_text(double(value))
    if isinstance(value, Decimal) and value.is_finite():
        return term_text(decimal(value))
    if value is not None and value == value and isinstance(value, datetime | date | time):
        return _time_text(value)
    return graph_text(value)


def _time_text(value: datetime | date | time) -> str:
    """In the canonical form: no more digits of a second than needed, Z for UTC."""
    text = value.isoformat()
    if isinstance(value, datetime | time):
        head, point, rest = text.partition(".")
        if point:
            zone = rest[6:]
            text = f"{head}.{rest[:6].rstrip('0')}{zone}"
        text = f"{text[:-6]}Z" if text.endswith("+00:00") else text
    datatype = (
        XSD_DATETIME if isinstance(value, datetime) else XSD_DATE if isinstance(value, date) else _XSD_TIME
    )
    return f'"{text}"^^<{datatype}>'


def graph_text(term: Any) -> str:
    """A term of pyoxigraph or rdflib, written the one way the dictionary knows it."""
    if type(term).__module__.startswith("pyoxigraph"):
        text = str(term)
    elif hasattr(term, "n3"):
        text = _rdflib_text(term)
    elif _is_missing(term):
        raise InputError("a value is missing; a fact has a value for each of its arguments")
    else:
        raise InputError(f"{term!r} ({type(term).__name__}) is not a value a fact can have")
    return term_text(parse_term(text)) if "\\" in text or "\t" in text or "@" in text else text


def _is_missing(value: Any) -> bool:
    """None, and what pandas has in its place."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _rdflib_text(term: Any) -> str:
    kind = type(term).__name__
    if kind == "URIRef":
        return f"<{term}>"
    if kind == "BNode":
        return f"_:{term}"
    if kind == "Variable":
        raise InputError(f"the variable {term} is not a value a fact can have")
    language, datatype = getattr(term, "language", None), getattr(term, "datatype", None)
    if language:
        return f"{quote(str(term))}@{language.lower()}"
    return f"{quote(str(term))}^^<{datatype}>" if datatype else quote(str(term))


# Typed values, a column at a time.


def column_ids(terms: Terms, column: pa.Array, type_: str) -> Places:
    """The ids of a column of a table, by the type of the column."""
    if column.null_count:
        ids = np.full(len(column), BAD)
        present = column.is_valid()
        ids[present.to_numpy(zero_copy_only=False)] = column_ids(terms, column.filter(present), type_)
        return ids
    if pa.types.is_dictionary(column.type):
        return _spread_ids(column_ids(terms, column.dictionary, type_), column)
    if any(column.type.equals(kind) for kind in _STRINGS):
        if type_ not in ("", "any", "symbol"):
            return np.full(len(column), BAD)
        return terms.add_strings(column.cast(pa.string()))
    if pa.types.is_integer(column.type) and type_ != "float":
        return _integer_ids(terms, column, type_)
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        return np.full(len(column), BAD)
    distinct = column.dictionary_encode()
    return _spread_ids(value_ids(terms, distinct.dictionary.to_pylist(), type_), distinct)


def iri_ids(terms: Terms, column: pa.Array) -> Places:
    """The ids of IRIs that are written without brackets."""
    all_ids = np.full(len(column), BAD)
    good = pc.match_substring_regex(column, _IRI).fill_null(False)
    ids = terms.add_texts(pc.binary_join_element_wise("<", column.filter(good), ">", ""))
    all_ids[good.to_numpy(zero_copy_only=False)] = ids
    return all_ids


def object_ids(terms: Terms, values: Sequence[Any], type_: str) -> Places:
    """The ids of Python objects."""
    kinds = set(map(type, values))
    if kinds <= _TERMS:
        return _intern_texts(terms, [term_text(v) if fits(v, type_) else None for v in values])
    if kinds in ({str}, {int}):
        try:
            return column_ids(terms, pa.array(values), type_)
        except (UnicodeEncodeError, OverflowError):
            pass  # some of them are bad, or large
    # 1, 1.0 and true are equal, and so are 0.0 and -0.0; their texts are not.
    spelt = list(map(repr, values))
    distinct = dict(zip(spelt, values, strict=True))
    ids = dict(zip(distinct, value_ids(terms, list(distinct.values()), type_).tolist(), strict=True))
    return np.fromiter(map(ids.__getitem__, spelt), np.int64, len(spelt))


def _spread_ids(ids: Places, column: pa.DictionaryArray) -> Places:
    """The ids of the values of a column from those of its dictionary."""
    spread: Places = ids[column.indices.to_numpy(zero_copy_only=False)]
    return spread


def _integer_ids(terms: Terms, column: pa.Array, type_: str) -> Places:
    numbers: Places = column.cast(pa.int64(), safe=False).to_numpy(zero_copy_only=False)
    large = (numbers <= -INTEGER_LIMIT) | (numbers >= INTEGER_LIMIT)
    if pa.types.is_uint64(column.type):
        large |= numbers < 0
    ids = numbers + INTEGERS
    if large.any():
        ids[large] = value_ids(terms, column.filter(pa.array(large)).to_pylist(), "number")
    if type_ == "symbol":
        ids[:] = BAD
    elif type_ == "unsigned":
        ids[numbers < 0] = BAD
    return ids


def value_ids(terms: Terms, values: Sequence[Any], type_: str) -> Places:
    """The ids of Python values, each looked at by itself."""
    return _intern_texts(terms, [_convert_value(value, type_) for value in values])


def _intern_texts(terms: Terms, texts: Sequence[str | None]) -> Places:
    ids = np.full(len(texts), BAD)
    good = [number for number, text in enumerate(texts) if text is not None]
    ids[good] = terms.add_texts([text for text in texts if text is not None])
    return ids


def _convert_value(value: Any, type_: str) -> str | None:
    """The N-Triples text of a value, or None if it is none, or none of its type."""
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if type_ == "float":
        if not is_number and not isinstance(value, float | np.floating | Decimal):
            return None
        value = float(value)
    elif (
        (type_ in ("number", "unsigned") and not is_number)
        or (type_ == "symbol" and not isinstance(value, str))
        or (type_ == "unsigned" and value < 0)
    ):
        return None
    try:
        text = value_text(value)
        text.encode()  # half of a surrogate pair, as JSON can have, is no text
    except (ValueError, OverflowError, TypeError, InputError):
        return None
    return text


# Written values.

_NUMBER = r"[-+]?[0-9]+|-?0x[0-9a-fA-F]+|-?0b[01]+"
_FLOAT = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?(inf|INF)|nan|NaN"
_WRITTEN_INTEGER = r"^(0|-?[1-9][0-9]*)$"
_WRITTEN_DOUBLE = r"^-?(0|[1-9][0-9]*)(\.[0-9]+([eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)$"
_WRITTEN_IRI = f"^<{_IRI[1:-1]}>$"
_WRITTEN_TIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})?)?$"
)


def text_ids(terms: Terms, column: Fields, type_: str) -> Places:
    """The ids of values that are written as UTF-8."""
    if type_ == "symbol" and column.is_text:
        return terms.add(column.data, column.begins, column.ends, bare=True)
    ids = kernels.integers(column.data, column.begins, column.ends, _MOST_DIGITS.get(type_, 0))
    if type_ == "unsigned":
        ids[(ids != 0) & (ids < INTEGERS)] = BAD
    others = ids == 0
    if others.any():
        rest = column.array(others)
        distinct = rest.dictionary_encode()
        ids[others] = _spread_ids(_written_ids(terms, distinct.dictionary, type_), distinct)
    return ids


def _written_ids(terms: Terms, values: pa.Array, type_: str) -> Places:
    try:
        texts = values.cast(pa.large_string()).cast(pa.string())
    except pa.ArrowInvalid:
        return _intern_texts(terms, [_decode_text(v, type_) for v in values.to_pylist()])
    if type_ in ("", "any"):
        return terms.add_texts(_by_look(texts))
    return _intern_texts(terms, [_CONVERSIONS[type_](t) for t in texts.to_pylist()])


def _decode_text(value: bytes, type_: str) -> str | None:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    if type_ in _CONVERSIONS:
        return _CONVERSIONS[type_](text)
    if type_ == "symbol":
        return quote(text)
    return str(_by_look(pa.array([text]))[0])


def quote_texts(texts: pa.Array) -> pa.Array:
    """Each text as an N-Triples literal."""
    if pc.any(pc.match_substring_regex(texts, r'[\\"\n\r\t]')).as_py():
        for character, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
            texts = pc.replace_substring(texts, character, escape)
    return pc.binary_join_element_wise('"', texts, '"', "")


def _by_look(texts: pa.Array) -> pa.Array:
    """Each text as the N-Triples term that it looks like."""
    all_terms = quote_texts(texts)
    for pattern, convert in _LOOKS.items():
        looks = pc.match_substring_regex(texts, pattern)
        if pc.any(looks).as_py():
            terms = pa.array(map(convert, texts.filter(looks).to_pylist()), pa.string())
            all_terms = pc.replace_with_mask(all_terms, looks, terms)
    return all_terms


def _double_text(text: str) -> str:
    return term_text(double(float(text)))


def _moment_text(text: str) -> str:
    """A date or dateTime that is in the calendar; a string otherwise."""
    term = Literal(text, XSD_DATETIME if "T" in text else XSD_DATE)
    try:
        moment(term)
    except NoValue:
        return quote(text)
    return term_text(term)


_LOOKS: dict[str, Callable[[str], str]] = {
    _WRITTEN_INTEGER: lambda text: f'"{text}{INTEGER_MARK}',
    _WRITTEN_IRI: str,
    "^(true|false)$": lambda text: f'"{text}"^^<{XSD_BOOLEAN}>',
    _WRITTEN_DOUBLE: _double_text,
    _WRITTEN_TIME: _moment_text,
}


def _number_text(text: str) -> str | None:
    if not re.fullmatch(_NUMBER, text):
        return None
    return f'"{int(text, 0 if text.lstrip("-")[:2] in ("0x", "0b") else 10)}{INTEGER_MARK}'


def _unsigned_text(text: str) -> str | None:
    return None if text.startswith("-") else _number_text(text)


def _float_text(text: str) -> str | None:
    if not re.fullmatch(_FLOAT, text):
        return None
    return f'"{double(float(text)).lexical}"^^<{XSD_DOUBLE}>'


_CONVERSIONS: dict[str, Callable[[str], str | None]] = {
    "number": _number_text,
    "unsigned": _unsigned_text,
    "float": _float_text,
}
