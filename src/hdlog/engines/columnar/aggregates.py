"""Aggregated values of groups of facts, from scratch and from what has changed.

From scratch, the members of a group are looked at: on arrays where they are numbers, by the definition in
`hdlog.program.functions` otherwise. When facts come and go, counts and sums of integers follow from the value there was. So
does a least or greatest value, unless it goes itself. For other values a summary is kept of each large group that changes more
than once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hdlog import interrupts
from hdlog.engines.columnar.dictionary import DOUBLE, INTEGER
from hdlog.engines.columnar.facts import Counts, Facts
from hdlog.engines.columnar.group_changes import GroupChanges
from hdlog.engines.columnar.groups import (
    NO_VALUE,
    UNKNOWN,
    Members,
    Values,
    find_extremes,
    sum_doubles,
    sum_integers,
    sum_members,
)
from hdlog.engines.columnar.kernels import Ids
from hdlog.engines.columnar.kernels.sorting import order_of
from hdlog.engines.columnar.keys import part
from hdlog.engines.columnar.order import order_ranks
from hdlog.engines.columnar.relation import Relation
from hdlog.program.functions import NoValue, aggregate
from hdlog.program.model import AggregateCall
from hdlog.program.ntriples import term_text
from hdlog.program.summaries import Extremes, OutOfSight, Summary, Total
from hdlog.program.terms import Term, Variable

if TYPE_CHECKING:
    from hdlog.engines.columnar.context import ColumnarVersion
    from hdlog.engines.columnar.engine import ColumnarEngine


class Aggregator:
    """One aggregate of facts, as an atom matches them."""

    def __init__(
        self, engine: ColumnarEngine, call: AggregateCall, group: Sequence[Variable], terms: Sequence[Term]
    ) -> None:
        assert not call.distinct, "different values are a predicate of their own"
        self.engine = engine
        self.call = call
        self.group = tuple(group)
        self.width = len(self.group)
        self.terms = tuple(terms)
        self.value = call.argument.name if isinstance(call.argument, Variable) else None
        """the variable that is aggregated, if any is"""
        names = [v.name for v in self.group]
        self.names = names if self.value is None or self.value in names else [*names, self.value]
        self._touched: Counter[int] = Counter()
        self.summaries: dict[int, Summary] = {}
        self._noted = -1

    # From scratch.

    def values(self, version: ColumnarVersion) -> Facts:
        members = self._members(version, self.engine.unit())
        return self._facts(members.keys, self._aggregate(members))

    def match(self, start: Relation, version: ColumnarVersion) -> Relation:
        """The matches of facts, group and value only; those that cancel out are gone."""
        rows = self.engine.keep_columns(self.engine.join(start, version, self.terms), self.names)
        if rows.counts is None:
            return rows
        rows = self.engine.collapse(rows)
        assert rows.counts is None or (rows.counts > 0).all(), "no fact is there less than not at all"
        return rows

    def _members(self, version: ColumnarVersion, start: Relation) -> Members:
        rows = self.match(start, version)
        keys = [rows.columns[v.name] for v in self.group]
        group = part(self.engine.pairs, keys, len(rows))
        order = order_of(group)
        ordered = group[order]
        firsts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(rows) else order
        values = ordered if self.value is None else rows.columns[self.value][order]
        times = None if rows.counts is None else rows.counts[order]
        return Members([c[order[firsts]] for c in keys], values, firsts, times)

    def _aggregate(self, members: Members) -> Values:
        """The id of the value of each group, or NO_VALUE."""
        dictionary, function = self.engine.dictionary, self.call.function
        if not len(members.starts):
            return np.empty(0, np.int64)
        if function == "count" or self.value is None:
            return dictionary.encode_integers(members.totals).astype(np.int64)
        if function in ("min", "max"):
            return find_extremes(dictionary, members, function == "max")
        if function == "sum":
            values = sum_members(dictionary, members)
            if values is not None:
                return values
        elif len(members.values) > self.engine.numbers.many_members * len(members.starts):
            values = self._add_up(members)
            if values is not None:
                return values
        return self._aggregate_by_definition(members)

    def _add_up(self, members: Members) -> Values | None:
        """The values of few groups with many members each, by their totals."""
        texts: list[str | None] = []
        try:
            for values, times in members:
                interrupts.check()
                value = self._total(values, times).value()
                texts.append(None if value is None else term_text(value))
        except OutOfSight:
            return None
        return self._encode(texts)

    def _aggregate_by_definition(self, members: Members) -> Values:
        dictionary = self.engine.dictionary
        texts: list[str | None] = []
        with interrupts.let_through():
            for values, times in members:
                try:
                    counts = None if times is None else times.tolist()
                    texts.append(term_text(aggregate(self.call, dictionary.terms(values), counts)))
                except NoValue:
                    texts.append(None)
        return self._encode(texts)

    def _encode(self, texts: Sequence[str | None]) -> Values:
        ids = np.full(len(texts), NO_VALUE, np.int64)
        valued = [i for i, text in enumerate(texts) if text is not None]
        ids[valued] = self.engine.dictionary.encode([t for t in texts if t is not None])
        return ids

    def _facts(self, keys: Sequence[Ids], values: Values) -> Facts:
        kept = values != NO_VALUE
        columns = [*(k[kept] for k in keys), values[kept].astype(np.uint32)]
        return self.engine.facts_from_columns(columns, int(np.count_nonzero(kept)))

    # From changes.

    def change(self, delta: Facts, after: ColumnarVersion, present: ColumnarVersion) -> Facts:
        """How the values change, with signs: `present` are those there were, `after` the facts there are now."""
        changed = self.engine.collapse(
            self.engine.keep_columns(self.engine.scan(delta, self.terms), self.names)
        )
        keys = [changed.columns[v.name] for v in self.group]
        groups = self.engine.facts_from_columns(keys, len(changed))
        before = self._find_present(groups, present)
        moved = GroupChanges(self, groups, before, changed, after)
        values = moved.values()
        is_known = values != UNKNOWN
        parts = [before.negate(), self._facts([c[is_known] for c in moved.columns], values[is_known])]
        if not is_known.all():
            parts.append(self._look_at(groups.take(~is_known), moved, after))
        return self.engine.plus(parts, self.width + 1)

    def _find_present(self, groups: Facts, present: ColumnarVersion) -> Facts:
        terms = (*self.group, self.call.result)
        rows = self.engine.join(self.engine.scan(groups, self.group), present, terms)
        return self.engine.project(rows, terms)

    def _look_at(self, groups: Facts, moved: GroupChanges, after: ColumnarVersion) -> Facts:
        """The values of groups that only their members tell, or a summary of them."""
        known = self._ask_summaries(groups, moved)
        is_known = known != UNKNOWN
        columns = groups.columns()
        parts = [self._facts([c[is_known] for c in columns], known[is_known])]
        if not is_known.all():
            members = self._members(after, self.engine.scan(groups.take(~is_known), self.group))
            parts.append(self._facts(members.keys, self._aggregate(members)))
            self._summarise(members)
        return self.engine.plus(parts, self.width + 1)

    def _ask_summaries(self, groups: Facts, moved: GroupChanges) -> Values:
        """The values of groups that there is a summary of."""
        values = np.full(len(groups), UNKNOWN, np.int64)
        if not self.summaries:
            return values
        texts: dict[int, str | None] = {}
        for i, group in enumerate(part(self.engine.pairs, groups.columns(), len(groups)).tolist()):
            summary = self.summaries.get(group)
            if summary is not None:
                self._note()
                try:
                    summary.change(moved.changes_of(group))
                    value = summary.value()
                    texts[i] = None if value is None else term_text(value)
                except OutOfSight:
                    del self.summaries[group]
        values[list(texts)] = self._encode(list(texts.values()))
        return values

    def _summarise(self, members: Members) -> None:
        """Remember large groups that are looked at a second time."""
        group_ids = part(self.engine.pairs, members.keys, len(members.starts)).tolist()
        for group, (values, times) in zip(group_ids, members, strict=True):
            if len(values) < self.engine.numbers.large_group:
                continue
            self._note()
            self._touched[group] += 1
            if self._touched[group] < 2 or len(self.summaries) >= self.engine.numbers.most_summaries:
                continue
            summary = self._summary(values, times)
            if summary is not None:
                self.summaries[group] = summary

    def _summary(self, values: Ids, times: Counts | None) -> Summary | None:
        dictionary = self.engine.dictionary
        unique, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        if times is not None:
            counts = np.zeros(len(unique), np.int64)
            np.add.at(counts, inverse, times)
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
            return self._total(values, times)
        except OutOfSight:
            return None

    def _total(self, values: Ids, times: Counts | None) -> Total:
        """The exact total of terms; `OutOfSight` if they are not all finite numbers."""
        dictionary = self.engine.dictionary
        kinds = dictionary.kinds(values)
        weights = np.ones(len(values), np.int64) if times is None else times
        total = Total(self.call)
        at = kinds == INTEGER
        integers, own = dictionary.integers(values[at]), weights[at]
        exact, rounded = sum_integers(integers, own), sum_doubles(integers.astype(np.float64), own)
        total.add_integers(int(own.sum()), exact, rounded)
        at = kinds == DOUBLE
        total.add_doubles(int(weights[at].sum()), sum_doubles(dictionary.doubles(values[at]), weights[at]))
        rest = (kinds != INTEGER) & (kinds != DOUBLE)
        total.change(zip(dictionary.terms(values[rest]), weights[rest].tolist(), strict=True))
        return total

    def _note(self) -> None:
        """What is remembered follows the update: with it, it goes."""
        if self._noted != self.engine.journal.number:
            self._noted = self.engine.journal.number
            self.engine.journal.note(self.forget)

    def forget(self) -> None:
        self.summaries.clear()
        self._touched.clear()
