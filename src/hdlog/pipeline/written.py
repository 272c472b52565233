"""What both gates of a store do when they save: write what has changed, and terms where they belong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdlog.pipeline.buckets import buckets_of
from hdlog.pipeline.ingest import distinct_values, sketch, write_facts, write_terms
from hdlog.pipeline.store import Facts, File, Store
from hdlog.program.model import Predicate
from hdlog.reading.identifiers import StoreIds

_MOST_ROWS = 1 << 23
"""Of a file."""


class Written:
    """Which tables are in a store as they are."""

    def __init__(self) -> None:
        self._versions: dict[Predicate, int] = {}

    def note(self, tables: Mapping[Predicate, Any]) -> None:
        self._versions = {p: t.version for p, t in tables.items()}

    def facts(
        self, store: Store, tables: Mapping[Predicate, Any], write: Callable[[Predicate, int, Any], Facts]
    ) -> tuple[Facts, ...]:
        """What the store has of each table: files that are there, or new ones for those that have changed."""
        numbers = store.numbered(p for p, t in tables.items() if len(t))
        found = []
        for predicate, table in tables.items():
            old = store.manifest.of(predicate)
            if old is not None and self._versions.get(predicate) == table.version:
                found.append(old)
            elif len(table):
                found.append(write(predicate, numbers[predicate], table))
        self.note(tables)
        return tuple(found)


def write_predicate(
    store: Store,
    predicate: Predicate,
    number: int,
    columns: Sequence[StoreIds],
    rows: int,
    supports: Sequence[NDArray[np.int64]] | None = None,
) -> Facts:
    """All facts of a predicate in files that are not too large: asserted ones, unless supports are given."""
    files = []
    for low in range(0, rows, _MOST_ROWS):
        part = slice(low, low + _MOST_ROWS)
        some = [s[part] for s in supports] if supports is not None else None
        files.append(
            write_facts(store, number, [c[part] for c in columns], min(_MOST_ROWS, rows - low), some)
        )
    asserted = rows if supports is None else int(supports[0].sum())
    distinct = tuple(distinct_values([sketch(c)]) for c in columns)
    return Facts(predicate.name, predicate.arity, number, tuple(files), asserted, distinct)


def write_new_terms(store: Store, ids: StoreIds, texts: pa.Array, buckets: int) -> list[File]:
    bucket = buckets_of(texts, buckets)
    return [
        write_terms(store, ids[bucket == b], texts.filter(pa.array(bucket == b)), int(b))
        for b in np.unique(bucket)
    ]
