"""A store's facts as files: decoded, in formats that other tools read."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from hdlog.errors import UsageError
from hdlog.program.model import Program
from hdlog.program.normalise import is_auxiliary
from hdlog.program.ntriples import skolem_text
from hdlog.reading.identifiers import INTEGERS, SKOLEMS, StoreIds, integer_text
from hdlog.store.store import Facts, Store
from hdlog.store.terms import StoredTerms
from hdlog.writing.files import write_tables, write_triples, write_whole
from hdlog.writing.sheets import Columns, Sheet

FORMATS = ("nt", "csv", "tsv", "facts", "parquet")
_BATCH = 1 << 20
_MARK = ".hdlog-export"
"""A file in each folder of an export."""


class Terms:
    """All terms of a store by id."""

    def __init__(self, store: Store) -> None:
        self._texts = StoredTerms(store, store.manifest.term_files).array()
        self._skolems: dict[int, tuple[str, list[int]]] = {}
        for file in store.manifest.skolem_files:
            rows = store.read(file).to_pydict()
            self._skolems |= dict(zip(rows["id"], zip(rows["name"], rows["args"], strict=True), strict=True))

    def column(self, ids: StoreIds) -> pa.Array:
        """Integers, or N-Triples texts."""
        return pa.array(ids - np.int64(INTEGERS)) if (ids < 0).all() else self.texts(ids)

    def texts(self, ids: StoreIds) -> pa.Array:
        """N-Triples texts."""
        plain = (ids >= 0) & (ids < SKOLEMS)
        if plain.all():
            return self._texts.take(pa.array(ids))
        unique, inverse = np.unique(ids[~plain], return_inverse=True)
        made = pa.array([self.text(i) for i in unique.tolist()], pa.large_string())
        both = pa.concat_arrays([self._texts.take(pa.array(ids[plain])), made])
        place = np.empty(len(ids), np.int64)
        place[plain] = np.arange(int(plain.sum()))
        place[~plain] = int(plain.sum()) + inverse
        return both.take(pa.array(place))

    def text(self, identifier: int) -> str:
        if identifier < 0:
            return integer_text(identifier)
        if identifier < SKOLEMS:
            return str(self._texts[identifier].as_py())
        return skolem_text(identifier, self._take_apart)

    def _take_apart(self, identifier: int) -> str | tuple[str, list[int]]:
        return self.text(identifier) if identifier < SKOLEMS else self._skolems[identifier]


def list_visible_facts(store: Store) -> list[Facts]:
    """The facts of predicates that a user knows."""
    return [f for f in store.manifest.facts if not is_auxiliary(f.name)]


def make_sheets(store: Store, program: Program) -> list[Sheet]:
    """The facts of a store, a sheet for each predicate."""
    terms = Terms(store)
    sheets = []
    for stored in list_visible_facts(store):
        declared = program.declared.get(stored.name)
        names = tuple(a.name for a in declared.attributes) if declared is not None else ()
        batches = partial(_decode, store, terms, stored)
        sheets.append(Sheet(stored.predicate, stored.rows, batches, names))
    return sheets


def _decode(store: Store, terms: Terms, stored: Facts) -> Iterator[Columns]:
    names = [f"c{i}" for i in range(stored.arity)]
    for file in stored.files:
        for batch in store.read(file, names).to_batches(_BATCH):
            yield [terms.column(column.to_numpy()) for column in batch.columns]


def export(
    sheets: Sequence[Sheet],
    format_: str,
    out: Path | None,
    say: Callable[[str], None],
    overwrite: bool = False,
) -> tuple[int, list[str]]:
    """Write all facts; how many were written, and what was left out and why.

    N-Triples go to one file, or to standard output if none is named; the other formats to a folder with a file for each
    predicate.
    """
    if format_ not in FORMATS:
        raise UsageError(f"unknown format {format_}; there are {', '.join(FORMATS)}")
    if format_ == "nt":
        if out is None:
            return write_triples(_announce(sheets, say), sys.stdout.buffer)
        with write_whole(out) as file:
            return write_triples(_announce(sheets, say), file)
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
