"""Files of facts: rows of any predicates, sorted by predicate and values, with differences of their supports.

A fact is what its rows add up to: `asserted`, `nonrecursive` and `recursive` are its supports, and `live` is 1 if it holds. A store is such
a sum of files, so that a change is one more file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hdlog.reading.identifiers import StoreIds
from hdlog.store.disk import File
from hdlog.store.store import Store, report_damage

Counts = NDArray[np.int64]
SUPPORTS = ("asserted", "nonrecursive", "recursive", "live")
_LARGE, _LARGEST, _GROUP = 1 << 20, 1 << 23, 1 << 18
"""Rows from which on a predicate has files of its own, rows of a file, and of a row group."""


@dataclass(frozen=True)
class Rows:
    """Some facts of one predicate, each once."""

    number: int
    columns: Sequence[StoreIds]
    supports: Sequence[Counts]
    """differences of the four supports"""

    def __len__(self) -> int:
        return len(self.supports[0])

    def slice(self, low: int, high: int) -> Rows:
        part = slice(low, high)
        return Rows(self.number, [c[part] for c in self.columns], [s[part] for s in self.supports])

    def sort(self) -> Rows:
        """By the values."""
        if len(self) < 2:
            return self
        order = np.lexsort(self.columns[::-1]) if self.columns else np.arange(len(self))
        return Rows(self.number, [c[order] for c in self.columns], [s[order] for s in self.supports])


def asserted_rows(number: int, columns: Sequence[StoreIds], rows: int) -> Rows:
    """Facts that are asserted, and have no other support."""
    ones, zeros = np.ones(rows, np.int64), np.zeros(rows, np.int64)
    return Rows(number, columns, (ones, zeros, zeros, ones))


def write_facts(store: Store, parts: Iterable[Rows]) -> tuple[File, ...]:
    """Facts by rising numbers of their predicates; small predicates share files."""
    files: list[File] = []
    waiting: list[Rows] = []
    rows = 0
    for part in parts:
        if len(part) >= _LARGE:
            files += _write_together(store, waiting)
            waiting, rows = [], 0
            pieces = (part.slice(low, low + _LARGEST) for low in range(0, len(part), _LARGEST))
            files += [file for piece in pieces for file in _write_together(store, [piece])]
        elif len(part):
            waiting.append(part)
            rows += len(part)
            if rows >= _LARGE:
                files += _write_together(store, waiting)
                waiting, rows = [], 0
    return (*files, *_write_together(store, waiting))


def _write_together(store: Store, parts: Sequence[Rows]) -> list[File]:
    if not parts:
        return []
    width = max(len(part.columns) for part in parts)
    numbers = np.repeat(np.array([p.number for p in parts], np.int32), [len(p) for p in parts])
    arrays = {"p": pa.array(numbers)}
    for i in range(width):
        pieces = [
            pa.array(part.columns[i], pa.int64())
            if i < len(part.columns)
            else pa.nulls(len(part), pa.int64())
            for part in parts
        ]
        arrays[f"c{i}"] = pa.chunked_array(pieces)
    for i, name in enumerate(SUPPORTS):
        arrays[name] = pa.chunked_array([pa.array(part.supports[i], pa.int64()) for part in parts])
    table = pa.table(arrays)
    first, last = int(numbers[0]), int(numbers[-1])
    return [
        store.write_table("facts", table, first, last, row_group_size=_GROUP, use_dictionary=["p", *SUPPORTS])
    ]


def read_rows(store: Store, file: File, number: int | None = None) -> Iterator[Rows]:
    """The facts in a file, predicate by predicate, or those of one; columns that a predicate does not have are left out."""
    if number is not None and not file.first <= number <= file.last:
        return
    with report_damage(store.folder / file.path):
        table = _read_groups(store, file, number)
        numbers = table["p"].to_numpy()
        columns = [table[f"c{i}"] for i in range(len(table.column_names) - 1 - len(SUPPORTS))]
        supports = [table[name].to_numpy() for name in SUPPORTS]
    firsts = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))[: len(numbers)]
    for low, high in zip(firsts.tolist(), [*firsts[1:].tolist(), len(numbers)], strict=True):
        own = int(numbers[low])
        if number is None or own == number:
            mine = [c.slice(low, high - low) for c in columns]
            present = [c.to_numpy() for c in mine if not c.null_count]
            yield Rows(own, present, [s[low:high] for s in supports])


def _read_groups(store: Store, file: File, number: int | None) -> pa.Table:
    source = pq.ParquetFile(pa.BufferReader(store.read(file)))
    groups = list(range(source.num_row_groups))
    if number is not None and file.first != file.last:
        place = source.schema_arrow.get_field_index("p")
        kept = []
        for group in groups:
            statistics = source.metadata.row_group(group).column(place).statistics
            if statistics is None or statistics.min <= number <= statistics.max:
                kept.append(group)
        groups = kept
    return source.read_row_groups(groups)


def add_up(parts: Sequence[Rows]) -> Rows:
    """The sum of rows of one predicate; what adds up to nothing is left out."""
    first = parts[0]
    if len(parts) == 1:
        return first
    columns = [np.concatenate(c) for c in zip(*(p.columns for p in parts), strict=True)]
    supports = [np.concatenate(s) for s in zip(*(p.supports for p in parts), strict=True)]
    order = np.lexsort(columns[::-1]) if columns else np.arange(len(supports[0]))
    columns, supports = [c[order] for c in columns], [s[order] for s in supports]
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(new)
    totals = [np.add.reduceat(s, starts) if len(starts) else s for s in supports]
    kept = np.logical_or.reduce([t != 0 for t in totals])
    return Rows(first.number, [c[starts][kept] for c in columns], [t[kept] for t in totals])
