"""Aggregated values of groups of facts, from scratch and from what has changed.

From scratch, the members of a group are looked at: on arrays where they are numbers, by the definition in
`hdlog.program.functions` otherwise. When facts come and go, counts and sums of integers follow from the value there was. So
does a least or greatest value, unless it goes itself. For other values a summary is kept of each large group that changes more
than once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hdlog import interrupts
from hdlog.engines.columnar.dictionary import DOUBLE, INTEGER, Dictionary
from hdlog.engines.columnar.facts import Facts
from hdlog.engines.columnar.kernels import Ids, Rows
from hdlog.engines.columnar.keys import part
from hdlog.engines.columnar.order import order_ranks
from hdlog.engines.columnar.relation import Relation
from hdlog.program.functions import NoValue, aggregate, sum_of_doubles
from hdlog.program.model import AggregateCall
from hdlog.program.ntriples import term_text
from hdlog.program.summaries import Extremes, OutOfSight, Summary, Total
from hdlog.program.terms import Constant, Variable, double

if TYPE_CHECKING:
    from hdlog.engines.columnar.engine import ColumnarEngine, ColumnarVersion

_SAFE = float(2**62)
_NONE = -1
"""In place of an id: no value."""
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


class Aggregator:
    """One aggregate: the first `width` columns of facts are the group, `column` is aggregated, if any is."""

    def __init__(self, engine: ColumnarEngine, width: int, call: AggregateCall, column: int) -> None:
        assert not call.distinct, "different values are a predicate of their own"
        self.engine = engine
        self.width = width
        self.call = call
        self.column = column
        self._touched: Counter[int] = Counter()
        self._summaries: dict[int, Summary] = {}
        self._noted = -1

    # From scratch.

    def values(self, version: ColumnarVersion, groups: Facts) -> Facts:
        members = self._members(version, groups)
        return self._facts(members.keys, self._aggregated(members))

    def _members(self, version: ColumnarVersion, groups: Facts) -> Members:
        arity = version.table.arity
        variables = [Variable(str(i)) for i in range(arity)]
        found = self.engine.join(self.engine.scan(groups, variables[: self.width]), version, variables)
        if found.counts is not None and (found.counts != 1).any():
            found = _once(self.engine.collapse(found))
        columns = [found.columns[str(i)] for i in range(arity)]
        group = part(self.engine.pairs, columns[: self.width], len(found))
        order = np.argsort(group, kind="stable")
        ordered = group[order]
        firsts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(found) else order
        values = columns[self.column][order] if self.column >= 0 else ordered
        return Members([c[order[firsts]] for c in columns[: self.width]], values, firsts)

    def _aggregated(self, members: Members) -> Values:
        """The id of the value of each group, or _NONE."""
        dictionary, function = self.engine.dictionary, self.call.function
        if not len(members.starts):
            return np.empty(0, np.int64)
        if function == "count" or self.column < 0:
            return dictionary.encode_integers(members.sizes).astype(np.int64)
        if function in ("min", "max"):
            return _extremes(dictionary, members, function == "max")
        if function == "sum":
            found = _sums(dictionary, members)
            if found is not None:
                return found
        elif len(members.values) > self.engine.numbers.many_members * len(members.starts):
            found = self._totalled(members)
            if found is not None:
                return found
        return self._by_definition(members)

    def _totalled(self, members: Members) -> Values | None:
        """The values of few groups with many members each, by their totals."""
        texts: list[str | None] = []
        try:
            for low, high in zip(members.starts.tolist(), members.ends.tolist(), strict=True):
                interrupts.check()
                value = self._total(members.values[low:high]).value()
                texts.append(None if value is None else term_text(value))
        except OutOfSight:
            return None
        return self._encoded(texts)

    def _by_definition(self, members: Members) -> Values:
        terms = self.engine.dictionary.terms(members.values)
        texts: list[str | None] = []
        with interrupts.let_through():
            for low, high in zip(members.starts.tolist(), members.ends.tolist(), strict=True):
                try:
                    texts.append(term_text(aggregate(self.call, terms[low:high])))
                except NoValue:
                    texts.append(None)
        return self._encoded(texts)

    def _encoded(self, texts: Sequence[str | None]) -> Values:
        found = np.full(len(texts), _NONE, np.int64)
        valued = [i for i, text in enumerate(texts) if text is not None]
        found[valued] = self.engine.dictionary.encode([t for t in texts if t is not None])
        return found

    def _facts(self, keys: Sequence[Ids], values: Values) -> Facts:
        kept = values != _NONE
        columns = [*(k[kept] for k in keys), values[kept].astype(np.uint32)]
        return self.engine.facts_from_columns(columns, int(np.count_nonzero(kept)))

    # From changes.

    def change(self, delta: Facts, after: ColumnarVersion, present: ColumnarVersion) -> Facts:
        """How the values change, with signs: `present` are those there were, `after` the facts there are now."""
        groups = self.engine.first_columns(delta, self.width)
        before = self._present(groups, present)
        moved = _Moved(self, groups, before, delta, after)
        values = moved.values()
        told = values != _UNKNOWN
        parts = [before.negated(), self._facts([c[told] for c in moved.columns], values[told])]
        if not told.all():
            parts.append(self._looked_at(groups.take(~told), moved, after))
        return self.engine.plus(parts, self.width + 1)

    def _present(self, groups: Facts, present: ColumnarVersion) -> Facts:
        variables = [Variable(str(i)) for i in range(self.width + 1)]
        rows = self.engine.join(self.engine.scan(groups, variables[: self.width]), present, variables)
        return self.engine.project(rows, variables)

    def _looked_at(self, groups: Facts, moved: _Moved, after: ColumnarVersion) -> Facts:
        """The values of groups that only their members tell, or a summary of them."""
        if self.call.function == "count":
            return self.values(after, groups)
        known = self._summarised(groups, moved)
        told = known != _UNKNOWN
        columns = groups.columns()
        parts = [self._facts([c[told] for c in columns], known[told])]
        if not told.all():
            members = self._members(after, groups.take(~told))
            parts.append(self._facts(members.keys, self._aggregated(members)))
            self._summarise(members)
        return self.engine.plus(parts, self.width + 1)

    def _summarised(self, groups: Facts, moved: _Moved) -> Values:
        """The values of groups that there is a summary of."""
        found = np.full(len(groups), _UNKNOWN, np.int64)
        if not self._summaries:
            return found
        texts: dict[int, str | None] = {}
        for i, group in enumerate(part(self.engine.pairs, groups.columns(), len(groups)).tolist()):
            summary = self._summaries.get(group)
            if summary is not None:
                self._note()
                try:
                    summary.change(moved.changes_of(group))
                    value = summary.value()
                    texts[i] = None if value is None else term_text(value)
                except OutOfSight:
                    del self._summaries[group]
        found[list(texts)] = self._encoded(list(texts.values()))
        return found

    def _summarise(self, members: Members) -> None:
        """Remember large groups that are looked at a second time."""
        group_ids = part(self.engine.pairs, members.keys, len(members.starts)).tolist()
        bounds = zip(members.starts.tolist(), members.ends.tolist(), strict=True)
        for group, (low, high) in zip(group_ids, bounds, strict=True):
            if high - low < self.engine.numbers.large_group:
                continue
            self._note()
            self._touched[group] += 1
            if self._touched[group] < 2 or len(self._summaries) >= self.engine.numbers.most_summaries:
                continue
            summary = self._summary(members.values[low:high])
            if summary is not None:
                self._summaries[group] = summary

    def _summary(self, values: Ids) -> Summary | None:
        dictionary = self.engine.dictionary
        unique, counts = np.unique(values, return_counts=True)
        if self.call.function in ("min", "max"):
            ranks, kinds = order_ranks(dictionary, unique)
            if (kinds != kinds[0]).any() or kinds[0] < 0:
                return None
            order = np.argsort(-ranks if self.call.function == "max" else ranks)[
                : self.engine.numbers.kept_extremes
            ]
            terms = dictionary.terms(unique[order])
            chosen = dict(zip(terms, counts[order].tolist(), strict=True))
            return Extremes(self.call, chosen, complete=len(order) == len(unique))
        try:
            return self._total(values)
        except OutOfSight:
            return None

    def _total(self, values: Ids) -> Total:
        """The exact total of terms; `OutOfSight` if they are not all finite numbers."""
        dictionary = self.engine.dictionary
        kinds = dictionary.kinds(values)
        total = Total(self.call)
        integers = dictionary.integers(values[kinds == INTEGER])
        total.add_integers(len(integers), sum_integers(integers), sum_doubles(integers.astype(np.float64)))
        doubles = dictionary.doubles(values[kinds == DOUBLE])
        total.add_doubles(len(doubles), sum_doubles(doubles))
        rest = values[(kinds != INTEGER) & (kinds != DOUBLE)]
        total.change((term, 1) for term in dictionary.terms(rest))
        return total

    def _note(self) -> None:
        """What is remembered follows the update: with it, it goes."""
        if self._noted != self.engine.journal.number:
            self._noted = self.engine.journal.number
            self.engine.journal.note(self.forget)

    def forget(self) -> None:
        self._summaries.clear()
        self._touched.clear()


_UNKNOWN = -2
"""In place of an id: the value is not known yet."""


class _Moved:
    """A change of facts by group, beside the values that the groups had."""

    def __init__(
        self, of: Aggregator, groups: Facts, before: Facts, delta: Facts, after: ColumnarVersion
    ) -> None:
        pairs = of.engine.pairs
        self.of = of
        self.after = after
        self.columns = groups.columns()
        self.dictionary: Dictionary = of.engine.dictionary
        columns = delta.columns()
        ids = part(pairs, self.columns, len(groups))
        rank = np.argsort(ids)
        self.ids = ids
        """of the groups, in their order"""
        given = part(pairs, columns[: of.width], len(delta))
        self.group = rank[np.searchsorted(ids, given, sorter=rank)]
        """for each changed fact the number of its group"""
        self.signs = delta.weights()
        self.changed = columns[of.column] if of.column >= 0 else given
        self.present = np.full(len(groups), _NONE, np.int64)
        had = before.columns()
        had_ids = part(pairs, had[: of.width], len(before))
        self.present[rank[np.searchsorted(ids, had_ids, sorter=rank)]] = had[-1]

    def changes_of(self, group: int) -> list[tuple[Constant, int]]:
        (number,) = np.flatnonzero(self.ids == group)
        rows = self.group == number
        return list(zip(self.dictionary.terms(self.changed[rows]), self.signs[rows].tolist(), strict=True))

    def values(self) -> Values:
        """The new value of each group, or _NONE, as far as the old one and the change tell it."""
        function = self.of.call.function
        if function == "count" or self.of.column < 0:
            return self._counts()
        known = np.full(len(self.ids), _UNKNOWN, np.int64)
        summarised = np.isin(self.ids, list(self.of._summaries)) if self.of._summaries else None
        if function == "sum":
            known = self._sums()
        elif function in ("min", "max"):
            known = self._extremes(function == "max")
        if summarised is not None:
            known[summarised] = _UNKNOWN  # a summary has to hear of every change
        return known

    def _counts(self) -> Values:
        had = np.zeros(len(self.ids), np.int64)
        there = self.present != _NONE
        had[there] = self.dictionary.integers(self.present[there].astype(np.uint32))
        counts = had + np.bincount(self.group, self.signs, len(self.ids)).astype(np.int64)
        assert (counts >= 0).all(), "no group has less than nothing"
        found = np.full(len(self.ids), _NONE, np.int64)
        found[counts > 0] = self.dictionary.encode_integers(counts[counts > 0])
        return found

    def _sums(self) -> Values:
        """Sums of integers, where the old value is an integer and all that comes and goes is."""
        found = np.full(len(self.ids), _UNKNOWN, np.int64)
        sure = self._have(INTEGER)
        if not sure.any():
            return found
        values = self.dictionary.integers(self.changed).astype(np.float64) * self.signs
        had = np.zeros(len(self.ids))
        present = self.present[sure].astype(np.uint32)
        had[sure] = self.dictionary.integers(present)
        sizes = np.bincount(self.group, np.abs(values), len(self.ids)) + np.abs(had)
        sure &= sizes < _SAFE
        exact = np.zeros(len(self.ids), np.int64)
        mine = sure[self.group]
        np.add.at(exact, self.group[mine], self.dictionary.integers(self.changed[mine]) * self.signs[mine])
        exact[sure] += self.dictionary.integers(self.present[sure].astype(np.uint32))
        empty = self._empty(sure)
        found[empty] = _NONE
        kept = sure & ~empty
        found[kept] = self.dictionary.encode_integers(exact[kept])
        return found

    def _have(self, kind: int) -> NDArray[np.bool_]:
        """Groups that had a value, of a kind, and in which nothing else changes."""
        sure: NDArray[np.bool_] = self.present != _NONE
        sure[sure] = self.dictionary.kinds(self.present[sure].astype(np.uint32)) == kind
        other = self.dictionary.kinds(self.changed) != kind
        sure[self.group[other]] = False
        return sure

    def _empty(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of the chosen groups have no members any more."""
        loses = np.zeros(len(self.ids), np.bool_)
        loses[self.group[self.signs < 0]] = True
        asked = np.flatnonzero(chosen & loses)
        found = np.zeros(len(self.ids), np.bool_)
        found[asked] = ~self.of.engine.have_members(self.after, [c[asked] for c in self.columns])
        return found

    def _extremes(self, largest: bool) -> Values:
        """The old value against those that come, unless it goes itself."""
        sure = self.present != _NONE
        goes = self.signs < 0
        gone = goes & (self.changed == self.present[self.group])
        sure[self.group[gone]] = False
        there = self.present[sure].astype(np.uint32)
        comes = sure[self.group] & ~goes
        candidates = np.concatenate([there, self.changed[comes]])
        owners = np.concatenate([np.flatnonzero(sure), self.group[comes]])
        found = np.full(len(self.ids), _UNKNOWN, np.int64)
        if not len(candidates):
            return found
        order = np.argsort(owners, kind="stable")
        starts = np.flatnonzero(np.append(True, owners[order][1:] != owners[order][:-1]))
        members = Members([], candidates[order], starts)
        values = _extremes(self.dictionary, members, largest)
        # Values of several kinds have no extreme; what is left when some of them go is not known here.
        values[values == _NONE] = _UNKNOWN
        found[owners[order][starts]] = values
        return found


def _once(relation: Relation) -> Relation:
    """Rows that an older version takes back cancel out."""
    assert relation.counts is None or (relation.counts == 1).all(), "a fact is there, or it is not"
    return relation


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


def _sums(dictionary: Dictionary, members: Members) -> Values | None:
    """Sums of integers, or of doubles, on arrays; None where the definition has to decide."""
    kinds = dictionary.kinds(members.values)
    if (kinds == INTEGER).all():
        integers = dictionary.integers(members.values)
        if np.abs(integers.astype(np.float64)).sum() >= _SAFE:
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


def _extremes(dictionary: Dictionary, members: Members, largest: bool) -> Values:
    unique, inverse = np.unique(members.values, return_inverse=True)
    ranks, kinds = order_ranks(dictionary, unique)
    best = np.maximum if largest else np.minimum
    at = best.reduceat(ranks[inverse], members.starts)
    least, most = (f.reduceat(kinds[inverse], members.starts) for f in (np.minimum, np.maximum))
    found = unique[np.argsort(ranks)[at]].astype(np.int64)
    found[(least != most) | (least < 0)] = _NONE
    return found
