"""Terms in order: the order of `hdlog.program.functions`, on arrays where they are numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.dictionary import DOUBLE, INTEGER, Dictionary
from hdlog.engines.columnar.kernels import Ids
from hdlog.program.functions import NoValue, order_key, total_order_key

_NUMBERS = 0
_NOTHING = -1
_EXACT = 2**53


def order_ranks(dictionary: Dictionary, ids: Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each of different ids its place in the order of all, and a number for its kind; -1 for what has none.

    Ids of different kinds have different places, but nothing follows from these.
    """
    kinds = dictionary.kinds(ids)
    if not np.isin(kinds, (INTEGER, DOUBLE)).all():
        return _rank_by_definition(dictionary, ids)
    integers = dictionary.integers(ids)
    if (kinds == INTEGER).all():
        values: NDArray[np.int64] | NDArray[np.float64] = integers
    elif (np.abs(integers.astype(np.float64)) < _EXACT).all():
        values = dictionary.doubles(ids)
    else:
        return _rank_by_definition(dictionary, ids)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    _break_ties(dictionary, ids, order, np.flatnonzero(ordered[1:] == ordered[:-1]))
    return _invert(order), np.full(len(ids), _NUMBERS, np.int64)


def _break_ties(dictionary: Dictionary, ids: Ids, order: NDArray[np.int64], ties: NDArray[np.int64]) -> None:
    """Numbers that are equal, and written in different ways, in the order of their texts."""
    at = 0
    while at < len(ties):
        end = at
        while end + 1 < len(ties) and ties[end + 1] == ties[end] + 1:
            end += 1
        places = slice(int(ties[at]), int(ties[end]) + 2)
        tied = order[places]
        terms = dictionary.terms(ids[tied])
        chosen = sorted(range(len(tied)), key=lambda i: total_order_key(terms[i]))
        order[places] = tied[chosen]
        at = end + 1


def _rank_by_definition(dictionary: Dictionary, ids: Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    terms = dictionary.terms(ids)
    keys = [total_order_key(t) for t in terms]
    order = np.array(sorted(range(len(terms)), key=keys.__getitem__), np.int64)
    numbers: dict[str, int] = {}
    kinds = np.full(len(ids), _NOTHING, np.int64)
    for i, term in enumerate(terms):
        try:
            kinds[i] = numbers.setdefault(order_key(term)[0], len(numbers))
        except NoValue:
            continue
    return _invert(order), kinds


def _invert(order: NDArray[np.int64]) -> NDArray[np.int64]:
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks
