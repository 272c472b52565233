"""Aggregated values of groups of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.dictionary import INTEGER, Dictionary
from hdlog.engines.columnar.kernels import Ids
from hdlog.engines.columnar.keys import PairTable, pack, part
from hdlog.program.functions import NoValue, aggregate
from hdlog.program.model import AggregateCall

_SAFE = float(2**62)


def aggregate_groups(
    dictionary: Dictionary,
    pairs: PairTable,
    columns: Sequence[Ids],
    weights: NDArray[np.int64],
    width: int,
    call: AggregateCall,
    column: int,
) -> tuple[list[Ids], Ids]:
    """The groups, the first `width` columns, that have a value, and their values.

    A weight is 1 or -1: rows that an older version takes back cancel out.
    """
    rows = len(weights)
    groups = part(pairs, columns[:width], rows)
    if (weights != 1).any():
        # Rows of an older version: add up what stands for the same row.
        whole = part(pairs, columns, rows)
        unique, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
        totals = np.bincount(inverse, weights, len(unique))
        kept = np.sort(first[totals > 0])
        columns, groups, rows = [c[kept] for c in columns], groups[kept], len(kept)
    if not rows:
        return [np.empty(0, np.uint32)] * width, np.empty(0, np.uint32)
    values = columns[column] if call.argument is not None else None
    if call.distinct and values is not None:
        _, first = np.unique(pack(groups, values), return_index=True)
        columns, groups, values = [c[first] for c in columns], groups[first], values[first]
    rank = np.argsort(groups, kind="stable")
    ordered = groups[rank]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    keys = [c[rank[starts]] for c in columns[:width]]
    ends = np.append(starts[1:], len(rank))
    if call.function == "count" or values is None:
        return keys, dictionary.encode_integers(ends - starts)
    values = values[rank]
    fast = _integer_aggregate(dictionary, values, starts, call)
    if fast is not None:
        return keys, fast
    found = [
        _scalar(dictionary, call, values[a:b]) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    ids = np.array(found, np.int64)
    valued = ids >= 0
    return [k[valued] for k in keys], ids[valued].astype(np.uint32)


def _integer_aggregate(
    dictionary: Dictionary, values: Ids, starts: NDArray[np.int64], call: AggregateCall
) -> Ids | None:
    """Sums of integers on arrays; None where the definition has to decide."""
    if call.function != "sum" or not (dictionary.kinds(values) == INTEGER).all():
        return None
    integers = dictionary.integers(values)
    if np.abs(integers.astype(np.float64)).sum() >= _SAFE:
        return None
    return dictionary.encode_integers(np.add.reduceat(integers, starts))


def _scalar(dictionary: Dictionary, call: AggregateCall, values: Ids) -> int:
    try:
        terms = [dictionary.term(i) for i in values.tolist()]
        return int(dictionary.encode_terms([aggregate(call, terms)])[0])
    except NoValue:
        return -1
