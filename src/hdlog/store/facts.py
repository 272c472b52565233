"""Files of facts: rows of any predicates, sorted by predicate and values, with differences of their supports.

A fact is what its rows add up to: `asserted`, `nonrecursive` and `recursive` are its supports, and `live` is 1 if it holds. A store is such
a sum of files, so that a change is one more file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hdlog.engines.columnar.kernels.sorting import order_of
from hdlog.reading.identifiers import StoreIds
from hdlog.store.disk import CHECKED, File
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

    @property
    def asserted(self) -> int:
        """By how many the asserted facts become more."""
        return int(self.supports[0].sum())

    @property
    def live(self) -> int:
        return int(self.supports[3].sum())


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
            files += _write_together(store, [part])
        elif len(part):
            waiting.append(part)
            rows += len(part)
            if rows >= _LARGE:
                files += _write_together(store, waiting)
                waiting, rows = [], 0
    return (*files, *_write_together(store, waiting))


def _write_together(store: Store, parts: Sequence[Rows]) -> list[File]:
    """All rows of some predicates, in one file if they fit there."""
    if not parts:
        return []
    lengths = [len(part) for part in parts]
    width = max(len(part.columns) for part in parts)
    numbers = np.repeat(np.array([part.number for part in parts], np.int32), lengths)
    columns, missing = [], []
    for i in range(width):
        nothing = np.zeros(max((len(p) for p in parts if len(p.columns) <= i), default=0), np.int64)
        columns.append(_join([p.columns[i] if i < len(p.columns) else nothing[: len(p)] for p in parts]))
        missing.append(np.repeat([len(p.columns) <= i for p in parts], lengths))
    order = order_rows(columns if columns and len(parts) == 1 else [numbers, *columns])
    arrays = {"p": pa.array(numbers)}
    for i, (column, mask) in enumerate(zip(columns, missing, strict=True)):
        arrays[f"c{i}"] = pa.array(column[order], pa.int64(), mask=mask[order] if mask.any() else None)
    for i, name in enumerate(SUPPORTS):
        arrays[name] = pa.array(_join([part.supports[i] for part in parts])[order], pa.int64())
    table = pa.table(arrays)
    first, last = int(numbers[0]), int(numbers[-1])
    pieces = [table.slice(low, _LARGEST) for low in range(0, len(table), _LARGEST)]
    return [
        store.write_table("facts", piece, first, last, row_group_size=_GROUP, use_dictionary=["p", *SUPPORTS])
        for piece in pieces
    ]


def _join(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def order_rows(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """The places of rows in the order of their values, the first column before the others."""
    order = order_of(columns[-1])
    for column in reversed(columns[:-1]):
        order = order[order_of(column[order])]
    return order


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
    data = pa.BufferReader(store.read(file))
    source = pq.ParquetFile(data, page_checksum_verification=file.bytes > CHECKED)
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
    order = order_rows(columns) if columns else np.arange(len(supports[0]))
    columns, supports = [c[order] for c in columns], [s[order] for s in supports]
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(new)
    totals = [np.add.reduceat(s, starts) if len(starts) else s for s in supports]
    kept = np.logical_or.reduce([t != 0 for t in totals])
    return Rows(first.number, [c[starts][kept] for c in columns], [t[kept] for t in totals])
