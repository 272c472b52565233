"""A store's facts as files: decoded, in formats that other tools read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from hdlog.engines.decode import plain_text, plain_value
from hdlog.engines.identifiers import SKOLEMS, StoreIds, integer_text
from hdlog.errors import UsageError
from hdlog.pipeline.store import Facts, Store
from hdlog.pipeline.terms import StoredTerms
from hdlog.program.model import TRIPLE
from hdlog.program.normalise import is_auxiliary
from hdlog.program.ntriples import parse_term, term_text
from hdlog.program.terms import RDF_TYPE, Skolem

FORMATS = ("nt", "csv", "facts", "parquet")
_BATCH = 1 << 20


class Terms:
    """All terms of a store by id."""

    def __init__(self, store: Store) -> None:
        self._texts = StoredTerms(store, store.manifest.term_files).array()
        self._skolems: dict[int, tuple[str, list[int]]] = {}
        for file in store.manifest.skolem_files:
            rows = pq.read_table(store.path(file)).to_pydict()
            self._skolems |= dict(zip(rows["id"], zip(rows["name"], rows["args"], strict=True), strict=True))

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
        name, arguments = self._skolems[identifier]
        return term_text(Skolem(name, tuple(parse_term(self.text(a)) for a in arguments)))


def shown_facts(store: Store) -> list[Facts]:
    """The facts of predicates that a user knows."""
    return [f for f in store.manifest.facts if not is_auxiliary(f.name)]


def export(store: Store, format_: str, out: Path, say: Callable[[str], None]) -> tuple[int, list[str]]:
    """Write all facts; how many were written, and what was left out and why.

    N-Triples go to one file, the other formats to a folder with a file for each predicate.
    """
    if format_ not in FORMATS:
        raise UsageError(f"unknown format {format_}; there are {', '.join(FORMATS)}")
    terms = Terms(store)
    if format_ == "nt":
        return _export_triples(store, terms, out, say)
    out.mkdir(parents=True, exist_ok=True)
    names = _file_names(shown_facts(store))
    written = 0
    for stored in shown_facts(store):
        say(f"writing {stored.name}")
        _export_table(store, terms, stored, out / f"{names[stored.number]}.{format_}", format_)
        written += stored.rows
    return written, []


def _export_triples(
    store: Store, terms: Terms, out: Path, say: Callable[[str], None]
) -> tuple[int, list[str]]:
    written, left = 0, []
    out.parent.mkdir(parents=True, exist_ok=True)
    with pa.output_stream(out, compression="detect") as file:
        for stored in shown_facts(store):
            say(f"writing {stored.name}")
            if stored.arity == 3 and stored.name == TRIPLE:
                middle = None
            elif stored.arity == 1:
                middle = f" <{RDF_TYPE}> <{stored.name}> .\n"
            elif stored.arity == 2:
                middle = f" <{stored.name}> "
            else:
                left.append(
                    f"{stored.name} with {stored.arity} arguments is no triple; --format parquet has it"
                )
                continue
            for columns in _decoded(store, terms, stored):
                _write_lines(file, columns, middle)
            written += stored.rows
    return written, left


def _write_lines(out: IO[bytes], columns: list[pa.Array], middle: str | None) -> None:
    end = pa.scalar(" .\n", pa.large_string())
    nothing = pa.scalar("", pa.large_string())
    if middle is None:
        space = pa.scalar(" ", pa.large_string())
        parts = [columns[0], space, columns[1], space, columns[2], end]
    elif len(columns) == 1:
        parts = [columns[0], pa.scalar(middle, pa.large_string())]
    else:
        parts = [columns[0], pa.scalar(middle, pa.large_string()), columns[1], end]
    lines = pc.binary_join_element_wise(*parts, nothing)
    _, offsets, data = lines.buffers()
    if data is not None:
        bounds = np.frombuffer(offsets, np.int64)[lines.offset : lines.offset + len(lines) + 1]
        out.write(memoryview(data)[bounds[0] : bounds[-1]])


def _decoded(store: Store, terms: Terms, stored: Facts) -> Iterator[list[pa.Array]]:
    names = [f"c{i}" for i in range(stored.arity)]
    for file in stored.files:
        for batch in pq.ParquetFile(store.path(file)).iter_batches(_BATCH, columns=names):
            yield [terms.texts(column.to_numpy()) for column in batch.columns]


def _export_table(store: Store, terms: Terms, stored: Facts, path: Path, format_: str) -> None:
    names = [f"c{i}" for i in range(stored.arity)]
    if not names:
        path.write_text("()\n" if format_ == "facts" else "\n")
        return
    schema = pa.schema([(n, _kind(store, stored, i, format_)) for i, n in enumerate(names)])
    options = pcsv.WriteOptions(
        include_header=format_ == "csv",
        delimiter="," if format_ == "csv" else "\t",
        quoting_style="needed" if format_ == "csv" else "none",
    )
    writer = (
        pq.ParquetWriter(path, schema)
        if format_ == "parquet"
        else pcsv.CSVWriter(path, schema, write_options=options)
    )
    with writer as out:
        for columns in _decoded(store, terms, stored):
            values = [_plain(c, f.type) for c, f in zip(columns, schema, strict=True)]
            out.write_table(pa.table(values, schema=schema))


def _kind(store: Store, stored: Facts, column: int, format_: str) -> pa.DataType:
    """Integers where a column has nothing else, strings otherwise."""
    for file in stored.files:
        ids = pq.read_table(store.path(file), columns=[f"c{column}"]).column(0).to_numpy()
        if (ids >= 0).any():
            return pa.string()
    return pa.int64()


def _plain(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    encoded = texts.dictionary_encode()
    terms = [parse_term(t) for t in encoded.dictionary.to_pylist()]
    values = (
        [plain_value(t) for t in terms] if kind == pa.int64() else [_tabless(plain_text(t)) for t in terms]
    )
    return pa.array(values, kind).take(encoded.indices)


def _tabless(text: str) -> str:
    """Tables have a row on a line, and a tab between columns."""
    return re.sub(r"[\t\n\r]", " ", text)


def _file_names(facts: list[Facts]) -> dict[int, str]:
    """A readable file name for each predicate, each once."""
    names: dict[int, str] = {}
    for stored in facts:
        short = re.sub(r"[^\w.-]+", "_", re.split(r"[/#]", stored.name)[-1]) or "facts"
        taken = {n.lower() for n in names.values()}
        names[stored.number] = short if short.lower() not in taken else f"{short}-{stored.number}"
    return names
