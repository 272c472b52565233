"""What is to be written of tables in the process: facts that have changed, with differences of their supports, under the numbers of the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import numpy as np

from hdlog.engines.columnar.facts import Counts, Facts, keys_of, primary_order
from hdlog.engines.columnar.kernels import Ids, Keys
from hdlog.engines.columnar.kernels.sorting import order_of
from hdlog.engines.columnar.keys import PairTable
from hdlog.engines.columnar.restoring import restore
from hdlog.engines.columnar.table import Table
from hdlog.engines.encoding import cut
from hdlog.program.model import Predicate
from hdlog.reading.identifiers import StoreIds
from hdlog.store.catalogue import Catalogue, Line
from hdlog.store.facts import Rows

_SHORT_TABLE = 10_000
"""Facts up to which a table is one of many."""
_TINY_TABLE = 100
"""Facts below which nobody counts how many values a column has."""


class BothIds(Protocol):
    """Ids of terms in the engine, and in the store."""

    def store_ids(self, ids: Ids) -> StoreIds: ...


class EngineIds(Protocol):
    def engine_ids(self, ids: StoreIds) -> Ids: ...


@dataclass(frozen=True)
class Changed:
    """What is to be written of a predicate."""

    predicate: Predicate
    facts: Facts
    supports: Sequence[Counts]
    """differences of the four supports"""
    source: Table | Facts
    """all there is, or most of it"""


def find_changes(predicate: Predicate, table: Table) -> Changed:
    """What has changed of a table, or all of one that was never written."""
    if table.tracking is not None:
        return Changed(predicate, *table.collect_changes(), table)
    facts = table.facts()
    return Changed(predicate, facts, (*table.supports_of(facts.keys), np.ones(len(facts), np.int64)), table)


def number_rows(catalogue: Catalogue, ids: BothIds, found: Sequence[Changed]) -> list[Rows]:
    """What is to be written, by the numbers of predicates; the catalogue has them counted then."""
    # Terms of many small tables get their ids together.
    small = [c.facts for c in found if len(c.facts) < _SHORT_TABLE]
    columns = [c for facts in small for c in facts.columns()]
    together = iter(cut(ids.store_ids(np.concatenate(columns)), map(len, columns)) if columns else ())
    parts = []
    for change in found:
        facts = change.facts
        own = [ids.store_ids(c) for c in facts.columns()] if len(facts) >= _SHORT_TABLE else []
        parts.append(_rows_to_write(catalogue, change, own or list(islice(together, facts.arity))))
    return sorted((part for part in parts if len(part)), key=lambda part: part.number)


def _rows_to_write(catalogue: Catalogue, change: Changed, columns: Sequence[StoreIds]) -> Rows:
    rows, supports = len(change.facts), change.supports
    known = rows or len(change.source)
    line = catalogue.number(change.predicate) if known else Line(-1, *change.predicate)
    if rows:
        made = Rows(line.number, columns, supports)
        distinct = line.distinct or _count_distinct(change.source)
        facts, asserted = line.rows + made.live, line.asserted + made.asserted
        catalogue.set(Line(line.number, line.name, line.arity, facts, asserted, distinct))
        return made
    return Rows(line.number, columns, supports)


def _count_distinct(source: Table | Facts) -> tuple[float, ...]:
    if source.arity < 2 or len(source) < _TINY_TABLE:
        return (float(len(source)),) * source.arity  # of few facts it matters little
    return tuple(float(source.distinct((i,))) for i in range(source.arity))


def sort_rows(
    pairs: PairTable, ids: EngineIds, arity: int, rows: Rows
) -> tuple[Keys, tuple[Counts, Counts, Counts]]:
    """Rows of the store as sorted keys of the engine, with their three supports."""
    columns = [ids.engine_ids(c) for c in rows.columns[:arity]]
    keys = keys_of(pairs, columns, primary_order(arity), len(rows))
    order = order_of(keys)
    asserted, fixed, recursive, _ = (s[order] for s in rows.supports)
    return keys[order], (asserted, fixed, recursive)


def restore_sum(table: Table, keys: Keys, supports: tuple[Counts, Counts, Counts]) -> None:
    """Fill an empty table with what rows of the store add up to."""
    asserted, fixed, recursive = supports
    held = (asserted != 0) | (fixed != 0) | (recursive != 0)
    restore(table, keys[held], (asserted[held].astype(np.uint8), fixed[held], recursive[held]))
