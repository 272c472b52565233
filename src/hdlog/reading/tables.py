"""Tables into facts: CSV, TSV, .facts and Parquet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from hdlog.errors import InputError
from hdlog.program.model import Predicate
from hdlog.reading import kernels
from hdlog.reading.arrays import Fields, string_bytes
from hdlog.reading.chunks import Reading
from hdlog.reading.kernels import Places
from hdlog.reading.splits import MARK, Split, blocks, content, open_split, report_input_errors, source_of
from hdlog.reading.values import BAD, column_ids, iri_ids, text_ids

_BLOCK = 16 << 20
PREDICATE, KIND, HOLDS = "hdlog.predicate", "hdlog.kind", "hdlog.holds"
"""What Parquet files of ours say of the predicate they have the facts of, of the terms that the texts of a column stand for, and of a fact
without arguments."""
IRIS, STRINGS = "iri", "string"
_FEW_RAGGED = 100
_FIRST_BYTES = 100
_LONGEST_RECORD = 64 << 20
"""Bytes after which a quote is taken for one that nobody closes."""
_RETURN = "a carriage return within a line; lines end with a line feed, or with both"
_QUOTED = re.compile(rb'"(?:[^"]|"")*"')
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?")


def read_separated(reading: Reading) -> None:
    """Read a split of a table with a row a line and a delimiter."""
    split = reading.split
    declared = reading.layout.get(split.table)
    if declared is not None and not len(declared):
        _read_truth(reading)
        return
    layout = _Layout(split)
    single = split.columns is None and layout.is_single(None if declared is None else len(declared))
    for place, block in layout.blocks(reading):
        columns, ragged = _single_column(block) if single else _parse_block(block, layout)
        if columns:
            _add(reading, layout, columns, place, block, ragged)


def _read_truth(reading: Reading) -> None:
    """A relation without columns has one fact or none, and Soufflé writes that one as ()."""
    lines = content(reading.split).split(b"\n")
    given = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    for number, line in given:
        if line != b"()":
            message = f"{reading.split.table} has no columns, so a line of it is (), not {line.decode(errors='replace')!r}"
            reading.refuse(partial(int, number), message)
    reading.add(Predicate(reading.split.table, 0), [], int(any(line == b"()" for _, line in given)))


def _single_column(block: bytes) -> tuple[list[Fields], dict[int, str]]:
    """A table of one column: every line is a value, an empty one too."""
    return _find_fields(_with_end(block), ord("\n"), 1, _is_text(block), empty=True)


def _with_end(block: bytes) -> bytes:
    return block if block.endswith(b"\n") else block + b"\n"


def _parse_block(block: bytes, layout: _Layout) -> tuple[list[Fields], dict[int, str]]:
    """The columns of a block, and the rows of another width: what is wrong with each."""
    if not block[:_FIRST_BYTES].strip(b"\r\n") and not block.strip(b"\r\n"):
        return [], {}
    whole = _with_end(block)
    # Arrow ends a row at a carriage return, and cannot tell Python of a row of another width that is not UTF-8.
    is_text = _is_text(block)
    if (b"\r" not in block or block.count(b"\r") == block.count(b"\r\n")) and is_text:
        return _parse_rows(whole, layout, is_text)
    records = list(layout.records(whole))
    faults = {i: fault for i, record in enumerate(records) if (fault := layout.find_fault(record))}
    kept = [i for i in range(len(records)) if i not in faults]
    if not kept:
        return [_of_arrow(pa.array([], pa.binary()), True)] * layout.width, faults
    columns, ragged = _parse_rows(b"".join(records[i] for i in kept), layout, is_text)
    return columns, faults | {kept[i]: fault for i, fault in ragged.items()}


def _is_text(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _parse_rows(block: bytes, layout: _Layout, is_text: bool) -> tuple[list[Fields], dict[int, str]]:
    """The columns of rows; those of another width are left out, and noted."""
    if not layout.quotes:
        return _find_fields(block, ord(layout.delimiter), layout.width, is_text)
    ragged: dict[int, str] = {}

    def skip(row: Any) -> str:
        ragged[row.number - 1] = _tell_width(row.actual_columns, row.expected_columns)
        return "skip"

    table = pcsv.read_csv(pa.BufferReader(block), *layout.options(skip))
    return [_of_arrow(c.combine_chunks(), is_text) for c in table.columns], ragged


def _tell_width(actual: int, expected: int) -> str:
    return f"{actual} columns, not {expected} as before"


def _of_arrow(column: pa.Array, is_text: bool) -> Fields:
    data, offsets = string_bytes(column)
    return Fields(data, offsets[:-1], offsets[1:], is_text)


def _find_fields(
    block: bytes, delimiter: int, width: int, is_text: bool, empty: bool = False
) -> tuple[list[Fields], dict[int, str]]:
    """The columns of lines without quotes, where they stand."""
    data, lines = np.frombuffer(block, np.uint8), block.count(b"\n")
    begins, ends = np.empty((width, lines), np.int64), np.empty((width, lines), np.int64)
    room = _FEW_RAGGED
    while True:
        ragged = np.empty((2, room), np.int64)
        good, bad = kernels.find_fields(data, delimiter, empty, begins, ends, ragged)
        if bad <= room:
            break
        room = bad
    columns = [Fields(data, begins[i, :good], ends[i, :good], is_text) for i in range(width)]
    numbers, widths = ragged[:, :bad].tolist()
    return columns, {n: _tell_width(w, width) for n, w in zip(numbers, widths, strict=True)}


def _add(
    reading: Reading,
    layout: _Layout,
    arrays: Sequence[Fields],
    place: int,
    block: bytes,
    ragged: Mapping[int, str],
) -> None:
    where = f"{reading.split.path}:1: "
    if reading.split.columns is not None:
        if max(reading.split.columns) >= len(arrays):
            raise InputError(
                f"{where}{len(arrays)} columns, and column {max(reading.split.columns)} is asked for"
            )
        arrays = [arrays[i] for i in reading.split.columns]
    ordered = [arrays[i] for i in layout.order(reading, len(arrays), where)]
    predicate = Predicate(reading.split.table, len(ordered))
    types = reading.types(predicate, where)
    columns = [text_ids(reading.terms, c, t) for c, t in zip(ordered, types, strict=True)]
    good, bad = _sort_out(columns)
    faults = dict(ragged)
    for record, row in zip(_records(bad, sorted(ragged)).tolist(), bad.tolist(), strict=True):
        faults[record] = _fault(ordered, columns, row, types)
    if faults:
        lines = layout.lines(reading, place, block, everything=len(arrays) == 1 and not layout.quotes)
        for record in sorted(faults):
            reading.refuse(partial(lines.__getitem__, record), faults[record])
    reading.add(predicate, [c[good] for c in columns] if len(bad) else columns, len(good))


class _Layout:
    """How a split has rows: delimiter, quotes, header."""

    def __init__(self, split: Split) -> None:
        self.split = split
        self.delimiter = split.delimiter or ("," if split.format == "csv" else "\t")
        if len(self.delimiter.encode()) != 1:
            raise InputError(f"{split.path}: a delimiter is one character of ASCII, not {self.delimiter!r}")
        self.quotes = split.rfc4180 or (self.delimiter == "," and not split.souffle)
        self.has_header = split.header if split.header is not None else split.format in ("csv", "tsv")
        with open_split(split) as stream:
            self._first = self._record(stream)
            whole = self._first
            while self._has_return(whole) and not self.has_header and whole:
                whole = self._record(stream)
        if self._has_return(whole):
            raise InputError(f"{split.path}:1: {_RETURN}")
        self.names = self._fields(self._first) if self.has_header else []
        if self.has_header:
            self._check_header()
        self.width = len(self._fields(whole))

    def _record(self, stream: IO[bytes]) -> bytes:
        """The first record of the file."""
        line = b"\n"
        while line and not line.strip(b"\r\n"):
            line = stream.readline()
        while self.quotes and self._is_open(line) and (more := stream.readline()):
            line += more
        return line

    def _find_records(self, block: bytes) -> Places:
        """Where the records of a block begin, and where the last ends: -1 if its quote is not closed."""
        data = np.frombuffer(block, np.uint8)
        starts = np.empty(block.count(b"\n") + 2, np.int64)
        return starts[: kernels.find_records(data, ord(self.delimiter), starts) + 1]

    def _is_open(self, block: bytes) -> bool:
        """Whether a block ends within quotes."""
        return b'"' in block and self._find_records(block)[-1] < 0

    def _fields(self, record: bytes) -> list[str]:
        text = record.decode("utf-8-sig", errors="replace").rstrip("\r\n")
        if self.quotes:
            return next(csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter), [])
        return text.split(self.delimiter)

    def _check_header(self) -> None:
        path = self.split.path
        if self.delimiter == "," and b"\t" in self._first and b"," not in self._first:
            raise InputError(
                f"{path}:1: there are tabs between the values, not commas; name the file .tsv, or .facts if its first "
                "line has no names"
            )
        values = [name for name in self.names if _NUMBER.fullmatch(name.strip())]
        if values and self.split.header:
            raise InputError(
                f"{path}:1: with headers=true the first line has the names of the columns, and {values[0]!r} is a number"
            )
        if values:
            raise InputError(
                f"{path}:1: the first line of a .{self.split.format} file has the names of the columns, and "
                f"{values[0]!r} is a number; a .facts file has no such line"
            )

    def blocks(self, reading: Reading) -> Iterator[tuple[int, bytes]]:
        """Whole records, without the header, each block with its place in the file."""
        for start, block in self._whole_records(reading):
            if start == self._begin and self.has_header and self.split.start == 0:
                length = block.index(self._first.removeprefix(MARK)) + len(self._first.removeprefix(MARK))
                yield start + length, block[length:]
            else:
                yield start, block

    def _whole_records(self, reading: Reading) -> Iterator[tuple[int, bytes]]:
        """Blocks that end with a record; a record whose quote is never closed is refused, and its first line left out."""
        waiting, start = b"", 0
        self._begin = -1
        for place, block in blocks(self.split, _BLOCK):
            self._begin = place if self._begin < 0 else self._begin
            start = start if waiting else place
            waiting += block
            if not self.quotes or not self._is_open(waiting):
                yield start, waiting
                waiting = b""
            while len(waiting) > _LONGEST_RECORD and self._is_open(waiting):
                closed, start, waiting = self._leave_out_open(reading, start, waiting)
                yield closed
        while waiting:
            closed, start, waiting = self._leave_out_open(reading, start, waiting)
            yield closed

    def _leave_out_open(
        self, reading: Reading, start: int, block: bytes
    ) -> tuple[tuple[int, bytes], int, bytes]:
        """The whole records of a block, and what comes after the first line of one that is open, with its place."""
        records = self._find_records(block)
        if records[-1] >= 0:
            return (start, block), start + len(block), b""
        end = int(records[-2])
        line = block.find(b"\n", end) + 1 or len(block)
        reading.refuse(partial(reading.lines.of, start + end), "a quote that is not closed")
        return (start, block[:end]), start + line, block[line:]

    def is_single(self, declared: int | None) -> bool:
        """Whether every line is one value, an empty line too."""
        if declared is None:
            has_one = self.split.format == "facts" and self.width == 1 and bool(self._first.strip())
        else:
            has_one = declared == 1
        return has_one and not self.quotes

    def order(self, reading: Reading, width: int, place: str) -> list[int]:
        if len(self.names) != width:
            return list(range(width))
        return reading.order(self.split.table, self.names, place)

    def options(self, skip: Callable[[Any], str]) -> tuple[Any, Any, Any]:
        names = [f"f{i}" for i in range(self.width)]
        return (
            pcsv.ReadOptions(column_names=names, use_threads=False, block_size=1 << 30),
            pcsv.ParseOptions(
                delimiter=self.delimiter,
                quote_char='"' if self.quotes else False,
                newlines_in_values=self.quotes,
                invalid_row_handler=skip,
            ),
            pcsv.ConvertOptions(column_types=dict.fromkeys(names, pa.binary()), strings_can_be_null=False),
        )

    def records(self, block: bytes) -> Iterator[bytes]:
        """The records of a block, but for empty ones."""
        if not self.quotes:
            lines = block.removesuffix(b"\n").split(b"\n")
            yield from (line + b"\n" for line in lines if line.strip(b"\r"))
            return
        for start, end in pairwise(self._find_records(block).tolist()):
            if block[start:end].strip(b"\r\n"):
                yield block[start:end]

    def _has_return(self, record: bytes) -> bool:
        """Whether there is a carriage return that is neither part of a value in quotes nor of the end of the line."""
        outside = _QUOTED.sub(b"", record) if self.quotes else record
        return b"\r" in outside.removesuffix(b"\n").removesuffix(b"\r")

    def find_fault(self, record: bytes) -> str:
        """What keeps a record from being read, whatever its values are."""
        if self._has_return(record):
            return _RETURN
        if _is_text(record):
            return ""
        # Its values are told apart later, as far as it has the right number of them.
        width = len(self._fields(record))
        return "" if width == self.width else f"{width} columns, not {self.width} as before"

    def lines(self, reading: Reading, place: int, block: bytes, everything: bool) -> list[int]:
        """The number in the whole file of the line in which each record of a block begins."""
        first = reading.lines.of(place)
        if not self.quotes:
            lines = enumerate(block.split(b"\n"), first)
            return [number for number, line in lines if line.strip(b"\r") or everything]
        numbers, line, at = [], first, 0
        for start, end in pairwise(self._find_records(block).tolist()):
            line, at = line + block.count(b"\n", at, start), start
            if block[start:end].strip(b"\r\n"):
                numbers.append(line)
        return numbers


def _records(rows: Places, ragged: Sequence[int]) -> Places:
    """The numbers, among all records, of rows that are numbered without the ragged ones."""
    regular_before = np.array(ragged, np.int64) - np.arange(len(ragged))
    return rows + np.searchsorted(regular_before, rows, "right")


def _sort_out(columns: Sequence[Places]) -> tuple[Places, Places]:
    """The rows all of whose values have an id, and the others."""
    bad = np.logical_or.reduce([column == BAD for column in columns])
    return np.flatnonzero(~bad), np.flatnonzero(bad)


def _fault(
    arrays: Sequence[Fields | pa.Array], columns: Sequence[Places], row: int, types: Sequence[str]
) -> str:
    """What is wrong with the first bad value of a row."""
    number = next(n for n, column in enumerate(columns) if column[row] == BAD)
    found = arrays[number][row]
    value = found if isinstance(found, bytes) else found.as_py()
    if value is None:
        return f"no value in column {number + 1}"
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return f"column {number + 1} is not UTF-8"
    return f"{value!r} is not a {types[number] or 'value a fact can have'}"


def read_parquet(reading: Reading) -> None:
    """Read row groups of a Parquet file; the number of a line is that of a row, from 1."""
    import pyarrow.parquet as pq

    split = reading.split
    with report_input_errors(split.path):
        whole = split.compression or split.data is not None
        source = pa.BufferReader(content(split)) if whole else source_of(split.path)
        with pq.ParquetFile(source) as file:
            metadata = file.schema_arrow.metadata or {}
            if not len(file.schema_arrow) and metadata.get(HOLDS.encode()) == b"true":
                name = reading.split.name or metadata[PREDICATE.encode()].decode()
                reading.add(Predicate(name, 0), [], 1)
            end = file.num_row_groups if split.end < 0 else split.end
            done = sum(file.metadata.row_group(i).num_rows for i in range(split.start))
            chosen = range(split.start, end)
            for batch in file.iter_batches(row_groups=chosen, use_threads=False) if chosen else ():
                _add_batch(batch, done, reading)
                done += batch.num_rows


def _add_batch(batch: pa.RecordBatch, done: int, reading: Reading) -> None:
    for name, value in reading.split.partition:
        batch = batch.append_column(name, pa.array([value] * batch.num_rows))
    own_name = (batch.schema.metadata or {}).get(PREDICATE.encode(), b"").decode()
    name = reading.split.name or own_name or reading.split.table
    place = f"{reading.split.path}: "
    order = reading.order(name, batch.schema.names, place)
    predicate = Predicate(name, len(order))
    types = reading.types(predicate, place)
    number: Callable[[int], int] = (done + 1).__add__
    if reading.split.fields:
        batch, whole = _drop_nulls(batch, order, reading)
        number = (whole + done + 1).item
    ordered = [batch.columns[i] for i in order]
    columns = [
        iri_ids(reading.terms, c) if _has_iris(batch.schema.field(i)) else column_ids(reading.terms, c, t)
        for i, c, t in zip(order, ordered, types, strict=True)
    ]
    good, bad = _sort_out(columns)
    for row in bad.tolist():
        reading.refuse(partial(number, row), _fault(ordered, columns, row, types))
    reading.add(predicate, [c[good] for c in columns] if len(bad) else columns, len(good))


def _drop_nulls(
    batch: pa.RecordBatch, order: Sequence[int], reading: Reading
) -> tuple[pa.RecordBatch, Places]:
    """Without rows that lack a value in one of some columns; and which the others are."""
    lacking = np.zeros(batch.num_rows, np.bool_)
    for i in order:
        lacking |= batch.columns[i].is_null().to_numpy(zero_copy_only=False)
    whole = np.flatnonzero(~lacking)
    if len(whole) == batch.num_rows:
        return batch, whole
    reading.dropped += batch.num_rows - len(whole)
    return batch.filter(pa.array(~lacking)), whole


def _has_iris(field: pa.Field) -> bool:
    return bool((field.metadata or {}).get(KIND.encode()) == IRIS.encode() and pa.types.is_string(field.type))
