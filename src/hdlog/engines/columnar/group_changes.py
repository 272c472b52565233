"""A change of facts by group, and the new values of groups as far as the old ones and the change tell them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.context import ColumnarVersion
from hdlog.engines.columnar.dictionary import INTEGER, Dictionary
from hdlog.engines.columnar.facts import Facts
from hdlog.engines.columnar.groups import NO_VALUE, SAFE, UNKNOWN, Members, Values, find_extremes
from hdlog.engines.columnar.kernels.sorting import order_of
from hdlog.engines.columnar.keys import part
from hdlog.engines.columnar.relation import Relation
from hdlog.program.terms import Constant

if TYPE_CHECKING:
    from hdlog.engines.columnar.aggregates import Aggregator


class GroupChanges:
    """A change of facts by group, beside the values that the groups had."""

    def __init__(
        self, of: Aggregator, groups: Facts, before: Facts, changed: Relation, after: ColumnarVersion
    ) -> None:
        """`changed` are groups and values with how many more or fewer of them there are."""
        pairs = of.engine.pairs
        self.of = of
        self.after = after
        self.columns = groups.columns()
        self.dictionary: Dictionary = of.engine.dictionary
        ids = part(pairs, self.columns, len(groups))
        rank = order_of(ids)
        self.ids = ids
        """of the groups, in their order"""
        delta_groups = part(pairs, [changed.columns[v.name] for v in of.group], len(changed))
        self.group = rank[np.searchsorted(ids, delta_groups, sorter=rank)]
        """for each change the number of its group"""
        self.signs = changed.weights()
        self.changed = delta_groups if of.value is None else changed.columns[of.value]
        self.present = np.full(len(groups), NO_VALUE, np.int64)
        had = before.columns()
        had_ids = part(pairs, had[: of.width], len(before))
        self.present[rank[np.searchsorted(ids, had_ids, sorter=rank)]] = had[-1]

    def changes_of(self, group: int) -> list[tuple[Constant, int]]:
        (number,) = np.flatnonzero(self.ids == group)
        rows = self.group == number
        return list(zip(self.dictionary.terms(self.changed[rows]), self.signs[rows].tolist(), strict=True))

    def values(self) -> Values:
        """The new value of each group, or NO_VALUE, as far as the old one and the change tell it."""
        function = self.of.call.function
        if function == "count" or self.of.value is None:
            return self._counts()
        known = np.full(len(self.ids), UNKNOWN, np.int64)
        summarised = np.isin(self.ids, list(self.of.summaries)) if self.of.summaries else None
        if function == "sum":
            known = self._sums()
        elif function in ("min", "max"):
            known = self._extremes(function == "max")
        if summarised is not None:
            known[summarised] = UNKNOWN  # a summary has to hear of every change
        return known

    def _counts(self) -> Values:
        had = np.zeros(len(self.ids), np.int64)
        there = self.present != NO_VALUE
        had[there] = self.dictionary.integers(self.present[there].astype(np.uint32))
        counts = had
        np.add.at(counts, self.group, self.signs)
        assert (counts >= 0).all(), "no group has less than nothing"
        count_ids = np.full(len(self.ids), NO_VALUE, np.int64)
        count_ids[counts > 0] = self.dictionary.encode_integers(counts[counts > 0])
        return count_ids

    def _sums(self) -> Values:
        """Sums of integers, where the old value is an integer and all that comes and goes is."""
        sum_ids = np.full(len(self.ids), UNKNOWN, np.int64)
        sure = self._have(INTEGER)
        if not sure.any():
            return sum_ids
        values = self.dictionary.integers(self.changed).astype(np.float64) * self.signs
        had = np.zeros(len(self.ids))
        present = self.present[sure].astype(np.uint32)
        had[sure] = self.dictionary.integers(present)
        sizes = np.bincount(self.group, np.abs(values), len(self.ids)) + np.abs(had)
        sure &= sizes < SAFE
        exact = np.zeros(len(self.ids), np.int64)
        mine = sure[self.group]
        np.add.at(exact, self.group[mine], self.dictionary.integers(self.changed[mine]) * self.signs[mine])
        exact[sure] += self.dictionary.integers(self.present[sure].astype(np.uint32))
        empty = self._find_empty(sure)
        sum_ids[empty] = NO_VALUE
        kept = sure & ~empty
        sum_ids[kept] = self.dictionary.encode_integers(exact[kept])
        return sum_ids

    def _have(self, kind: int) -> NDArray[np.bool_]:
        """Groups that had a value, of a kind, and in which nothing else changes."""
        sure: NDArray[np.bool_] = self.present != NO_VALUE
        sure[sure] = self.dictionary.kinds(self.present[sure].astype(np.uint32)) == kind
        other = self.dictionary.kinds(self.changed) != kind
        sure[self.group[other]] = False
        return sure

    def _find_empty(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of the chosen groups have no members any more."""
        loses = np.zeros(len(self.ids), np.bool_)
        loses[self.group[self.signs < 0]] = True
        asked = np.flatnonzero(chosen & loses)
        is_empty = np.zeros(len(self.ids), np.bool_)
        groups = {v.name: c[asked] for v, c in zip(self.of.group, self.columns, strict=True)}
        is_empty[asked] = ~self._have_members(Relation(groups, len(asked)))
        return is_empty

    def _have_members(self, groups: Relation) -> NDArray[np.bool_]:
        """Which groups have a match: by how many facts could be one, where that tells it."""
        of = self.of
        has_member, is_sure = of.engine.have_matches(groups, self.after, of.terms)
        rest = np.flatnonzero(~is_sure)
        if len(rest):
            number = Relation(
                {**groups.columns, "#group": np.arange(len(groups), dtype=np.uint32)}, len(groups)
            )
            rows = of.engine.join(number.take(rest), self.after, of.terms)
            rows = of.engine.collapse(of.engine.keep_columns(rows, [*of.names, "#group"]))
            has_member[rest] = False
            has_member[rows.columns["#group"]] = True
        return has_member

    def _extremes(self, largest: bool) -> Values:
        """The old value against those that come, unless it goes itself."""
        sure = self.present != NO_VALUE
        goes = self.signs < 0
        gone = goes & (self.changed == self.present[self.group])
        sure[self.group[gone]] = False
        there = self.present[sure].astype(np.uint32)
        comes = sure[self.group] & ~goes
        candidates = np.concatenate([there, self.changed[comes]])
        owners = np.concatenate([np.flatnonzero(sure), self.group[comes]])
        extremes = np.full(len(self.ids), UNKNOWN, np.int64)
        if not len(candidates):
            return extremes
        order = order_of(owners)
        starts = np.flatnonzero(np.append(True, owners[order][1:] != owners[order][:-1]))
        members = Members([], candidates[order], starts)
        values = find_extremes(self.dictionary, members, largest)
        # Values of several kinds have no extreme; what is left when some of them go is not known here.
        values[values == NO_VALUE] = UNKNOWN
        extremes[owners[order][starts]] = values
        return extremes
