"""Members of groups, and what sums, least and greatest values they have, on arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.dictionary import DOUBLE, INTEGER, Dictionary
from hdlog.engines.columnar.facts import Counts
from hdlog.engines.columnar.kernels import Ids, Rows
from hdlog.engines.columnar.order import order_ranks
from hdlog.engines.encoding import number_distinct
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
    times: Counts | None = None
    """how often each value counts, if not once"""

    @property
    def ends(self) -> Rows:
        return np.append(self.starts, len(self.values))[1:]

    @property
    def totals(self) -> Counts:
        """How many members each group has."""
        if self.times is None:
            return self.ends - self.starts
        return np.asarray(np.add.reduceat(self.times, self.starts))

    def __iter__(self) -> Iterator[tuple[Ids, Counts | None]]:
        """The values of each group, and how often each counts."""
        for low, high in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield self.values[low:high], None if self.times is None else self.times[low:high]


def sum_integers(values: NDArray[np.int64], times: Counts) -> int:
    """Their exact sum, whatever its size."""
    if (times == 1).all():
        return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
    sizes = np.abs(values.astype(np.float64)) * np.abs(times)
    if sizes.sum() < SAFE:
        return int((values * times).sum())
    return sum(value * n for value, n in zip(values.tolist(), times.tolist(), strict=True))


def sum_doubles(values: NDArray[np.float64], times: Counts) -> Fraction:
    """The exact sum of finite doubles: whole numbers of 53 bits, added up for each power of two."""
    fractions, exponents = np.frexp(values)
    whole = np.ldexp(fractions, 53).astype(np.int64)
    total = Fraction(0)
    for exponent in np.unique(exponents).tolist():
        at = exponents == exponent
        total += sum_integers(whole[at], times[at]) * Fraction(2) ** (exponent - 53)
    return total


def sum_members(dictionary: Dictionary, members: Members) -> Values | None:
    """Sums of integers, or of doubles, on arrays; None where the definition has to decide."""
    kinds = dictionary.kinds(members.values)
    if (kinds == INTEGER).all():
        integers, times = dictionary.integers(members.values), members.times
        sizes = np.abs(integers.astype(np.float64))
        if (sizes if times is None else sizes * times).sum() >= SAFE:
            return None
        summands = integers if times is None else integers * times
        return dictionary.encode_integers(np.add.reduceat(summands, members.starts)).astype(np.int64)
    if not (kinds == DOUBLE).all() or members.times is not None:
        return None
    doubles = dictionary.doubles(members.values)
    bounds = zip(members.starts.tolist(), members.ends.tolist(), strict=True)
    try:
        sums = [double(sum_of_doubles(doubles[low:high])) for low, high in bounds]  # type: ignore[arg-type]
    except NoValue:
        return None
    return dictionary.encode_terms(sums).astype(np.int64)


def find_extremes(dictionary: Dictionary, members: Members, largest: bool) -> Values:
    unique, inverse = number_distinct(members.values)
    ranks, kinds = order_ranks(dictionary, unique)
    best = np.maximum if largest else np.minimum
    at = best.reduceat(ranks[inverse], members.starts)
    least, most = (f.reduceat(kinds[inverse], members.starts) for f in (np.minimum, np.maximum))
    extremes = unique[np.argsort(ranks)[at]].astype(np.int64)
    extremes[(least != most) | (least < 0)] = NO_VALUE
    return extremes
