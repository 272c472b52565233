"""Facts in any form into facts of the engine.

Nothing is changed by reading: facts that cannot be read are an error with its place before an update begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox
from numpy.typing import NDArray

from hdlog.engines.encoding import Dictionary, Encoder, Ids
from hdlog.engines.identifiers import INTEGERS
from hdlog.errors import HdlogError
from hdlog.program.model import TRIPLE, Predicate, Program
from hdlog.program.ntriples import parse_term, quote, term_text
from hdlog.program.terms import (
    RDF_TYPE,
    XSD_BOOLEAN,
    XSD_DOUBLE,
    XSD_INTEGER,
    BlankNode,
    Iri,
    Literal,
    Skolem,
    double,
)
from hdlog.program.types import attribute_types

FactInput = Any
"""One of, or a sequence of:

- a path, or a list with paths in it: N-Triples, Turtle, N-Quads, RDF/XML, CSV, TSV, .facts, Parquet or JSON lines, each
  also .gz or .zst;
- an rdflib or pyoxigraph graph;
- a mapping from predicate names to tables: rows, or anything that speaks Arrow (pandas, polars, pyarrow, DuckDB);
- facts: (name, value, ...) with Python values, or (Predicate, row) with terms.
"""

_INTEGER_MARK, _DOUBLE_MARK = f'"^^<{XSD_INTEGER}>', f'"^^<{XSD_DOUBLE}>'


class InputError(HdlogError):
    """Facts that cannot be read."""

    exit_code = 7


@runtime_checkable
class EncodedFacts(Protocol):
    """Facts as files are read into: distinct texts, and columns of places among them or, below zero, ids of integers."""

    texts: pa.Array
    facts: dict[Predicate, list[NDArray[np.int64]]]


class Collector:
    """Columns of ids by predicate, as they come in."""

    def __init__(self, engine: Encoder, program: Program) -> None:
        self.engine = engine
        self.dictionary = engine.dictionary
        self.program = program
        self.types = attribute_types(program)
        self._parts: dict[Predicate, list[list[Ids]]] = {}
        self._rows: dict[Predicate, int] = {}
        self._single: dict[Predicate, list[tuple[str, ...]]] = {}

    def facts(self) -> dict[Predicate, Any]:
        for predicate, rows in self._single.items():
            texts = zip(*rows, strict=True)
            self.columns(predicate, [self.dictionary.encode(c) for c in texts], len(rows))
        found = {}
        for predicate, parts in self._parts.items():
            columns = [np.concatenate(c) for c in zip(*parts, strict=True)]
            found[predicate] = self.engine.facts_from_columns(columns, self._rows[predicate])
        return found

    def columns(self, predicate: Predicate, columns: list[Ids], rows: int) -> None:
        if rows:
            self._parts.setdefault(predicate, []).append(columns)
            self._rows[predicate] = self._rows.get(predicate, 0) + rows

    def one(self, predicate: Predicate, texts: tuple[str, ...]) -> None:
        self._single.setdefault(predicate, []).append(texts)

    # Anything.

    def take(self, given: FactInput) -> None:
        if isinstance(given, EncodedFacts):
            self.encoded(given)
        elif isinstance(given, Mapping):
            for name, table in given.items():
                self.table(name, table)
        elif isinstance(given, ox.Store) or hasattr(given, "triples"):
            self.triples(given)
        elif isinstance(given, tuple) and given:
            self.fact(given)
        elif isinstance(given, ox.Triple | ox.Quad):
            self.triples([given])
        elif isinstance(given, Iterable):
            for item in given:
                self.take(item)
        else:
            raise InputError(f"cannot read facts from {type(given).__name__}")

    def fact(self, given: tuple[Any, ...]) -> None:
        """(Predicate, row of terms) or (name, value, ...)."""
        if given and isinstance(given[0], Predicate):
            self.one(given[0], tuple(term_text(t) for t in given[1]))
        elif given and isinstance(given[0], str):
            self.one(Predicate(given[0], len(given) - 1), tuple(map(value_text, given[1:])))
        else:
            raise InputError(f"a fact is a tuple of a predicate's name and values, not {given!r}")

    def encoded(self, given: EncodedFacts) -> None:
        """Facts whose terms have numbers of their own."""
        ids = self.dictionary.encode(given.texts.to_pylist())
        for predicate, columns in given.facts.items():
            rows = len(columns[0]) if columns else 1
            self.columns(predicate, [self._translated(c, ids) for c in columns], rows)

    def _translated(self, column: NDArray[np.int64], ids: Ids) -> Ids:
        inline = column < 0
        if not inline.any():
            return ids[column]
        found = np.empty(len(column), ids.dtype)
        found[~inline] = ids[column[~inline]]
        found[inline] = self.dictionary.encode_integers(column[inline] - np.int64(INTEGERS))
        return found

    # Tables.

    def table(self, name: str | Predicate, table: Any) -> None:
        if hasattr(table, "__arrow_c_stream__") or isinstance(table, pa.Table | pa.RecordBatch):
            self.arrow(name, pa.table(table))
        elif hasattr(table, "to_arrow"):
            self.arrow(name, table.to_arrow())
        elif hasattr(table, "toArrow"):  # pyspark
            self.arrow(name, table.toArrow())
        elif type(table).__module__.startswith("pandas"):
            self.arrow(name, pa.Table.from_pandas(table, preserve_index=False))
        else:
            for row in table:
                values = row if isinstance(row, tuple | list) else (row,)
                predicate = name if isinstance(name, Predicate) else Predicate(name, len(values))
                self.one(predicate, tuple(map(value_text, values)))

    def arrow(self, name: str | Predicate, table: pa.Table, types: Sequence[str] = ()) -> None:
        predicate = name if isinstance(name, Predicate) else Predicate(name, table.num_columns)
        if predicate.arity != table.num_columns:
            raise InputError(
                f"{predicate.name} has {predicate.arity} arguments, the table {table.num_columns} columns"
            )
        types = types or self.types.get(predicate.name, ("any",) * predicate.arity)
        columns = [arrow_ids(self.dictionary, c, t) for c, t in zip(table.columns, types, strict=True)]
        self.columns(predicate, columns, table.num_rows)

    # Graphs.

    def triples(self, graph: Iterable[Any]) -> None:
        """Triples of pyoxigraph or rdflib."""
        grouped: dict[str, tuple[list[str], list[str]]] = {}
        for triple in graph:
            s, p, o = (_graph_text(t) for t in tuple(triple)[:3])
            subjects, objects = grouped.setdefault(p, ([], []))
            subjects.append(s)
            objects.append(o)
        for name, (subjects, objects) in grouped.items():
            s_ids, o_ids = self.dictionary.encode(subjects), self.dictionary.encode(objects)
            if name == f"<{RDF_TYPE}>":
                self.classes(s_ids, o_ids)
            else:
                self.columns(Predicate(name[1:-1], 2), [s_ids, o_ids], len(s_ids))

    def classes(self, members: Ids, classes: Ids) -> None:
        """(s, rdf:type, C) is C(s)."""
        for identifier in np.unique(classes).tolist():
            text = self.dictionary.text(identifier)
            chosen = members[classes == identifier]
            if text[0] == "<":
                self.columns(Predicate(text[1:-1], 1), [chosen], len(chosen))
            else:
                ids = [
                    chosen,
                    np.full(len(chosen), self.dictionary.encode([f"<{RDF_TYPE}>"])[0]),
                    classes[classes == identifier],
                ]
                self.columns(Predicate(TRIPLE, 3), ids, len(chosen))


class _BadValue(Exception):
    def __init__(self, row: int, value: str, type_: str) -> None:
        self.row, self.value, self.type = row, value, type_


def value_text(value: Any) -> str:
    """A Python value, or a term of hdlog, pyoxigraph or rdflib, as N-Triples text."""
    if isinstance(value, bool):
        return f'"{str(value).lower()}"^^<{XSD_BOOLEAN}>'
    if isinstance(value, int | np.integer):
        return f'"{int(value)}{_INTEGER_MARK}'
    if isinstance(value, float | np.floating):
        return term_text(double(float(value)))
    if isinstance(value, Iri | Literal | BlankNode | Skolem):
        return term_text(value)
    if type(value) is str:
        return quote(value)
    return _graph_text(value)


def _graph_text(term: Any) -> str:
    """A term of pyoxigraph or rdflib, written the one way the dictionary knows it."""
    text = str(term) if type(term).__module__.startswith("pyoxigraph") else None
    if text is None:
        if not hasattr(term, "n3"):
            raise InputError(f"{term!r} is not a value a fact can have")
        text = rdflib_text(term)
    return term_text(parse_term(text)) if "\\" in text or "\t" in text or "@" in text else text


def rdflib_text(term: Any) -> str:
    kind = type(term).__name__
    if kind == "URIRef":
        return f"<{term}>"
    if kind == "BNode":
        return f"_:{term}"
    language, datatype = getattr(term, "language", None), getattr(term, "datatype", None)
    if language:
        return f"{quote(str(term))}@{language.lower()}"
    return f"{quote(str(term))}^^<{datatype}>" if datatype else quote(str(term))


def arrow_ids(dictionary: Dictionary, column: pa.ChunkedArray, type_: str) -> Ids:
    """A column of a table as ids; `type_` says what strings stand for."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if column.null_count:
        raise InputError("a table of facts has no missing values")
    if pa.types.is_integer(column.type) and type_ != "float":
        return dictionary.encode_integers(column.cast(pa.int64()).to_numpy(zero_copy_only=False))
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = encoded.dictionary.to_pylist()
    make = _MAKERS.get(type_, value_text) if pa.types.is_string(column.type) else value_text
    if type_ == "float" and not pa.types.is_string(column.type):
        make = _float_text
    texts = []
    for number, value in enumerate(values):
        try:
            texts.append(make(value))
        except (ValueError, OverflowError):
            row = encoded.indices.to_numpy(zero_copy_only=False).tolist().index(number)
            raise _BadValue(row, value, type_) from None
    positions: NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False)
    return dictionary.encode(texts)[positions]


def _number_text(value: str) -> str:
    return f'"{int(value)}{_INTEGER_MARK}'


def _float_text(value: Any) -> str:
    return term_text(double(float(value)))


def _any_text(value: str) -> str:
    """A value without declared type: a number, an IRI in angle brackets, or a string."""
    digits = value[1:] if value[:1] == "-" else value
    if digits.isascii() and digits.isdigit() and len(digits) < 19 and (digits == "0" or digits[0] != "0"):
        return f'"{value}{_INTEGER_MARK}'
    if value[:1] == "<" and value[-1:] == ">":
        return value
    return quote(value)


_MAKERS: dict[str, Callable[[str], str]] = {
    "number": _number_text,
    "unsigned": _number_text,
    "float": _float_text,
    "symbol": quote,
    "any": _any_text,
}


def encode_facts(engine: Encoder, given: FactInput, program: Program | None = None) -> dict[Predicate, Any]:
    collector = Collector(engine, program or Program())
    collector.take(given)
    return collector.facts()
