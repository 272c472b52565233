"""Answers in order: terms by SPARQL's order of them, and the first so many rows."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import total_ordering

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.encoding import Dictionary, Ids
from hdlog.program.functions import NoValue, order_key
from hdlog.program.ntriples import parse_term
from hdlog.program.terms import UNBOUND, BlankNode, Constant, Iri, Skolem

Places = NDArray[np.int64]
_KINDS = {"number": 0, "string": 1, "text": 2, "boolean": 3}


@total_ordering
class _Value:
    """A value of one kind: NaN comes after all numbers, and numbers of different types are compared exactly."""

    def __init__(self, value: object) -> None:
        self.value = Fraction(value) if isinstance(value, Decimal) else value
        self.is_last = value != value

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, _Value)
        return self.is_last == other.is_last if self.is_last or other.is_last else self.value == other.value

    def __lt__(self, other: _Value) -> bool:
        if self.is_last or other.is_last:
            return not self.is_last
        return bool(self.value < other.value)  # type: ignore[operator]


def rank_key(term: Constant) -> tuple[object, ...]:
    """No value first, then blank nodes, IRIs, and literals: those of one kind by their values, others by their texts."""
    if term == UNBOUND:
        return (0,)
    if isinstance(term, BlankNode | Skolem):
        return (1, str(term))
    if isinstance(term, Iri):
        return (2, term.value)
    try:
        kind, value = order_key(term)
    except NoValue:
        return (4, str(term))
    return (3, _KINDS.get(kind, 9), kind, _Value(value), str(term))


def order_rows(dictionary: Dictionary, keys: Sequence[tuple[Ids, bool]], rows: int) -> Places:
    """Places of rows in the order of keys, each with whether it falls; rows that are equal stay as they were."""
    order = np.arange(rows)
    for ids, falls in reversed(keys):
        ranks = rank_terms(dictionary, ids)
        order = order[np.argsort(-ranks[order] if falls else ranks[order], kind="stable")]
    return order


def rank_terms(dictionary: Dictionary, ids: Ids) -> Places:
    """The rank of each term among them: equal values have the same."""
    for values in (dictionary.integer_values(ids), dictionary.double_values(ids)):
        if values is not None:
            return np.unique(values, return_inverse=True)[1]
    unique, inverse = np.unique(ids, return_inverse=True)
    keys = [rank_key(parse_term(text)) for text in dictionary.texts(unique)]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    ranks = np.empty(len(keys), np.int64)
    rank = -1
    for place, number in enumerate(order):
        same = place > 0 and keys[number][:4] == keys[order[place - 1]][:4] and keys[number][0] == 3
        rank += not same
        ranks[number] = rank
    return ranks[inverse]
