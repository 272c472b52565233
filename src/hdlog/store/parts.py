"""What tasks of Spark do with the files of a store: each writes its rows as files that have their final names, and says which; and where
Spark itself may know nothing of the file system, they read them.

A task may run twice, or be given up half-way. Only what a task has told at its end becomes part of a version; other files are removed by the next
writer that tidies up.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hdlog.places import Remote, place
from hdlog.store import disk
from hdlog.store.disk import File

FILES = "path STRING, bytes BIGINT, checksum BIGINT, rows BIGINT, first BIGINT, last BIGINT, tail BIGINT"
"""What a task tells of a file."""
_LARGEST, _GROUP = 1 << 23, 1 << 18
"""Rows of a file, and of a row group."""
_PREDICATE = "p"


@dataclass(frozen=True)
class PartWriter:
    """Rows of a task, sorted, into files of a store."""

    folder: str
    prefix: str
    """of paths inside the store"""
    schema: pa.Schema
    constants: tuple[tuple[str, int], ...] = ()
    """columns that have the same value in all rows"""
    unique: bool = False
    """whether equal rows are to be one: the first of them"""
    plain: tuple[str, ...] = ()
    """columns of values that rarely repeat"""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = list(self._write(_leave_out_equal(batches) if self.unique else batches))
        if found:
            yield pa.RecordBatch.from_pylist([asdict(file) for file in found])

    def _write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[File]:
        groups = self._groups(batches)
        group = next(groups, None)
        while group is not None:
            path = f"{self.prefix}-{uuid.uuid4().hex[:12]}.parquet"
            with disk.create_at(place(self.folder) / path) as sink:
                options: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
                encoded = [name for name in self.schema.names if name not in self.plain]
                with pq.ParquetWriter(sink, self.schema, use_dictionary=encoded, **options) as writer:
                    rows, first, last = 0, _edge(group, 0), 0
                    while group is not None and rows < _LARGEST:
                        writer.write_table(group)
                        rows, last = rows + len(group), _edge(group, -1)
                        group = next(groups, None)
            yield File(path, sink.bytes, sink.checksum, rows, first, last, sink.blocks[-1])

    def _groups(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(len(b) for b in waiting) >= _GROUP:
                yield self._table(waiting)
                waiting = []
        if any(len(b) for b in waiting):
            yield self._table(waiting)

    def _table(self, batches: Sequence[pa.RecordBatch]) -> pa.Table:
        table = pa.Table.from_batches(batches)
        for name, value in self.constants:
            table = table.append_column(name, pa.array(np.full(len(table), value, np.int64)))
        return table.select(self.schema.names).cast(self.schema)


@dataclass(frozen=True)
class PartReader:
    """Names of files into their rows, or those of one predicate."""

    schema: pa.Schema
    number: int | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow.dataset as ds

        chosen = None if self.number is None else ds.field(_PREDICATE) == self.number
        for batch in batches:
            for path in batch.column(0).to_pylist():
                found = place(path)
                assert isinstance(found, Remote)
                source = ds.dataset(found.inside, self.schema, "parquet", found.files)
                yield from source.to_batches(columns=self.schema.names, filter=chosen)


def _edge(table: pa.Table, row: int) -> int:
    """The number of the predicate in the first or the last row."""
    return int(table[_PREDICATE][row].as_py()) if _PREDICATE in table.column_names else 0


def _leave_out_equal(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of equal rows, which follow each other, the first."""
    before: list[Any] | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        kept = np.zeros(batch.num_rows, np.bool_)
        arrays = [column.fill_null(0).to_numpy(zero_copy_only=False) for column in batch.columns]
        for array in arrays:
            kept[1:] |= array[1:] != array[:-1]
        first = [array[0] for array in arrays]
        kept[0] = before is None or any(a != b for a, b in zip(first, before, strict=True))
        before = [array[-1] for array in arrays]
        yield batch.filter(pa.array(kept))
