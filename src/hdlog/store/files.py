"""The Parquet files of a store, written: terms, Skolem terms, facts, and what the planner wants to know of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hdlog.program.model import Predicate
from hdlog.reading.identifiers import SKOLEMS, StoreIds
from hdlog.store.buckets import buckets_of
from hdlog.store.store import Facts, File, Store

_TERMS_SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
_SKOLEM_SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("args", pa.list_(pa.int64()))])
_SKETCH = 1024
_MOST_ROWS = 1 << 23
"""Of a file."""


def write_terms(store: Store, ids: StoreIds, texts: pa.Array, bucket: int) -> File:
    path = store.new_file("terms")
    table = pa.table([pa.array(ids), texts], schema=_TERMS_SCHEMA)
    pq.write_table(table, store.folder / path, compression="zstd", use_dictionary=False)
    return store.describe_file(path, len(ids), bucket)


def write_new_terms(store: Store, ids: StoreIds, texts: pa.Array, buckets: int) -> list[File]:
    bucket = buckets_of(texts, buckets)
    return [
        write_terms(store, ids[bucket == b], texts.filter(pa.array(bucket == b)), int(b))
        for b in np.unique(bucket)
    ]


def write_skolems(store: Store, ids: list[int], names: list[str], arguments: list[list[int]]) -> File:
    assert all(i >= SKOLEMS for i in ids), "Skolem terms have ids of their own"
    path = store.new_file("skolems")
    table = pa.table([ids, names, pa.array(arguments, pa.list_(pa.int64()))], schema=_SKOLEM_SCHEMA)
    pq.write_table(table, store.folder / path)
    return store.describe_file(path, len(ids))


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


def write_facts(
    store: Store,
    number: int,
    columns: Sequence[StoreIds],
    rows: int,
    supports: Sequence[NDArray[np.int64]] | None = None,
) -> File:
    """One file of facts: asserted ones, unless supports are given (asserted, nonrecursive, recursive)."""
    if supports is None:
        supports = [np.ones(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows, np.int64)]
    names = [*(f"c{i}" for i in range(len(columns))), "asserted", "nonrecursive", "recursive"]
    path = store.new_file(f"facts/{number}")
    table = pa.table([pa.array(c) for c in (*columns, *supports)], names=names)
    pq.write_table(table, store.folder / path, compression="zstd", row_group_size=1 << 20)
    return store.describe_file(path, rows)


def sketch(ids: StoreIds) -> NDArray[np.uint64]:
    hashes = np.unique(mix(mix(ids).view(np.int64)))
    return hashes[:_SKETCH].copy()


def distinct_values(sketches: Sequence[NDArray[np.uint64]]) -> float:
    """About how many different values columns with these sketches have together."""
    smallest = np.unique(np.concatenate(sketches))[:_SKETCH]
    if len(smallest) < _SKETCH:
        return float(len(smallest))
    return (_SKETCH - 1) * 2.0**64 / float(smallest[-1])


def mix(ids: StoreIds) -> NDArray[np.uint64]:
    values = ids.view(np.uint64) if ids.dtype == np.int64 else ids.astype(np.uint64)
    values = values * np.uint64(0x9E3779B97F4A7C15)
    return values ^ (values >> np.uint64(29))
