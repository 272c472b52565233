"""Terms and pairs that nothing refers to any more are given back: facts that come and go leave them behind.

Ids of terms that stay keep their order, so what is sorted by them stays sorted. Ids of pairs do not, and what has them is
sorted anew. Whoever has facts of before goes on with the dictionary and the pairs of before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.dictionary import Dictionary
from hdlog.engines.columnar.facts import Facts, Order, columns_of, keys_of, primary_order
from hdlog.engines.columnar.kernels import Ids, Keys
from hdlog.engines.columnar.kernels.sorting import order_of
from hdlog.engines.columnar.keys import PairTable
from hdlog.engines.columnar.runs import Index, SupportedRun
from hdlog.engines.columnar.table import Table


@dataclass
class Tidied:
    dictionary: Dictionary
    pairs: PairTable


def tidy(
    dictionary: Dictionary, pairs: PairTable, tables: Sequence[Table], facts: Sequence[Facts]
) -> Tidied | None:
    """The terms and pairs that tables and facts refer to, which refer to these from now on; None if most terms are in use."""
    used = _mark_used(dictionary, pairs, tables, facts)
    if (
        2 * int(np.count_nonzero(used)) > len(dictionary)
        and 2 * _count_needed_pairs(tables, facts) > pairs.size
    ):
        return None
    fresh, ids = dictionary.without_unused(used)
    renumbering = _Renumbering(ids, pairs, PairTable())
    # First everything new, then in one go in place of the old: an error in between changes nothing.
    new_facts = [renumbering.keys(f.keys, primary_order(f.arity)) for f in facts]
    new_tables = [(t, *renumbering.table(t)) for t in tables]
    for one, (keys, order) in zip(facts, new_facts, strict=True):
        one.pairs, one.keys = renumbering.new_pairs, keys
        one.counts = one.counts if one.counts is None or order is None else one.counts[order]
        one.forget_indexes()
    for table, runs, indexes in new_tables:
        table.pairs, table.runs, table.indexes = renumbering.new_pairs, runs, indexes
    return Tidied(fresh, renumbering.new_pairs)


def _count_needed_pairs(tables: Iterable[Table], facts: Iterable[Facts]) -> int:
    """How many pairs there have to be, at least: two halves of a row, or one for each row and column above two."""
    stored = (sum(map(len, t.runs)) for t in tables if t.arity > 2)
    return sum(stored) + sum(len(f) for f in facts if f.arity > 2)


def _mark_used(
    dictionary: Dictionary, pairs: PairTable, tables: Iterable[Table], facts: Iterable[Facts]
) -> NDArray[np.bool_]:
    used = np.zeros(len(dictionary), np.bool_)
    for table in tables:
        for run in table.runs:
            for column in columns_of(pairs, run.keys, primary_order(table.arity)):
                used[column] = True
    for one in facts:
        for column in one.columns():
            used[column] = True
    dictionary.mark_parts(used)
    return used


class _Renumbering:
    def __init__(self, ids: Ids, old_pairs: PairTable, new_pairs: PairTable) -> None:
        self.ids, self.old_pairs, self.new_pairs = ids, old_pairs, new_pairs

    def keys(self, keys: Keys, order: Order) -> tuple[Keys, NDArray[np.int64] | None]:
        """The keys of the same rows, sorted, and in which order the rows are now, if it is another."""
        columns = [self.ids[c] for c in columns_of(self.old_pairs, keys, order)]
        new_keys = keys_of(self.new_pairs, columns, order, len(keys))
        if (new_keys[1:] >= new_keys[:-1]).all():
            return new_keys, None
        rank = order_of(new_keys)
        return new_keys[rank], rank

    def table(self, table: Table) -> tuple[list[SupportedRun], dict[Order, Index]]:
        runs: list[SupportedRun] = []
        for run in table.runs:
            keys, order = self.keys(run.keys, primary_order(table.arity))
            runs.append(run.with_keys(keys, order))
        # What has pairs in it is made again when it is asked for.
        indexes = {} if table.arity > 2 else {o: self._index(i) for o, i in table.indexes.items()}
        return runs, indexes

    def _index(self, index: Index) -> Index:
        runs = []
        for run in index.runs:
            keys, order = self.keys(run.keys, index.order)
            runs.append(run.with_keys(keys, order))
        return Index(index.order, index.journal, runs, index.small_run)
