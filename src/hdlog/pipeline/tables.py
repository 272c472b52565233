"""Tables into facts: CSV, TSV, .facts and Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from io import BytesIO
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from hdlog.engines.load import InputError
from hdlog.pipeline.chunks import Reading
from hdlog.pipeline.columns import BAD, column_ids, text_ids
from hdlog.pipeline.kernels import Places
from hdlog.pipeline.splits import LineNumbers, Split, blocks, content, input_errors, opened
from hdlog.program.model import Predicate

_BLOCK = 16 << 20
_COLUMNS = {f"f{i}": pa.binary() for i in range(1000)}
"""What is read of any column: bytes, so that a value that is not UTF-8 spoils no more than its row."""


def read_separated(reading: Reading) -> None:
    """Read a split of a table with a row a line and a delimiter."""
    split = reading.split
    types = reading.types.get(split.table)
    if types is not None and not len(types):
        reading.add(Predicate(split.table, 0), [], int(any(block.strip() for _, block in blocks(split))))
        return
    if not any(block.strip(b"\r\n") for _, block in blocks(split)):
        return
    if split.start == 0 and split.end < 0:
        with opened(split) as stream:
            _read_rows(stream, reading)
    else:
        _read_rows(BytesIO(content(split)), reading)


def _read_rows(stream: IO[bytes], reading: Reading) -> None:
    layout = _Layout(reading.split)
    ragged: list[tuple[int, str]] = []

    def skip(row: Any) -> str:
        ragged.append((row.number - 1, f"{row.actual_columns} columns, not {row.expected_columns} as before"))
        return "skip"

    done = told = 0
    with input_errors(reading.split.path):
        for batch in pcsv.open_csv(stream, *layout.options(skip)):
            columns = [text_ids(reading.terms, c, t) for c, t in _typed(batch, reading)]
            good, bad = _sorted_out(columns)
            records = _records(bad + done + layout.header, ragged).tolist()
            faults = [(r, _fault(batch, columns, row, reading)) for r, row in zip(records, bad, strict=True)]
            _refuse(sorted(faults + ragged[told:]), layout.line, reading)
            done += batch.num_rows
            told = len(ragged)
            predicate = Predicate(reading.split.table, len(columns))
            reading.add(predicate, [c[good] for c in columns], len(good))
        _refuse(ragged[told:], layout.line, reading)


class _Layout:
    """How a split has rows: delimiter, quotes, header."""

    def __init__(self, split: Split) -> None:
        self.split = split
        self.delimiter = split.delimiter or ("," if split.format == "csv" else "\t")
        if len(self.delimiter.encode()) != 1:
            raise InputError(f"{split.path}: a delimiter is one character of ASCII, not {self.delimiter!r}")
        self.quotes = self.delimiter == ","
        has_header = split.header if split.header is not None else split.format in ("csv", "tsv")
        self.header = int(has_header and split.start == 0)
        self._lines = cache(self._record_lines)

    def options(self, skip: Callable[[Any], str]) -> tuple[Any, Any, Any]:
        return (
            pcsv.ReadOptions(
                autogenerate_column_names=True,
                skip_rows_after_names=self.header,
                use_threads=False,
                block_size=_BLOCK,
            ),
            pcsv.ParseOptions(
                delimiter=self.delimiter,
                quote_char='"' if self.quotes else False,
                newlines_in_values=self.quotes,
                invalid_row_handler=skip,
            ),
            pcsv.ConvertOptions(column_types=_COLUMNS, strings_can_be_null=False),
        )

    def line(self, record: int) -> int:
        """The number in the whole file of the line a record begins in. Reads the split once more."""
        return self._lines()[record]

    def _record_lines(self) -> list[int]:
        start = next(place for place, _ in blocks(self.split))
        found, within = [], False
        for number, line in enumerate(content(self.split).splitlines(), LineNumbers(self.split).of(start)):
            if line and not within:
                found.append(number)
            within ^= self.quotes and line.count(b'"') % 2 == 1
        return found


def _records(rows: Places, ragged: Sequence[tuple[int, str]]) -> Places:
    """The numbers, among all records, of rows that are numbered without the ragged ones."""
    regular_before = np.array([record for record, _ in ragged], np.int64) - np.arange(len(ragged))
    return rows + np.searchsorted(regular_before, rows, "right")


def _refuse(faults: Iterable[tuple[int, str]], line: Callable[[int], int], reading: Reading) -> None:
    for record, why in faults:
        reading.refuse(partial(line, record), why)


def _typed(batch: pa.RecordBatch, reading: Reading) -> Iterator[tuple[pa.Array, str]]:
    """Each column with the type that is declared for it; any if none is."""
    name = reading.split.table
    types = reading.types.get(name)
    if types is not None and len(types) != batch.num_columns:
        columns = f"{batch.num_columns} columns, but {name} has {len(types)} attributes"
        raise InputError(f"{reading.split.path}:1: {columns}")
    return zip(batch.columns, types or ["any"] * batch.num_columns, strict=True)


def _sorted_out(columns: Sequence[Places]) -> tuple[Places, Places]:
    """The rows all of whose values have an id, and the others."""
    bad = np.logical_or.reduce([column == BAD for column in columns])
    return np.flatnonzero(~bad), np.flatnonzero(bad)


def _fault(batch: pa.RecordBatch, columns: Sequence[Places], row: int, reading: Reading) -> str:
    """What is wrong with the first bad value of a row."""
    number = next(n for n, column in enumerate(columns) if column[row] == BAD)
    value = batch.columns[number][int(row)].as_py()
    if value is None:
        return f"no value in column {number + 1}"
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return f"column {number + 1} is not UTF-8"
    types = reading.types.get(reading.split.table)
    return f"{value!r} is not a {types[number] if types and types[number] else 'value a fact can have'}"


def read_parquet(reading: Reading) -> None:
    """Read row groups of a Parquet file; the number of a line is that of a row, from 1."""
    split = reading.split
    with input_errors(split.path):
        source = pa.BufferReader(content(split)) if split.compression else split.path
        with pq.ParquetFile(source) as file:
            end = file.num_row_groups if split.end < 0 else split.end
            done = sum(file.metadata.row_group(i).num_rows for i in range(split.start))
            chosen = range(split.start, end)
            for batch in file.iter_batches(row_groups=chosen, use_threads=False) if chosen else ():
                _add_batch(batch, done, reading)
                done += batch.num_rows


def _add_batch(batch: pa.RecordBatch, done: int, reading: Reading) -> None:
    columns = [column_ids(reading.terms, c, t) for c, t in _typed(batch, reading)]
    good, bad = _sorted_out(columns)
    _refuse(
        ((row, _fault(batch, columns, row, reading)) for row in bad.tolist()), (done + 1).__add__, reading
    )
    reading.add(Predicate(reading.split.table, len(columns)), [c[good] for c in columns], len(good))
