"""A dataset as a store, as N-Triples, or as Parquet."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdlog.benchmarks.data.dataset import Dataset
from hdlog.errors import UsageError
from hdlog.operations.stores import build_store
from hdlog.program.model import Predicate, Program
from hdlog.store.buckets import buckets_of
from hdlog.store.export import export, make_sheets
from hdlog.store.files import write_predicate, write_terms
from hdlog.store.store import Facts, File, Store

_BATCH = 1 << 20
_TERMS_A_BUCKET = 1 << 19
FORMATS = ("nt", "nt.gz", "parquet")


def write_store(
    data: Dataset,
    folder: Path,
    overwrite: bool = False,
    threads: int | None = None,
    tell: Callable[[float], None] = lambda _: None,
) -> Store:
    """A store with the facts as asserted ones; terms keep their ids."""
    with build_store(folder, overwrite) as store, ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        buckets = max(1, data.terms // _TERMS_A_BUCKET)
        pieces = [
            (block, low, min(low + _BATCH, block.size))
            for block in data.blocks
            for low in range(0, block.size, _BATCH)
        ]
        parts: list[list[tuple[NDArray[np.int64], pa.Array]]] = [[] for _ in range(buckets)]
        done = 0
        for first, texts in pool.map(lambda p: (p[0].first + p[1], p[0].texts(p[1], p[2])), pieces):
            bucket = buckets_of(texts, buckets)
            for number in np.unique(bucket).tolist():
                inside = np.flatnonzero(bucket == number)
                parts[number].append((first + inside, texts.take(pa.array(inside))))
            done += len(texts)
            tell(0.4 * done / data.terms)

        def write_bucket(number: int) -> File:
            ids = np.concatenate([i for i, _ in parts[number]])
            file = write_terms(store, ids, pa.concat_arrays([t for _, t in parts[number]]), number)
            parts[number] = []
            return file

        files = list(pool.map(write_bucket, [n for n in range(buckets) if parts[n]]))
        numbers = store.number_predicates(data.tables)
        facts = []
        written = 0
        for stored in pool.map(lambda p: _write_facts(store, numbers[p], p, data), data.tables):
            facts.append(stored)
            written += stored.rows
            tell(0.5 + 0.5 * written / data.facts)
        store.commit(facts=tuple(facts), term_files=tuple(files), terms=data.terms, buckets=buckets)
    return store


def _write_facts(store: Store, number: int, predicate: Predicate, data: Dataset) -> Facts:
    columns = [c.astype(np.int64) for c in data.tables[predicate]]
    return write_predicate(store, predicate, number, columns, len(columns[0]))


def write_files(
    data: Dataset, folder: Path, format_: str, tell: Callable[[float], None] = lambda _: None
) -> list[Path]:
    """Decoded files in a folder, and the rules beside them."""
    if format_ not in FORMATS:
        raise UsageError(f"unknown format {format_}; there are {', '.join(FORMATS)}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rules.dlog").write_text(data.rules)
    with _make_folder_beside(folder) as place:
        store = write_store(data, place / "store", tell=lambda share: tell(share / 2))
        if format_ == "parquet":
            export(make_sheets(store, Program()), "parquet", folder / "facts", lambda _: None, overwrite=True)
            tell(1.0)
            return sorted((folder / "facts").iterdir())
        path = folder / f"{data.name}.{format_}"
        export(make_sheets(store, Program()), "nt", path, lambda _: None)
    tell(1.0)
    return [path]


def write_triples(data: Dataset, path: Path) -> int:
    """One N-Triples file; how many triples it has."""
    with _make_folder_beside(path.parent) as place:
        sheets = make_sheets(write_store(data, place / "store"), Program())
        written, _ = export(sheets, "nt", path, lambda _: None)
    return written


@contextmanager
def _make_folder_beside(folder: Path) -> Iterator[Path]:
    """A folder for a while, on the same disk."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".making-") as name:
        yield Path(name)
