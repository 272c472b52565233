"""The worst-case optimal step of the embedded engine: each row takes its shortest list of candidates for one new variable.

Where all candidates of both factors lie in one sorted array each, compiled loops read the one against the other, and add up what
nobody asks for; otherwise rows are divided by which factor has the shortest list for them, and joined with that first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hdlog import interrupts
from hdlog.engines.columnar.context import ColumnarVersion, Source, runs_of, sources_of
from hdlog.engines.columnar.facts import check_sums, find_largest, multiply
from hdlog.engines.columnar.joins import COLUMN, PROBED, Joins
from hdlog.engines.columnar.kernels import Ids, Rows
from hdlog.engines.columnar.kernels.meeting import meet_groups, meet_lists, meet_sizes
from hdlog.engines.columnar.kernels.sorting import order_of, sort_places
from hdlog.engines.columnar.keys import part
from hdlog.engines.columnar.relation import Relation, stack
from hdlog.engines.protocol import Allow
from hdlog.program.terms import Term, Variable

_List = tuple[Any, Any, Rows, Rows]
"""Sorted keys or their lower halves, their counts, and per row where its keys begin and end."""
_NO_COUNTS = np.empty(0, np.int64)
_LOW = np.uint64(0xFFFFFFFF)


class Meeting(Joins):
    def meet(
        self,
        left: Relation,
        name: str,
        factors: Sequence[tuple[ColumnarVersion, Sequence[Term]]],
        needed: Sequence[str],
        allow: Allow | None = None,
    ) -> Relation:
        interrupts.check()
        if not len(left):
            return Relation({n: np.empty(0, np.uint32) for n in needed if n in left.columns or n == name}, 0)
        if len(factors) == 1 and (
            name not in needed or len(set(needed) & set(left.columns)) == len(left.columns)
        ):
            return self.join(left, *factors[0], allow).keep(needed)
        factors = sorted(factors, key=lambda f: self.fan_out(f[0], _others(f[1], name)))
        first = factors[:2]
        # The other factors may ask for any column.
        keep = [*left.columns, name] if len(factors) > 2 else needed
        lists = self._find_lists(left, name, first)
        relation = self._meet_lists(left, name, lists, keep) if lists else None
        if relation is None:
            relation = self._join_shortest_first(left, name, first, allow)
        elif allow is not None:
            allow(len(relation))
        for version, terms in factors[2:]:
            relation = self.join(relation, version, terms, allow)
        return relation.keep(needed)

    def _find_lists(
        self, left: Relation, name: str, factors: Sequence[tuple[ColumnarVersion, Sequence[Term]]]
    ) -> list[_List] | None:
        """The candidates of each row by each factor, the longest first; None where looking them up is better."""
        lists = []
        for version, terms in factors:
            candidates = self._find_list(left, version, terms, name)
            if candidates is None:
                return None
            lists.append(candidates)
        if all(4 * len(left) > len(keys) for keys, *_ in lists) and all(
            not len(c) or (int(c.max()) < 2**31 and int(c.min()) > -(2**31)) for _, c, *_ in lists
        ):
            # Worth a pass over everything: half the bytes to read for each candidate.
            lists = [
                ((keys & _LOW).astype(np.uint32), counts.astype(np.int32), low, high)
                for keys, counts, low, high in lists
            ]
        else:
            lists = [
                (keys, counts.astype(np.int64, copy=False), low, high) for keys, counts, low, high in lists
            ]
        return sorted(lists, key=lambda candidates: -int((candidates[3] - candidates[2]).sum()))

    def _find_list(
        self, left: Relation, version: ColumnarVersion, terms: Sequence[Term], name: str
    ) -> _List | None:
        """The candidates of each row in one sorted array, if there is one or making it pays."""
        bound = _others(terms, name)
        (free,) = (i for i in range(len(terms)) if i not in bound)
        order = (bound, (free,))
        sources: list[Source] = [version.table] if len(version.table) else []
        sources += [f for f in (*version.plus, *version.minus) if len(f)]
        if len(sources) == 1 and not any(map(len, version.minus)):
            runs = runs_of(sources[0], order)
        else:
            runs = []
        if len(runs) != 1 or len(runs[0][1]):
            if 4 * len(left) < sum(map(len, sources)):
                return None
            runs = runs_of(self.sum_of(version), order)
        keys, _, counts = runs[0]
        lefts = part(self.pairs, [self.column_of(left, terms[i]) for i in bound], len(left), grow=False)
        return keys, _NO_COUNTS if counts is None else counts, *self.find_ranges(keys, lefts, len(bound) == 1)

    def _meet_lists(
        self, left: Relation, name: str, lists: Sequence[_List], needed: Sequence[str]
    ) -> Relation | None:
        """None where a plain join does as well."""
        # The longer lists are spread out, the shorter ones read.
        a, b = lists[0], lists[-1]
        single = len(lists) == 1
        lengths = np.minimum(a[3] - a[2], b[3] - b[2])
        product = find_largest(a[1]) * (1.0 if single else find_largest(b[1]))
        columns = {n: c for n, c in left.columns.items() if n in needed}
        factors = _NO_COUNTS if left.counts is None else left.counts
        if name not in needed and not single:
            check_sums(product * float(lengths.max()))
            sums = np.empty(len(left), np.int64)
            order = _find_ascending_order(a[2])
            self.halve(lambda part: meet_sizes(*a, *b, part, self._make_places(), sums), order)
            counts = multiply(sums, left.counts)
            return Relation(columns, len(left), counts).take(sums != 0)
        check_sums(product * find_largest(left.counts) * float(lengths.sum()))
        groups = self._number_groups(left, columns, int(lengths.sum()))
        if groups is None:
            return self._meet_rows(left, name, (a, b)) if not single else None
        order = _find_ascending_order((groups << 32) + a[2])
        parts = self.halve(
            lambda part: meet_groups(
                *a, *b, part, self._make_places(), groups, factors, self._make_places(), single
            ),
            order,
            groups,
        )
        member, values, counts = (np.concatenate([p[i] for p in parts]) for i in range(3))
        member_columns = {n: c[member] for n, c in columns.items()}
        return Relation(
            {**member_columns, name: values}, len(member), None if (counts == 1).all() else counts
        )

    def _number_groups(self, left: Relation, columns: dict[str, Ids], candidates: int) -> Rows | None:
        """A number for each combination of some columns, if rows share them and have candidates to add up."""
        if len(columns) == len(left.columns) or candidates <= 2 * len(left):
            return None
        groups = part(self.pairs, list(columns.values()), len(left)).astype(np.int64)
        ordered = groups if (groups[1:] >= groups[:-1]).all() else sort_places(groups.copy())
        return groups if (ordered[1:] == ordered[:-1]).any() else None

    def _meet_rows(self, left: Relation, name: str, lists: tuple[_List, _List]) -> Relation:
        """Each row with each candidate; nothing to add up."""
        a, b = lists
        rows = int(np.minimum(a[3] - a[2], b[3] - b[2]).sum())
        self.budget.check(rows, 2 * PROBED + COLUMN * len(left.columns))
        counted = bool(len(a[1]) or len(b[1]))
        probe, values, weights = meet_lists(*a, *b, _find_ascending_order(a[2]), self._make_places(), counted)
        columns = {n: c[probe] for n, c in left.columns.items()}
        product = multiply(weights if counted else None, None if left.counts is None else left.counts[probe])
        return Relation({**columns, name: values}, len(probe), product)

    def _make_places(self) -> Rows:
        """A zero for each id."""
        return np.zeros(len(self.dictionary) + 1, np.int64)

    def _join_shortest_first(
        self,
        left: Relation,
        name: str,
        factors: Sequence[tuple[ColumnarVersion, Sequence[Term]]],
        allow: Allow | None,
    ) -> Relation:
        """Each row by the factor with its shortest list, then the others."""
        if len(factors) == 1:
            return self.join(left, *factors[0], allow)
        best = self._find_shortest(left, name, factors)
        parts = []
        for number in range(len(factors)):
            chosen = left.take(best == number)
            if len(chosen):
                for version, terms in (factors[number], *(f for i, f in enumerate(factors) if i != number)):
                    chosen = self.join(chosen, version, terms, allow)
                parts.append(chosen)
        return stack(parts)

    def _find_shortest(
        self, left: Relation, name: str, factors: Sequence[tuple[ColumnarVersion, Sequence[Term]]]
    ) -> Rows:
        """For each row the number of the factor with its shortest list, or of the first with one so short that no other is asked."""
        best = np.zeros(len(left), np.int64)
        shortest = self._measure_lists(left, *factors[0], name)
        for number, (version, terms) in enumerate(factors[1:], 1):
            long = np.flatnonzero(shortest > self.numbers.short_list)
            if len(long):
                lengths = self._measure_lists(left.take(long), version, terms, name)
                shorter = lengths < shortest[long]
                best[long[shorter]] = number
                shortest[long[shorter]] = lengths[shorter]
        return best

    def _measure_lists(
        self, left: Relation, version: ColumnarVersion, terms: Sequence[Term], name: str
    ) -> Rows:
        bound = _others(terms, name)
        (free,) = (i for i in range(len(terms)) if i not in bound)
        total = np.zeros(len(left), np.int64)
        for source in [*sources_of(version), *version.minus]:
            for keys, _, _ in runs_of(source, (bound, (free,))):
                lefts = part(
                    self.pairs, [self.column_of(left, terms[i]) for i in bound], len(left), grow=False
                )
                low, high = self.find_ranges(keys, lefts, len(bound) == 1)
                total += high - low
        return total


def _find_ascending_order(numbers: Rows) -> Rows:
    """The order in which numbers rise."""
    if (numbers[1:] >= numbers[:-1]).all():
        return np.arange(len(numbers))
    return order_of(numbers)


def _others(terms: Sequence[Term], name: str) -> tuple[int, ...]:
    """The columns of an atom other than the one of a variable."""
    return tuple(i for i, t in enumerate(terms) if not (isinstance(t, Variable) and t.name == name))
