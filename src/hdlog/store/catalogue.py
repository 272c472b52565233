"""The predicates of a store: numbers, names, and how many facts each has. What a user has 100,000 of is not looked at one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from hdlog.plan.nodes import is_view
from hdlog.program.model import Predicate
from hdlog.store.disk import File
from hdlog.store.store import Store, report_damage

SCHEMA = pa.schema(
    [
        ("number", pa.int32()),
        ("name", pa.string()),
        ("arity", pa.int32()),
        ("rows", pa.int64()),
        ("asserted", pa.int64()),
        ("distinct", pa.list_(pa.float64())),
    ]
)
_OFTEN = 20
"""Questions that are answered by looking through all names; after them they get an index."""
_MOST_FILES = 16
_GONE = -1
"""The number of a predicate that was dropped."""


@dataclass(frozen=True)
class Line:
    """What a store knows of one predicate."""

    number: int
    name: str
    arity: int
    rows: int = 0
    asserted: int = 0
    distinct: tuple[float, ...] = ()
    """different values by column, about"""

    @property
    def predicate(self) -> Predicate:
        return Predicate(self.name, self.arity)


@dataclass
class Catalogue:
    store: Store
    _asked: int = 0
    _index: dict[Predicate, int] | None = None
    _new: dict[Predicate, Line] = field(default_factory=dict)
    """that have come, or changed, since the store was read"""
    _given: int = 0

    def __post_init__(self) -> None:
        self._first = self.store.manifest.catalogue[:1]

    @cached_property
    def _tables(self) -> tuple[pa.Table, dict[Predicate, Line]]:
        """The first file, and the lines of those after it."""
        files = self.store.manifest.catalogue
        tables = [self._read(file) for file in files]
        later = {line.predicate: line for table in tables[1:] for line in _lines(table)}
        return (tables[0] if tables else SCHEMA.empty_table()), later

    def _read(self, file: File) -> pa.Table:
        with report_damage(self.store.folder / file.path):
            return pa.ipc.open_file(self.store.read(file)).read_all()

    def find(self, predicate: Predicate) -> Line | None:
        base, later = self._tables
        known = self._new.get(predicate) or later.get(predicate)
        if known is not None:
            return None if known.number == _GONE else known
        row = self._find_row(base, predicate)
        return None if row < 0 else _line(base, row)

    def holds(self, predicate: Predicate) -> bool:
        """Whether a predicate has facts."""
        line = self.find(predicate)
        return line is not None and line.rows > 0

    def _find_row(self, base: pa.Table, predicate: Predicate) -> int:
        self._asked += 1
        if self._index is None and self._asked <= _OFTEN:
            same = pc.and_(pc.equal(base["name"], predicate.name), pc.equal(base["arity"], predicate.arity))
            return int(pc.index(same, True).as_py())
        if self._index is None:
            keys = zip(base["name"].to_pylist(), base["arity"].to_pylist(), strict=True)
            self._index = {Predicate(*key): row for row, key in enumerate(keys)}
        return self._index.get(predicate, -1)

    def lines(self) -> Iterator[Line]:
        """All predicates."""
        base, later = self._tables
        changed = {**later, **self._new}
        seen = set()
        for line in _lines(base):
            seen.add(line.predicate)
            now = changed.get(line.predicate, line)
            if now.number != _GONE:
                yield now
        others = (line for predicate, line in changed.items() if predicate not in seen)
        yield from (line for line in others if line.number != _GONE)

    def sizes(self) -> dict[Predicate, int]:
        """How many facts each predicate has; views are none."""
        return {line.predicate: line.rows for line in self.lines() if line.rows and not is_view(line.name)}

    def __len__(self) -> int:
        """How many numbers have been given."""
        return max(self._given, self.store.manifest.counts.get("predicates", 0))

    def number(self, predicate: Predicate) -> Line:
        """The line of a predicate; a new one has the next number."""
        line = self.find(predicate)
        if line is None:
            line = self._new[predicate] = Line(len(self), predicate.name, predicate.arity)
            self._given = line.number + 1
        return line

    def set(self, line: Line) -> None:
        self._new[line.predicate] = line

    def drop(self, predicate: Predicate) -> None:
        """Forget a predicate with all its rows, wherever they are: should it come again, it has another number."""
        if self.find(predicate) is not None:
            self._new[predicate] = Line(_GONE, *predicate)

    def forget_new(self) -> None:
        self._new, self._given = {}, 0

    def renew(self) -> None:
        """The store has the next version, with all that was new."""
        base, later = self._tables
        first = self.store.manifest.catalogue[:1]
        if first == self._first:
            self.__dict__["_tables"] = (base, {**later, **self._new})
        else:
            del self.__dict__["_tables"]
            self._index = None
        self._first = first
        self._new = {}

    def write(self) -> tuple[File, ...]:
        """The files of the next version: one more with what has changed, or one with everything where they have become many."""
        files = self.store.manifest.catalogue
        if not self._new:
            return files
        written = self._new
        base, later = self._tables
        if len(files) >= _MOST_FILES or 2 * (len(later) + len(written)) > base.num_rows:
            return self.write_all()
        return (*files, self._write(list(written.values())))

    def write_all(self) -> tuple[File, ...]:
        """One file with everything."""
        return (self._write(list(self.lines())),)

    def _write(self, lines: Iterable[Line]) -> File:
        ordered = sorted(lines, key=lambda line: line.number)
        table = pa.table(
            {
                "number": [line.number for line in ordered],
                "name": [line.name for line in ordered],
                "arity": [line.arity for line in ordered],
                "rows": [line.rows for line in ordered],
                "asserted": [line.asserted for line in ordered],
                "distinct": [list(line.distinct) for line in ordered],
            },
            schema=SCHEMA,
        )
        with self.store.create("catalogue", "arrow") as (path, sink), pa.ipc.new_file(sink, SCHEMA) as out:
            out.write_table(table)
        return File(path, sink.bytes, sink.checksum, table.num_rows)


def _lines(table: pa.Table) -> Iterator[Line]:
    for row in zip(*(table[name].to_pylist() for name in SCHEMA.names), strict=True):
        number, name, arity, rows, asserted, distinct = row
        yield Line(number, name, arity, rows, asserted, tuple(distinct))


def _line(table: pa.Table, row: int) -> Line:
    return next(_lines(table.slice(row, 1)))
