"""Facts into files: N-Triples, N-Quads or TriG for what is a triple, tables for the rest; each file is whole, or not there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdlog.errors import WriteError
from hdlog.program.model import Predicate
from hdlog.program.ntriples import is_iri
from hdlog.program.terms import RDF_TYPE
from hdlog.reading.arrays import string_bytes
from hdlog.reading.identifiers import INTEGER_MARK
from hdlog.writing.kernels import count_bytes
from hdlog.writing.rows import write_rows
from hdlog.writing.sheets import Columns, Sheet
from hdlog.writing.values import INTEGERS

_NAMES_SHOWN = 40
TableFormat = Literal["csv", "tsv", "facts", "parquet"]


@contextmanager
def write_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its name when it is whole; compressed if that ends so. Pipes and devices are written to."""
    path = path.resolve()  # a link stays one
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file() and not path.is_dir():
        with pa.output_stream(path, compression=_compression(path)) as out:
            yield out
        return
    # Before, not after: a folder of that name would be found only in the end.
    if path.is_dir():
        raise WriteError(f"{path} is a folder; name a file")
    fresh = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with pa.output_stream(fresh, compression=_compression(path)) as out:
            yield out
        fresh.replace(path)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        if error.errno and not error.filename:
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from None
        raise
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise


def _compression(path: Path) -> str | None:
    return {".gz": "gzip", ".zst": "zstd"}.get(path.suffix.lower())


# Triples.


def is_triple(predicate: Predicate) -> bool:
    """Whether facts of a predicate are triples, or quads: a class or a property."""
    plain = predicate.without_graph()
    return plain.arity in (1, 2) and is_iri(plain.name)


RdfFormat = Literal["nt", "nq", "trig"]


def write_triples(
    sheets: Iterable[Sheet], out: IO[bytes], format_: RdfFormat = "nt"
) -> tuple[int, list[str]]:
    """N-Triples, N-Quads or TriG; how many facts were written, and what was left out because it is no triple."""
    count, left = 0, []
    for sheet in sheets:
        if not is_triple(sheet.predicate):
            left.append(f"{sheet.rows:,} facts of {sheet.predicate} are no triples")
            continue
        if format_ == "nt" and sheet.predicate.has_graph:
            name = sheet.predicate.without_graph().name
            left.append(f"{sheet.rows:,} facts of {name} are in named graphs; N-Quads and TriG have these")
            continue
        wrong = 0
        for columns in sheet.batches():
            good = _may_be_written(sheet.predicate, columns)
            if not good.all():
                wrong += len(good) - int(good.sum())
                columns = [column.filter(pa.array(good)) for column in columns]
            if format_ == "trig" and sheet.predicate.has_graph:
                _write_graphs(sheet.predicate, columns, out)
            else:
                _write_lines(sheet.predicate, columns, out)
            count += len(columns[0])
        if wrong:
            what = "subject or graph" if sheet.predicate.has_graph else "subject"
            left.append(f"{wrong:,} facts of {sheet.predicate} are no triples: their {what} is a literal")
    return count, left


def _may_be_written(predicate: Predicate, columns: Columns) -> NDArray[np.bool_]:
    """Which facts have a subject, and a graph, that is no literal."""
    nodes = [columns[0], *(columns[-1:] if predicate.has_graph else [])]
    return np.asarray(np.logical_and.reduce([_are_nodes(column) for column in nodes]))


def _are_nodes(column: pa.Array) -> NDArray[np.bool_]:
    if column.type == INTEGERS:
        return np.zeros(len(column), np.bool_)
    literals = pc.starts_with(column.dictionary, '"').to_numpy(zero_copy_only=False)
    return np.asarray(~literals[column.indices.to_numpy(zero_copy_only=False)])


def _write_lines(predicate: Predicate, columns: Columns, out: IO[bytes]) -> None:
    """The lines of facts that are triples, or quads."""
    plain = predicate.without_graph()
    if plain.arity == 1:
        between = [f" <{RDF_TYPE}> <{plain.name}>"]
    else:
        between = [f" <{plain.name}> ", ""]
    if predicate.has_graph:
        between = [*between[:-1], f"{between[-1]} ", ""]
    between[-1] += " .\n"
    # A number is written as the literal it stands for: what opens it comes behind what is before it.
    opening = ['"' if column.type == INTEGERS else "" for column in columns]
    closing = [INTEGER_MARK if column.type == INTEGERS else "" for column in columns]
    behind = [
        close + text + then for close, text, then in zip(closing, between, [*opening[1:], ""], strict=True)
    ]
    write_rows(out, columns, opening[0], behind)


def _write_graphs(predicate: Predicate, columns: Columns, out: IO[bytes]) -> None:
    """The triples of each graph between brackets; a graph may have several of them."""
    graphs = columns[-1]
    codes = graphs.indices.to_numpy(zero_copy_only=False)
    for number in np.unique(codes).tolist():
        own = pa.array(codes == number)
        out.write(f"{graphs.dictionary[number].as_py()} {{\n".encode())
        _write_lines(predicate.without_graph(), [c.filter(own) for c in columns[:-1]], out)
        out.write(b"}\n")


def fact_lines(sheet: Sheet) -> Iterator[str]:
    """N-Triples or N-Quads for facts that are such, an atom for others."""
    for columns in sheet.batches():
        texts = [_terms(column).to_pylist() for column in columns]
        rows: Iterable[Sequence[str]] = zip(*texts, strict=True) if texts else [()] * sheet.rows
        for row in rows:
            yield _fact_line(sheet.predicate, row)


def _fact_line(predicate: Predicate, row: Sequence[str]) -> str:
    plain = predicate.without_graph()
    graph = row[plain.arity :]
    if is_triple(predicate) and not any(text[0] == '"' for text in (row[0], *graph)):
        parts = (f"<{RDF_TYPE}>", f"<{plain.name}>") if plain.arity == 1 else (f"<{plain.name}>", row[1])
        return " ".join((row[0], *parts, *graph, "."))
    shown = (text[1 : -len(INTEGER_MARK)] if text.endswith(INTEGER_MARK) else text for text in row)
    return f"{predicate.name}({', '.join(shown)})"


def _terms(column: pa.Array) -> pa.Array:
    if column.type != INTEGERS:
        return column.dictionary.take(column.indices)
    return _join('"', column.cast(pa.string()).cast(pa.large_string()), INTEGER_MARK)


def _join(*parts: pa.Array | str) -> pa.Array:
    scalars = [pa.scalar(p, pa.large_string()) if isinstance(p, str) else p for p in (*parts, "")]
    return pc.binary_join_element_wise(*scalars)


def write_texts(out: IO[bytes], texts: pa.Array) -> None:
    """All texts, one behind the other."""
    if isinstance(texts, pa.Scalar) or not len(texts):
        return
    data, starts = string_bytes(texts)
    out.write(data[starts[0] : starts[-1]].data)


# Tables.


def write_table(
    sheet: Sheet,
    out: IO[bytes],
    delimiter: str = "\t",
    header: Sequence[str] = (),
    quotes: bool = False,
    ordered: bool = False,
) -> None:
    """Text with a row a line. Without quotes a value that has a delimiter or a line end in it is an error."""
    if not sheet.predicate.arity:
        out.write(b"()\n" * min(1, sheet.rows))
        return
    if header:
        out.write((delimiter.join(_quote_name(n, delimiter, quotes) for n in header) + "\n").encode())
    behind = [delimiter] * (sheet.predicate.arity - 1) + ["\n"]
    convert = _quote_texts if quotes else partial(_check_unquoted, sheet)
    known: list[pa.Array | None] = [None] * sheet.predicate.arity
    for columns in sheet.make_texts():
        for i, column in enumerate(columns):
            if column.type != INTEGERS and known[i] is None:
                known[i] = convert(column.dictionary, delimiter)
        if ordered:
            order = _order(columns)
            columns = [column.take(order) for column in columns]
        shown = [
            c if texts is None else pa.DictionaryArray.from_arrays(c.indices, texts)
            for c, texts in zip(columns, known, strict=True)
        ]
        write_rows(out, shown, "", behind)


def write_columns(table: pa.Table, out: IO[bytes], delimiter: str) -> None:
    """Any table, in quotes where they are needed; what has no value is nothing."""
    out.write((delimiter.join(_quote_name(n, delimiter, True) for n in table.column_names) + "\n").encode())
    for batch in table.to_batches():
        parts: list[pa.Array | str] = []
        for column in batch.columns:
            texts = pc.fill_null(_quote_texts(_as_texts(column), delimiter), "")
            parts += [texts, delimiter]
        write_texts(out, _join(*parts[:-1], "\n"))


def _as_texts(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.large_string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # lists and the like
        return pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.large_string())


def _order(columns: Columns) -> pa.Array:
    """Rows by value: numbers by their size, texts as they are sorted."""
    keys = [_rank(column) for column in columns]
    return pa.array(np.lexsort(keys[::-1]))


def _rank(column: pa.Array) -> NDArray[np.int64]:
    if column.type == INTEGERS:
        return np.asarray(column.to_numpy(zero_copy_only=False))
    order = pc.sort_indices(column.dictionary).to_numpy(zero_copy_only=False)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return np.asarray(ranks[column.indices.to_numpy(zero_copy_only=False)])


def _make_special_pattern(delimiter: str) -> str:
    return rf'["\n\r{re.escape(delimiter)}]'


def _have_any(texts: pa.Array, characters: str) -> bool:
    """Whether one of some ASCII characters is in any text; a fraction of what a regular expression takes."""
    data, starts = string_bytes(texts)
    wanted = np.resize(np.frombuffer(characters.encode(), np.uint8), 4)
    return count_bytes(data[starts[0] : starts[-1]], wanted) > 0


def _quote_texts(texts: pa.Array, delimiter: str) -> pa.Array:
    """As RFC 4180 has it: values in quotes where they need them; an empty one, too, to tell it from none."""
    needs = pc.equal(texts, "")
    if _have_any(texts, f'"\n\r{delimiter}'):
        needs = pc.or_(pc.match_substring_regex(texts, _make_special_pattern(delimiter)), needs)
    if not pc.any(needs).as_py():
        return texts
    some = pc.replace_substring(texts.filter(needs), '"', '""')
    return pc.replace_with_mask(texts, needs, _join('"', some, '"'))


def _quote_name(name: str, delimiter: str, quotes: bool) -> str:
    if quotes and re.search(_make_special_pattern(delimiter), name):
        return '"' + name.replace('"', '""') + '"'
    return name


def _check_unquoted(sheet: Sheet, texts: pa.Array, delimiter: str) -> pa.Array:
    if _have_any(texts, f"\n\r{delimiter}"):
        bad = pc.match_substring_regex(texts, rf"[\n\r{re.escape(delimiter)}]")
        value = texts.filter(bad)[0].as_py()
        raise WriteError(
            f"{sheet.predicate.name}: the value {value!r} has a line end or a delimiter in it, and a table without quotes "
            "cannot hold it; in a program say .output with rfc4180=true, and export CSV or Parquet"
        )
    return texts


def write_parquet(sheet: Sheet, out: IO[bytes]) -> None:
    """One row group or more; a fact without arguments is in the file's metadata, as a table without columns has no rows."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(out, sheet.schema, compression="zstd") as writer:
        for table in sheet.make_tables():
            writer.write_table(table)


def file_names(predicates: Sequence[Predicate]) -> dict[Predicate, str]:
    """A readable file name for each predicate, each once."""
    names: dict[Predicate, str] = {}
    taken: set[str] = set()
    for predicate in predicates:
        short = re.sub(r"[^\w.-]+", "_", re.split(r"[/#]", predicate.name)[-1]).strip(".") or "facts"
        number, name = 2, short
        while name.lower() in taken:
            number, name = number + 1, f"{short}-{number}"
        taken.add(name.lower())
        names[predicate] = name
    return names


def name_lines(predicates: Sequence[Predicate], format_: str) -> list[str]:
    """Which file has the facts of which predicate, where its name does not say so."""
    names = file_names(predicates)
    other = [f"  {p}: {name}.{format_}" for p, name in names.items() if name != p.name]
    more = [f"  ... and {len(other) - _NAMES_SHOWN:,} more"] if len(other) > _NAMES_SHOWN else []
    return [*other[:_NAMES_SHOWN], *more]


def write_tables(sheets: Sequence[Sheet], format_: TableFormat, folder: Path) -> Iterator[Sheet]:
    """A file for each predicate; yields each sheet before it is written."""
    names = file_names([sheet.predicate for sheet in sheets])
    folder.mkdir(parents=True, exist_ok=True)
    for sheet in sheets:
        yield sheet
        with write_whole(folder / f"{names[sheet.predicate]}.{format_}") as out:
            if format_ == "parquet":
                write_parquet(sheet, out)
            elif format_ == "csv":
                write_table(sheet, out, ",", sheet.headings, quotes=True)
            else:
                write_table(sheet, out, "\t", sheet.headings if format_ == "tsv" else ())
