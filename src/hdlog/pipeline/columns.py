"""Columns of values into columns of ids, by the types that a program declares.

A value that is missing, or is none of its type, has the id BAD.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hdlog.engines.identifiers import INTEGER_LIMIT, INTEGER_MARK, INTEGERS
from hdlog.engines.load import InputError, value_text
from hdlog.pipeline import kernels
from hdlog.pipeline.chunks import TermTable, string_bytes
from hdlog.pipeline.kernels import Places
from hdlog.program.ntriples import quote, term_text
from hdlog.program.terms import double

BAD = int(np.iinfo(np.int64).min)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_STRINGS = (pa.string(), pa.large_string(), pa.string_view())
_DIGITS = {"number": 19, "unsigned": 19, "any": 18}
"""How many digits an integer has at most, by type, to be told from its text alone; 19 may be too many for an id."""


def column_ids(terms: TermTable, column: pa.Array, type_: str) -> Places:
    """The ids of a column of a table. In strings without a declared type, numbers and IRIs in brackets are told apart."""
    if column.null_count:
        ids = np.full(len(column), BAD)
        present = column.is_valid()
        ids[present.to_numpy(zero_copy_only=False)] = column_ids(terms, column.filter(present), type_)
        return ids
    if pa.types.is_dictionary(column.type):
        return _spread(column_ids(terms, column.dictionary, type_), column)
    if pa.types.is_integer(column.type) and type_ != "float":
        return _integer_ids(terms, column)
    if any(column.type.equals(kind) for kind in _STRINGS):
        return text_ids(terms, column.cast(pa.string()).cast(pa.binary()), type_ or "symbol")
    if pa.types.is_nested(column.type):
        return np.full(len(column), BAD)
    distinct = column.dictionary_encode()
    return _spread(value_ids(terms, distinct.dictionary.to_pylist(), type_), distinct)


def _spread(ids: Places, column: pa.DictionaryArray) -> Places:
    """The ids of the values of a column from those of its dictionary."""
    found: Places = ids[column.indices.to_numpy(zero_copy_only=False)]
    return found


def _integer_ids(terms: TermTable, column: pa.Array) -> Places:
    numbers: Places = column.cast(pa.int64(), safe=False).to_numpy(zero_copy_only=False)
    large = (numbers <= -INTEGER_LIMIT) | (numbers >= INTEGER_LIMIT)
    if pa.types.is_uint64(column.type):
        large |= numbers < 0
    if not large.any():
        return numbers + INTEGERS
    ids = numbers + INTEGERS
    ids[large] = value_ids(terms, column.filter(pa.array(large)).to_pylist(), "number")
    return ids


def text_ids(terms: TermTable, column: pa.Array, type_: str) -> Places:
    """The ids of values that are given as UTF-8."""
    data, offsets = string_bytes(column)
    ids = kernels.integers(data, offsets, _DIGITS.get(type_, 0))
    others = ids == 0
    if others.any():
        rest = column if others.all() else column.filter(pa.array(others))
        distinct = rest.dictionary_encode()
        ids[others] = _spread(_distinct_ids(terms, distinct.dictionary, type_), distinct)
    return ids


def _distinct_ids(terms: TermTable, values: pa.Array, type_: str) -> Places:
    try:
        texts = values.cast(pa.string())
    except pa.ArrowInvalid:
        return value_ids(terms, [_decoded(v) for v in values.to_pylist()], type_)
    if type_ == "symbol":
        return terms.add_texts(quoted(texts))
    if type_ == "any":
        return terms.add_texts(_told_apart(texts))
    return value_ids(terms, texts.to_pylist(), type_)


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def quoted(texts: pa.Array) -> pa.Array:
    """Each text as an N-Triples literal."""
    if pc.any(pc.match_substring_regex(texts, r'[\\"\n\r\t]')).as_py():
        for character, escape in _ESCAPES.items():
            texts = pc.replace_substring(texts, character, escape)
    return pc.binary_join_element_wise('"', texts, '"', "")


def _told_apart(texts: pa.Array) -> pa.Array:
    """Numbers, IRIs in brackets and strings, each as an N-Triples term."""
    numbers = pc.match_substring_regex(texts, r"^(-?[1-9][0-9]{0,17}|-?0)$")
    iris = pc.and_(pc.starts_with(texts, "<"), pc.ends_with(texts, ">"))
    marked = pc.binary_join_element_wise('"', texts, INTEGER_MARK, "")
    return pc.if_else(numbers, marked, pc.if_else(iris, texts, quoted(texts)))


def value_ids(terms: TermTable, values: Sequence[Any], type_: str) -> Places:
    """The ids of Python values."""
    texts = [_text(value, type_) for value in values]
    ids = np.full(len(texts), BAD)
    good = [number for number, text in enumerate(texts) if text is not None]
    ids[good] = terms.add_texts([text for text in texts if text is not None])
    return ids


def _text(value: Any, type_: str) -> str | None:
    """The N-Triples text of a value, or None if it is none, or none of its type."""
    convert = _CONVERSIONS.get(type_) if isinstance(value, str) or type_ == "float" else None
    try:
        text = convert(value) if convert else value_text(value)
        text.encode()  # half of a surrogate pair, as JSON can have, is no text
    except (ValueError, OverflowError, TypeError, InputError):
        return None
    return text


def _number(value: str) -> str:
    return f'"{int(value)}{INTEGER_MARK}'


def _float(value: Any) -> str:
    return term_text(double(float(value)))


_CONVERSIONS: dict[str, Callable[[Any], str]] = {
    "number": _number,
    "unsigned": _number,
    "float": _float,
    "symbol": quote,
}
