"""Members of groups, and what sums, least and greatest values they have, on arrays."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.dictionary import DOUBLE, INTEGER, Dictionary
from hdlog.engines.columnar.kernels import Ids, Rows
from hdlog.engines.columnar.order import order_ranks
from hdlog.program.functions import NoValue, sum_of_doubles
from hdlog.program.terms import double

SAFE = float(2**62)
NO_VALUE = -1
"""In place of an id: the group has none."""
UNKNOWN = -2
"""In place of an id: the value is not known yet."""
Values = NDArray[np.int64]


@dataclass(frozen=True)
class Members:
    """Facts by group: `starts` says where each group begins among the values, `keys` has its columns."""

    keys: list[Ids]
    values: Ids
    starts: Rows

    @property
    def ends(self) -> Rows:
        return np.append(self.starts, len(self.values))[1:]

    @property
    def sizes(self) -> Rows:
        return self.ends - self.starts


def sum_integers(values: NDArray[np.int64]) -> int:
    """Their exact sum, whatever its size."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def sum_doubles(values: NDArray[np.float64]) -> Fraction:
    """The exact sum of finite doubles: whole numbers of 53 bits, added up for each power of two."""
    fractions, exponents = np.frexp(values)
    whole = np.ldexp(fractions, 53).astype(np.int64)
    total = Fraction(0)
    for exponent in np.unique(exponents).tolist():
        total += sum_integers(whole[exponents == exponent]) * Fraction(2) ** (exponent - 53)
    return total


def sum_members(dictionary: Dictionary, members: Members) -> Values | None:
    """Sums of integers, or of doubles, on arrays; None where the definition has to decide."""
    kinds = dictionary.kinds(members.values)
    if (kinds == INTEGER).all():
        integers = dictionary.integers(members.values)
        if np.abs(integers.astype(np.float64)).sum() >= SAFE:
            return None
        return dictionary.encode_integers(np.add.reduceat(integers, members.starts)).astype(np.int64)
    if not (kinds == DOUBLE).all():
        return None
    doubles = dictionary.doubles(members.values)
    bounds = zip(members.starts.tolist(), members.ends.tolist(), strict=True)
    try:
        sums = [double(sum_of_doubles(doubles[low:high])) for low, high in bounds]  # type: ignore[arg-type]
    except NoValue:
        return None
    return dictionary.encode_terms(sums).astype(np.int64)


def find_extremes(dictionary: Dictionary, members: Members, largest: bool) -> Values:
    unique, inverse = np.unique(members.values, return_inverse=True)
    ranks, kinds = order_ranks(dictionary, unique)
    best = np.maximum if largest else np.minimum
    at = best.reduceat(ranks[inverse], members.starts)
    least, most = (f.reduceat(kinds[inverse], members.starts) for f in (np.minimum, np.maximum))
    extremes = unique[np.argsort(ranks)[at]].astype(np.int64)
    extremes[(least != most) | (least < 0)] = NO_VALUE
    return extremes
