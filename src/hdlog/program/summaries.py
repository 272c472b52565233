"""What is remembered of a bag of terms so that its aggregated value follows when some come and some go.

Each summary gives just what `functions.aggregate` gives for the whole bag, or says that it does not know any more.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Protocol

from hdlog.program.functions import (
    NoValue,
    Number,
    from_number,
    mean_of,
    number,
    order_key,
    quotient,
    total_order_key,
)
from hdlog.program.model import AggregateCall
from hdlog.program.terms import Constant

Changes = Iterable[tuple[Constant, int]]
"""Terms with how many of them come, or go if that is negative."""


class OutOfSight(Exception):
    """The summary cannot tell the value any more; the bag has to be looked at again."""


class Summary(Protocol):
    def change(self, changes: Changes) -> None:
        """Some terms come and some go."""

    def value(self) -> Constant | None:
        """The aggregated value, or None where there is none."""


class Total:
    """An exact sum, for sum, avg and mean."""

    def __init__(self, call: AggregateCall) -> None:
        self.call = call
        self.count = 0
        self.decimals = 0
        self.doubles = 0
        self.exact = Fraction(0)
        """of the numbers as they are"""
        self.rounded = Fraction(0)
        """of the numbers as doubles, which is what a sum with doubles in it adds up"""

    def add_integers(self, count: int, exact: int, rounded: Fraction) -> None:
        self.count += count
        self.exact += exact
        self.rounded += rounded

    def add_doubles(self, count: int, exact: Fraction) -> None:
        self.count += count
        self.doubles += count
        self.exact += exact
        self.rounded += exact

    def change(self, changes: Changes) -> None:
        for term, times in changes:
            try:
                value = number(term)
            except NoValue:
                raise OutOfSight from None
            self.add(value, times)

    def add(self, value: Number, times: int) -> None:
        if not isfinite(value):
            raise OutOfSight
        self.count += times
        self.decimals += times * isinstance(value, Decimal)
        self.doubles += times * isinstance(value, float)
        self.exact += times * Fraction(value)
        self.rounded += times * Fraction(float(value))

    def value(self) -> Constant | None:
        if not self.count:
            return None
        try:
            if self.call.function != "sum":
                return mean_of(self.call, self.exact, self.count, self.doubles > 0)
            if self.doubles:
                return from_number(float(self.rounded))
            if self.decimals:
                return from_number(quotient(self.exact))
            return from_number(int(self.exact))
        except (NoValue, OverflowError):
            return None


Key = tuple[object, ...]


class Extremes:
    """The terms at one end of a bag, in order; those beyond them are not known one by one."""

    def __init__(self, call: AggregateCall, terms: Mapping[Constant, int], complete: bool) -> None:
        """`terms` are the outermost ones, with how many of each, and all there are if `complete`."""
        self.largest = call.function == "max"
        self.counts = Counter(dict(terms))
        self.keys: list[Key] = sorted(total_order_key(t) for t in terms)
        self.terms = {total_order_key(t): t for t in terms}
        self.bound = None if complete else self._pick_outermost(self.keys, inner=True)
        kinds = {order_key(t)[0] for t in terms}
        assert len(kinds) == 1, "a bag of several kinds has no extreme value"
        (self.kind,) = kinds

    def _pick_outermost(self, keys: list[Key], inner: bool = False) -> Key:
        """The extreme key of some, or, with `inner`, the one farthest from it."""
        return keys[-1] if self.largest is not inner else keys[0]

    def _is_in_sight(self, key: Key) -> bool:
        if self.bound is None:
            return True
        return key >= self.bound if self.largest else key <= self.bound

    def change(self, changes: Changes) -> None:
        for term, times in changes:
            try:
                if order_key(term)[0] != self.kind:
                    raise OutOfSight
            except NoValue:
                raise OutOfSight from None
            key = total_order_key(term)
            if not self._is_in_sight(key):
                continue
            if not self.counts[term]:
                insort(self.keys, key)
                self.terms[key] = term
            self.counts[term] += times
            if not self.counts[term]:
                del self.counts[term], self.terms[key]
                self.keys.pop(bisect_left(self.keys, key))

    def value(self) -> Constant | None:
        if self.keys:
            return self.terms[self._pick_outermost(self.keys)]
        if self.bound is None:
            return None
        raise OutOfSight
