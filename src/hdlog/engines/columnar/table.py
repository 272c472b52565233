"""A predicate's facts with their supports, in sorted runs, and indexes over them.

The life of a fact: *stored* with supports while any derivation or assertion is known, *live* while it
belongs to the materialisation. Overdeletion makes a fact dead and leaves its supports, so that a
rederivation finds them. New facts come as a new run; runs are merged when small ones pile up, and what is
dead and without support is dropped then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.budget import Budget
from hdlog.engines.columnar.facts import (
    Counts,
    Facts,
    Order,
    empty_facts,
    keys_of,
    primary_order,
)
from hdlog.engines.columnar.kernels import Flags, Keys, Rows
from hdlog.engines.columnar.kernels.halves import count_uppers
from hdlog.engines.columnar.kernels.merging import grow_run, merge_runs
from hdlog.engines.columnar.kernels.searching import locate
from hdlog.engines.columnar.kernels.sorting import order_of, sort
from hdlog.engines.columnar.keys import PairTable
from hdlog.engines.columnar.runs import Index, Run, SupportedRun
from hdlog.engines.columnar.tracking import Supports, Tracking, have_support
from hdlog.journal import Journal
from hdlog.tuning import Numbers

Support = Literal["asserted", "nonrecursive", "recursive"]
_NONE = np.empty(0, np.uint8)
_NO_COUNTS = np.empty(0, np.int64)
_STORED, _INDEXED = 26, 24
"""Bytes that a fact takes in a run with its supports, and while it is put into an index."""


class Table:
    """The facts of one predicate."""

    def __init__(
        self, pairs: PairTable, arity: int, journal: Journal, budget: Budget, numbers: Numbers
    ) -> None:
        self.budget = budget
        self.numbers = numbers
        self.pairs = pairs
        self.arity = arity
        self.journal = journal
        self.runs: list[SupportedRun] = []
        self.live = 0
        self.indexes: dict[Order, Index] = {}
        self._distinct: dict[tuple[int, ...], tuple[int, int]] = {}
        self._saved = -1
        self.changes = 0
        """how often it has changed"""
        self.tracking: Tracking | None = None
        """what has changed, where somebody wants to know"""
        self.mapped = False
        """whether the first run is kept elsewhere, and its keys never change"""
        self.made_indexes: dict[Order, Keys] = {}
        """the keys of that run in another order, where these were made here; of pairs, whose keys have no ids but those of terms"""

    def __len__(self) -> int:
        return self.live

    @property
    def dead(self) -> int:
        """Facts that are stored, but do not hold."""
        return sum(map(len, self.runs)) - self.live

    def _save(self, keys: Keys) -> None:
        """Before these facts change."""
        self.changes += 1
        if self.tracking is not None and len(keys):
            self.tracking.note(keys, self.supports_of(keys))
        if self._saved != self.journal.number:
            self._saved = self.journal.number
            runs, live = list(self.runs), self.live

            def restore() -> None:
                self.runs, self.live = runs, live
                self.changes += 1

            self.journal.note(restore)

    # Reading.

    def index(self, order: Order) -> list[Run]:
        """The runs in an order of columns; the index is made when first asked for."""
        if order == primary_order(self.arity):
            return list(self.runs)
        if order not in self.indexes:
            self.budget.check(self.live, _INDEXED, "an index")
            runs = [self._index_run(run, order) for run in self.runs]
            index = self.indexes[order] = Index(order, self.journal, runs, self.numbers.small_run)
            # Made in mid-update, it shows that update's changes, and goes with them.
            self.journal.note(lambda: self._forget(order, index))
            if self.mapped and self.arity == 2:
                self.made_indexes[order] = runs[0].keys
        return self.indexes[order].runs

    def _index_run(self, run: SupportedRun, order: Order) -> Run:
        """The keys of a run in another order of columns, with marks on the dead."""
        columns = Facts(self.pairs, self.arity, run.keys).columns()
        keys = keys_of(self.pairs, columns, order, len(run))
        if not len(run.dead):
            return Run(sort(keys), born=run.born)
        places = order_of(keys)
        return Run(keys[places], run.dead[places], run.born)

    def has_index(self, order: Order) -> bool:
        return order == primary_order(self.arity) or order in self.indexes

    def _forget(self, order: Order, index: Index) -> None:
        if self.indexes.get(order) is index:
            del self.indexes[order]

    def facts(self) -> Facts:
        """All live facts."""
        parts = [run.live_keys() for run in self.runs]
        if not parts:
            return empty_facts(self.pairs, self.arity)
        keys = parts[0] if len(parts) == 1 else sort(np.concatenate(parts))
        return Facts(self.pairs, self.arity, keys)

    def stored(self) -> Facts:
        """All facts with any support, whether they hold or not."""
        if not self.runs:
            return empty_facts(self.pairs, self.arity)
        return Facts(self.pairs, self.arity, sort(np.concatenate([run.keys for run in self.runs])))

    def largest_run(self) -> Facts:
        """The live facts of the largest run: most of them, as a rule."""
        if not self.runs:
            return empty_facts(self.pairs, self.arity)
        return Facts(self.pairs, self.arity, max(self.runs, key=len).live_keys())

    def contains(self, probes: Keys) -> NDArray[np.bool_]:
        """Which of the sorted probes are live."""
        live = np.zeros(len(probes), np.bool_)
        for run in self.runs:
            if run.keys is probes:
                return np.ones(len(probes), np.bool_) if not len(run.dead) else run.dead == 0
            at = locate(run.keys, probes)
            hits = np.flatnonzero(at >= 0)
            live[hits] = ~run.find_dead(at[hits])
        return live

    def supports_of(self, keys: Keys) -> Supports:
        """The supports of facts by their sorted keys, 0 where they are not stored."""
        if len(self.runs) == 1 and self.runs[0].keys is keys:
            run = self.runs[0]
            return run.asserted.astype(np.int64), run.nonrecursive.copy(), run.recursive.copy()
        asserted, fixed, recursive = (np.zeros(len(keys), np.int64) for _ in range(3))
        for run in self.runs:
            at = self._positions(run, keys)
            hit, here = at >= 0, at[at >= 0]
            asserted[hit], fixed[hit] = run.asserted[here], run.nonrecursive[here]
            recursive[hit] = run.recursive[here]
        return asserted, fixed, recursive

    def collect_changes(self) -> tuple[Facts, tuple[Counts, Counts, Counts, Counts]]:
        """The facts that have changed since the last time, with differences of their supports and of whether they hold."""
        assert self.tracking is not None, "somebody wants to know"
        keys, before = self.tracking.collect()
        after = self.supports_of(keys)
        live = have_support(after).astype(np.int64) - have_support(before)
        asserted, fixed, recursive = (b - a for a, b in zip(before, after, strict=True))
        changed = np.flatnonzero((asserted != 0) | (fixed != 0) | (recursive != 0))
        facts = Facts(self.pairs, self.arity, keys[changed])
        return facts, (asserted[changed], fixed[changed], recursive[changed], live[changed])

    def distinct(self, bound: tuple[int, ...]) -> int:
        """About how many values the bound columns have together; exact when last counted."""
        known = self._distinct.get(bound)
        if known is None or not 0.5 <= (known[0] + 1) / (self.live + 1) <= 2:
            values, rows = self._count_distinct(bound)
            count = int(values * self.live / max(1, rows))
            known = self._distinct[bound] = (self.live, max(1, min(count, self.live)))
        return known[1]

    def set_distinct(self, values: Sequence[float]) -> None:
        """How many values each column has, as somebody has counted them before."""
        if self.arity > 1:
            self._distinct = {(i,): (self.live, max(1, int(v))) for i, v in enumerate(values)}

    def _count_distinct(self, bound: tuple[int, ...]) -> tuple[int, int]:
        """How many values the bound columns have in the largest run, and how many rows that has."""
        order = (bound, tuple(i for i in range(self.arity) if i not in bound))
        if len(bound) == 1 and not self.has_index(order):
            facts = self.largest_run()
            counted = facts.count_values(bound[0])
            if counted is not None:
                return counted, len(facts)
        runs = self.index(order)
        if not runs:
            return 0, 0
        run = max(runs, key=len)
        keys = run.live_keys()
        return count_uppers(keys), len(keys)

    # Changing.

    def adjust(self, facts: Facts, support: Support) -> None:
        """Add multiplicities to a support; facts not yet stored are stored, dead."""
        self._save(facts.keys)
        keys, counts = facts.keys, facts.weights()
        for run in self.runs:
            at = self._positions(run, keys)
            hit = at >= 0
            if hit.any():
                column = getattr(run, support)
                self.journal.save(column, at[hit], run.born)
                column[at[hit]] += counts[hit].astype(column.dtype)
                keys, counts = keys[~hit], counts[~hit]
        if len(keys):
            self.runs.append(self._run(keys, counts, support, np.ones(len(keys), np.uint8)))
            self._merge()

    def grow(self, facts: Facts, support: Support) -> Facts:
        """Add to a support, all multiplicities positive; every fact becomes live. Those that were not."""
        self._save(facts.keys)
        keys, counts = facts.keys, _NO_COUNTS if facts.counts is None else facts.counts
        woken: list[Keys] = []
        for run in self.runs:
            if not len(keys):
                break
            column = getattr(run, support)
            if run.born != self.journal.number:
                at = locate(run.keys, keys)
                at = at[at >= 0]
                self.journal.save(column, at, run.born)
                self.journal.save(run.dead, at if len(run.dead) else at[:0], run.born)
            keys, counts, up = grow_run(run.keys, run.dead, column, keys, counts)
            if len(up):
                woken.append(up)
        if len(keys):
            ones = counts if len(counts) else np.ones(len(keys), np.int64)
            self.runs.append(self._run(keys, ones, support, _NONE))
            woken.append(keys)
            self._merge()
        live = self.unite(woken)
        self.live += len(live)
        self._index(live, True)
        return live

    def change(self, facts: Facts, support: Support) -> tuple[Facts, Facts]:
        """Change assertions or non-recursive supports; what became founded is live, what lost all is dead.

        Returns the facts that came and those that went.
        """
        self._save(facts.keys)
        keys, counts = facts.keys, facts.weights()
        came: list[Keys] = []
        went: list[Keys] = []
        for run in self.runs:
            at = locate(run.keys, keys)
            hit = at >= 0
            here = at[hit]
            if not len(here):
                continue
            column = getattr(run, support)
            self.journal.save(column, here, run.born)
            column[here] += counts[hit].astype(column.dtype)
            founded = (run.asserted[here] != 0) | (run.nonrecursive[here] != 0)
            live = ~run.find_dead(here)
            for changed, to, dead in ((founded & ~live, came, False), (live & ~founded, went, True)):
                if changed.any():
                    to.append(keys[hit][changed])
                    run.mark(here[changed], dead, self.journal)
            keys, counts = keys[~hit], counts[~hit]
            if not len(keys):
                break
        if len(keys):
            self.runs.append(self._run(keys, counts, support, _NONE))
            came.append(keys)
            self._merge()
        added, removed = self.unite(came), self.unite(went)
        self.live += len(added) - len(removed)
        self._index(removed, False)
        self._index(added, True)
        return added, removed

    def unite(self, parts: list[Keys]) -> Facts:
        if len(parts) < 2:
            keys = parts[0] if parts else np.empty(0, np.uint64)
        else:
            keys = sort(np.concatenate(parts))
        return Facts(self.pairs, self.arity, keys)

    def shrink(self, facts: Facts, support: Support) -> Facts:
        """Take from a support; those that were live, and have no assertion or non-recursive support, die."""
        self._save(facts.keys)
        keys, counts = facts.keys, facts.weights()
        died: list[Keys] = []
        for run in self.runs:
            at = locate(run.keys, keys)
            hit = at >= 0
            here = at[hit]
            if len(here):
                column = getattr(run, support)
                self.journal.save(column, here, run.born)
                column[here] -= counts[hit].astype(column.dtype)
                doomed = (run.asserted[here] == 0) & (run.nonrecursive[here] == 0) & ~run.find_dead(here)
                if doomed.any():
                    died.append(keys[hit][doomed])
                    run.mark(here[doomed], True, self.journal)
                keys, counts = keys[~hit], counts[~hit]
            if not len(keys):
                break
        assert not len(keys), "only what is stored has support to lose"
        dead = self.unite(died)
        self.live -= len(dead)
        self._index(dead, False)
        return dead

    def load(self, facts: Facts, support: Support) -> None:
        """Facts become live with a support; the table has no runs yet, and so no indexes."""
        self._save(facts.keys)
        if len(facts):
            self.runs = [self._run(facts.keys, 1 if facts.counts is None else facts.counts, support, _NONE)]
            self.live = len(facts)
            self.indexes = {}

    def _run(
        self, keys: Keys, counts: NDArray[np.int64] | int, support: Support, dead: Flags
    ) -> SupportedRun:
        self.budget.check(len(keys), _STORED, "a table")
        run = SupportedRun.without_support(keys, dead, self.journal.number)
        getattr(run, support)[:] = counts
        return run

    def _positions(self, run: SupportedRun, keys: Keys) -> Rows:
        """Where sorted keys stand in a run; known without looking if they are its own."""
        return np.arange(len(keys)) if run.keys is keys else locate(run.keys, keys)

    def insert(self, facts: Facts) -> None:
        """Stored, dead facts become live."""
        self._flip(facts, True)

    def delete(self, facts: Facts) -> None:
        """Live facts become dead; their supports stay."""
        self._flip(facts, False)

    def _flip(self, facts: Facts, live: bool) -> None:
        if not len(facts):
            return
        self._save(facts.keys[:0])
        left = facts.keys
        for run in self.runs:
            if run.keys is left and run.born == self.journal.number:
                run.dead = _NONE if live else np.ones(len(run), np.uint8)
                left = left[:0]
                break
            at = locate(run.keys, left)
            run.mark(at[at >= 0], not live, self.journal)
            left = left[at < 0]
        assert not len(left), "facts are stored before they become live"
        self.live += len(facts) if live else -len(facts)
        self._index(facts, live)

    def _index(self, facts: Facts, live: bool) -> None:
        if self.indexes and len(facts):
            columns = facts.columns()
            for index in self.indexes.values():
                keys = sort(keys_of(self.pairs, columns, index.order, len(facts)))
                (index.insert if live else index.delete)(keys)

    def select(self, facts: Facts, test: Callable[[SupportedRun, Rows], NDArray[np.bool_]]) -> Facts:
        """The facts that pass a test on their run; those not stored do not."""
        passed = np.zeros(len(facts), np.bool_)
        for run in self.runs:
            at = self._positions(run, facts.keys)
            hits = np.flatnonzero(at >= 0)
            if len(hits):
                passed[hits] = test(run, at[hits])
        return facts.take(passed)

    def _merge(self) -> None:
        """Merge while the last run is the larger of the last two, or both are small, or there are many."""
        while len(self.runs) > 1 and (
            len(self.runs[-2]) <= max(self.numbers.small_run, len(self.runs[-1]))
            or len(self.runs) > self.numbers.most_runs
        ):
            b, a = self.runs[-1], self.runs[-2]
            self.budget.check(len(a) + len(b), _STORED, "a table")
            self.mapped = self.mapped and len(self.runs) > 2
            del self.runs[-2:]
            keys, dead, asserted, fixed, recursive = merge_runs(*a.arrays(), *b.arrays())
            self.runs.append(SupportedRun(keys, dead, self.journal.number, asserted, fixed, recursive))

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in self.runs) + sum(index.nbytes for index in self.indexes.values())
