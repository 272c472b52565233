"""A store's facts as files: decoded, in formats that other tools read."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

from hdlog.errors import UsageError
from hdlog.writing.files import RdfFormat, write_tables, write_triples, write_whole
from hdlog.writing.sheets import Sheet

RDF_FORMATS: tuple[RdfFormat, ...] = get_args(RdfFormat)
FORMATS = (*RDF_FORMATS, "csv", "tsv", "facts", "parquet")
_MARK = ".hdlog-export"
"""A file in each folder of an export."""


def export(
    sheets: Sequence[Sheet],
    format_: str,
    out: Path | None,
    say: Callable[[str], None],
    overwrite: bool = False,
) -> tuple[int, list[str]]:
    """Write all facts; how many were written, and what was left out and why.

    N-Triples, N-Quads and TriG go to one file, or to standard output if none is named; the other formats to a folder with a file for
    each predicate.
    """
    if format_ not in FORMATS:
        raise UsageError(f"unknown format {format_}; there are {', '.join(FORMATS)}")
    for rdf_format in RDF_FORMATS:
        if format_ == rdf_format:
            if out is None:
                return write_triples(_announce(sheets, say), sys.stdout.buffer, rdf_format)
            with write_whole(out) as file:
                return write_triples(_announce(sheets, say), file, rdf_format)
    if out is None:
        raise UsageError(f"{format_} needs a folder, with a file for each predicate; name it with --out")
    with _build_folder(out, overwrite) as folder:
        for sheet in write_tables(sheets, format_, folder):  # type: ignore[arg-type]
            say(f"writing {sheet.predicate.name}")
    return sum(sheet.rows for sheet in sheets), []


def _announce(sheets: Sequence[Sheet], say: Callable[[str], None]) -> Iterator[Sheet]:
    for sheet in sheets:
        say(f"writing {sheet.predicate.name}")
        yield sheet


@contextmanager
def _build_folder(out: Path, overwrite: bool) -> Iterator[Path]:
    """A folder to write an export to, which takes its name when it is whole.

    It has nothing else in it: files of an older one would be taken for facts.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; an export of tables is a folder")
    out = out.resolve()  # a name of its own, also where it is given as `.`
    if out.exists() and any(out.iterdir()):
        if not (out / _MARK).exists():
            raise UsageError(
                f"{out} has other files in it; name another folder: an export replaces only an export"
            )
        if not overwrite:
            raise UsageError(f"{out} has an export in it; name another folder, or say --overwrite")
    fresh, gone = (out.with_name(f".{out.name}.{os.getpid()}.{kind}") for kind in ("part", "old"))
    fresh.mkdir(parents=True)
    try:
        yield fresh
        (fresh / _MARK).write_text("This folder was written by hdlog export, which may replace it.\n")
        if out.exists():
            out.rename(gone)
        fresh.rename(out)
    finally:
        for folder in (fresh, gone):
            shutil.rmtree(folder, ignore_errors=True)
