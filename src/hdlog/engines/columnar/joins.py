"""Joins of the embedded engine: rows meet the facts of a version by its indexes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hdlog import interrupts
from hdlog.engines.columnar.context import NO_FLAGS, ColumnarVersion, Source, runs_of, sources_of
from hdlog.engines.columnar.facts import Counts, Facts, Order, keys_of, multiply, primary_order
from hdlog.engines.columnar.kernels import Flags, Ids, Keys, Rows
from hdlog.engines.columnar.kernels.searching import expand, have_live, locate, offsets, ranges
from hdlog.engines.columnar.kernels.sorting import order_of, sort, sort_places
from hdlog.engines.columnar.keys import part, part_columns
from hdlog.engines.columnar.relation import Relation, select_atom, stack
from hdlog.engines.columnar.statistics import Statistics
from hdlog.engines.columnar.table import Table
from hdlog.engines.protocol import Allow
from hdlog.program.terms import Term, Variable

PROBED, COLUMN = 16, 4
"""Bytes that a row takes where probes are spelt out, and for each of its columns."""


class Joins(Statistics):
    def scan(self, facts: Facts, terms: Sequence[Term]) -> Relation:
        return select_atom(facts.columns(), len(facts), facts.counts, terms, self.encode)

    def join(
        self, left: Relation, version: ColumnarVersion, terms: Sequence[Term], allow: Allow | None = None
    ) -> Relation:
        interrupts.check()
        sources = [(source, 1) for source in sources_of(version)] + [(facts, -1) for facts in version.minus]
        parts = [self._join(left, s, terms, allow).scale(sign) for s, sign in sources if len(s) and len(left)]
        if not parts:
            names = [*left.columns, *(t.name for t in terms if isinstance(t, Variable))]
            return Relation({n: np.empty(0, np.uint32) for n in names}, 0)
        if len(parts) > 1:
            self.budget.check(sum(map(len, parts)), COLUMN * (len(parts[0].columns) + 2))
        return stack(parts)

    def _join(self, left: Relation, source: Source, terms: Sequence[Term], allow: Allow | None) -> Relation:
        bound = tuple(i for i, t in enumerate(terms) if not isinstance(t, Variable) or t.name in left.columns)
        free = tuple(i for i in range(len(terms)) if i not in bound)
        if not free:
            return self._lookup(left, source, terms)
        if not any(isinstance(terms[i], Variable) for i in bound):
            return self._cross(left, self._scan_source(source, terms, bound), allow)
        width = len(left.columns) + len(free) + 2 * (left.counts is not None)
        probe, rights, weights = self._probe(
            source, (bound, free), [self.column_of(left, terms[i]) for i in bound], width, allow
        )
        columns = {n: c[probe] for n, c in left.columns.items()}
        kept: NDArray[np.bool_] | None = None
        for i, column in zip(free, part_columns(self.pairs, rights, len(free)), strict=True):
            name = terms[i].name  # type: ignore[union-attr]
            if name in columns:
                kept = (column == columns[name]) if kept is None else kept & (column == columns[name])
            else:
                columns[name] = column
        counts = multiply(left.counts[probe] if left.counts is not None else None, weights)
        relation = Relation(columns, len(probe), counts)
        return relation if kept is None else relation.take(kept)

    def column_of(self, relation: Relation, term: Term) -> Ids:
        if isinstance(term, Variable):
            return relation.columns[term.name]
        return np.full(len(relation), self.encode(term), np.uint32)

    def _probe(
        self, source: Source, order: Order, bound: list[Ids], width: int, allow: Allow | None
    ) -> tuple[Rows, Ids, Counts | None]:
        """For each row of bound columns the right ids it meets: number of the row, right id, multiplicity.

        `width` is that of the rows that will be made of them, in columns.
        """
        runs = runs_of(source, order)  # before the look-up: making an index makes pairs known
        lefts = part(self.pairs, bound, len(bound[0]), grow=False)
        if len(runs) > 1 and sum(len(keys) for keys, *_ in runs) < len(lefts):
            runs = [_merge_runs(runs)]
        if len(bound) == 1 and len(self.dictionary) < 2 * len(lefts):
            return self._probe_directly(runs, lefts, width, allow)
        ordered = bool((lefts[1:] >= lefts[:-1]).all())
        rank = None if ordered else order_of(lefts)
        probes = lefts if rank is None else lefts[rank]
        parts = [self._spell_out(*run, *ranges(run[0], probes), width, allow) for run in runs]
        if not parts:
            return np.empty(0, np.int64), np.empty(0, np.uint32), None
        probe = np.concatenate([p[0] for p in parts]) if len(parts) > 1 else parts[0][0]
        rights = np.concatenate([p[1] for p in parts]) if len(parts) > 1 else parts[0][1]
        weights = parts[0][2]  # only facts have them, and facts are one run
        return (probe if rank is None else rank[probe]), rights, weights

    def _probe_directly(
        self, runs: list[tuple[Keys, Flags, Counts | None]], lefts: Ids, width: int, allow: Allow | None
    ) -> tuple[Rows, Ids, Counts | None]:
        """Many probes: an array of where each id begins saves sorting them."""
        parts = []
        for keys, dead, counts in runs:
            starts = offsets(keys, len(self.dictionary))
            bounds = starts[lefts], starts[lefts + np.uint32(1)]
            parts.append(self._spell_out(keys, dead, counts, *bounds, width, allow))
        if not parts:
            return np.empty(0, np.int64), np.empty(0, np.uint32), None
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]), None

    def _spell_out(
        self,
        keys: Keys,
        dead: Flags,
        counts: Counts | None,
        low: Rows,
        high: Rows,
        width: int,
        allow: Allow | None,
    ) -> tuple[Rows, Ids, Counts | None]:
        rows = int((high - low).sum())
        if allow is not None:
            allow(rows)
        self.budget.check(rows, PROBED + COLUMN * width)
        probe, rights = expand(keys, dead, low, high)
        if counts is None:
            return probe, rights, None
        lengths = high - low
        starts = np.cumsum(lengths) - lengths
        at = np.arange(len(probe)) - np.repeat(starts - low, lengths)
        return probe, rights, counts[at]

    def _lookup(self, left: Relation, source: Source, terms: Sequence[Term]) -> Relation:
        """Rows whose atom, fully bound, is a fact."""
        if (
            isinstance(source, Table)
            and len(terms) == 1
            and 4 * len(left) > len(source) > self.numbers.worth_flags
        ):
            column = self.column_of(left, terms[0])  # first: it may make a constant known
            return left.take(self._members(source)[column])
        rank, keys = self._sort_keys(left, terms)
        if isinstance(source, Table):
            is_there = source.contains(keys)
            kept = sort_places(rank[is_there]) if rank is not None else np.flatnonzero(is_there)
            return left if len(kept) == len(left) else left.take(kept)
        at = locate(source.keys, keys)
        hits = np.flatnonzero(at >= 0)
        relation = left.take(hits if rank is None else rank[hits])
        if source.counts is None:
            return relation
        counts = multiply(relation.counts, source.counts[at[hits]])
        return Relation(relation.columns, len(relation), counts)

    def _members(self, table: Table) -> NDArray[np.bool_]:
        """For each id whether it is in a table of one column."""
        flags = np.zeros(len(self.dictionary), np.bool_)
        flags[table.facts().keys >> np.uint64(32)] = True
        return flags

    def _sort_keys(self, left: Relation, terms: Sequence[Term]) -> tuple[Rows | None, Keys]:
        columns = [self.column_of(left, t) for t in terms]
        keys = keys_of(self.pairs, columns, primary_order(len(terms)), len(left), grow=False)
        if (keys[1:] >= keys[:-1]).all():
            return None, keys
        rank = order_of(keys)
        return rank, keys[rank]

    def _scan_source(self, source: Source, terms: Sequence[Term], bound: tuple[int, ...]) -> Relation:
        if not bound:
            facts = source.facts() if isinstance(source, Table) else source
            return self.scan(facts, terms)
        # Constants only: one probe of the index on them.
        single = Relation({}, 1)
        free = tuple(i for i in range(len(terms)) if i not in bound)
        _, rights, weights = self._probe(
            source, (bound, free), [self.column_of(single, terms[i]) for i in bound], len(free), None
        )
        columns = part_columns(self.pairs, rights, len(free))
        return select_atom(columns, len(rights), weights, [terms[i] for i in free], self.encode)

    def _cross(self, left: Relation, right: Relation, allow: Allow | None) -> Relation:
        if not left.columns and len(left) == 1:
            factor = 1 if left.counts is None else int(left.counts[0])
            return right.scale(factor)
        if allow is not None:
            allow(len(left) * len(right))
        self.budget.check(len(left) * len(right), PROBED + COLUMN * (len(left.columns) + len(right.columns)))
        a = np.repeat(np.arange(len(left)), len(right))
        b = np.tile(np.arange(len(right)), len(left))
        columns = {n: c[a] for n, c in left.columns.items()} | {n: c[b] for n, c in right.columns.items()}
        counts = None
        if left.counts is not None or right.counts is not None:
            counts = multiply(left.weights()[a], right.weights()[b])
        return Relation(columns, len(a), counts)

    def antijoin(self, left: Relation, version: ColumnarVersion, terms: Sequence[Term]) -> Relation:
        rank, keys = self._sort_keys(left, terms)
        present = version.table.contains(keys).astype(np.int8)
        for facts in version.plus:
            present += facts.contains(keys)
        for facts in version.minus:
            present -= facts.contains(keys)
        absent = np.flatnonzero(present == 0)
        if len(absent) == len(left):
            return left
        return left.take(absent if rank is None else sort_places(rank[absent]))

    def find_ranges(self, keys: Keys, lefts: Ids, single: bool) -> tuple[Rows, Rows]:
        """Where the keys of each left id begin and end."""
        if single and len(self.dictionary) < 2 * len(lefts):
            starts = offsets(keys, len(self.dictionary))
            return starts[lefts], starts[lefts + np.uint32(1)]
        if (lefts[1:] >= lefts[:-1]).all():
            return ranges(keys, lefts)
        rank = order_of(lefts)
        low, high = np.empty(len(lefts), np.int64), np.empty(len(lefts), np.int64)
        low[rank], high[rank] = ranges(keys, lefts[rank])
        return low, high

    def have_matches(
        self, left: Relation, version: ColumnarVersion, terms: Sequence[Term]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """For each row whether an atom has a match, and whether that is sure.

        Parts of a version may take facts from each other. So a row has a match for sure if one part has more facts for it than
        all others together, or if none has any.
        """
        bound = tuple(i for i, t in enumerate(terms) if not isinstance(t, Variable) or t.name in left.columns)
        free = tuple(i for i in range(len(terms)) if i not in bound)
        columns = [self.column_of(left, terms[i]) for i in bound]
        least, most = [], []
        for source in (*sources_of(version), *version.minus):
            at_least, at_most = self._count_facts(source, (bound, free), columns, len(left))
            least.append(at_least)
            most.append(at_most)
        none = np.max(least, axis=0) == 0
        others = np.sum(most, axis=0) - np.array(most)
        is_sure = none | (np.array(least) > others).any(axis=0)
        if len({terms[i] for i in free}) < len(free):
            is_sure = none  # facts that do not agree with themselves are no matches
        return ~none, is_sure

    def _count_facts(
        self, source: Source, order: Order, bound: Sequence[Ids], rows: int
    ) -> tuple[Rows, Rows]:
        """How many facts a source has for each row of bound columns, at least and at most."""
        if not bound:
            return np.full(rows, len(source)), np.full(rows, len(source))
        runs = runs_of(source, order)
        lefts = part(self.pairs, bound, rows, grow=False)
        at_least, at_most = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        for keys, dead, _ in runs:
            low, high = self.find_ranges(keys, lefts, single=False)
            at_most += high - low
            at_least += have_live(dead, low, high) if len(dead) else high - low
        return at_least, at_most


def _merge_runs(runs: Sequence[tuple[Keys, Flags, Counts | None]]) -> tuple[Keys, Flags, Counts | None]:
    """Runs of a table as one, for many probes: what they meet need not be put together then."""
    assert all(counts is None for *_, counts in runs), "only facts have counts, and facts are one run"
    live = [keys[dead == 0] if len(dead) else keys for keys, dead, _ in runs]
    return sort(np.concatenate(live)), NO_FLAGS, None
