"""Columns of a table as the arguments of a predicate: `worksFor(id, employer)=people.parquet`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from hdlog.errors import InputError, UsageError
from hdlog.reading.splits import Split, find_splits

_FORM = re.compile(r"(?P<name>[^()]+)\((?P<columns>[^()]+)\)=(?P<source>.+)", re.DOTALL)
_WITH_NAMES = ("parquet", "csv", "tsv")


@dataclass(frozen=True)
class Mapped:
    """Each row of a table, a fact; rows without a value in one of these columns are left out, and counted."""

    predicate: str
    columns: tuple[str, ...]
    source: str
    """files, or a table of Spark"""

    def __str__(self) -> str:
        return f"{self.predicate}({', '.join(self.columns)})"


def read_mapping(text: str) -> Mapped:
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no mapping; one is like 'worksFor(id, employer)=people.parquet'")
    columns = tuple(column.strip() for column in found["columns"].split(","))
    if not all(columns):
        raise UsageError(f"{text!r}: a column without a name")
    return Mapped(found["name"].strip(), columns, found["source"].strip())


def find_mapped_splits(mapped: Mapped, memory: int | None = None) -> list[Split]:
    splits = find_splits([mapped.source], name=mapped.predicate, memory=memory)
    for split in splits:
        if split.format not in _WITH_NAMES:
            raise InputError(
                f"{split.path}: only the columns of Parquet, CSV and TSV files, and of tables of Spark, have names to choose {mapped} by"
            )
    return [replace(split, fields=mapped.columns) for split in splits]
