"""Facts in any form that Python has, into a chunk.

Nothing is changed by reading: facts that cannot be read are an error before an update begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyoxigraph as ox

from hdlog import interrupts
from hdlog.errors import InputError, did_you_mean
from hdlog.program.model import Predicate, Program, body_atoms
from hdlog.program.types import attribute_layout
from hdlog.reading.chunks import Chunk, Intake
from hdlog.reading.kernels import Places
from hdlog.reading.values import BAD, column_ids, graph_text, object_ids, value_text

FactInput = Any
"""One of, or a sequence of:

- a path, or a list with paths in it: N-Triples, Turtle, N-Quads, RDF/XML, CSV, TSV, .facts, Parquet or JSON lines, each
  also .gz or .zst;
- an rdflib or pyoxigraph graph, or triples of one;
- a mapping from predicate names to tables: rows, anything that speaks Arrow (pandas, polars, pyarrow, DuckDB), a path, or what
  `Reasoner.facts` gives;
- facts: (name, value, ...) with Python values, or (Predicate, row) with terms.
"""
ReadFiles = Callable[[Sequence[str | Path], str], Iterable[Chunk]]
"""The facts of files; all of one predicate, if it is named."""
_RDFLIB_DEFAULT = "urn:x-rdflib:default"
"""What rdflib calls the default graph."""
_BYTES = (bytes, bytearray, memoryview)
_SHOWN = 5


@runtime_checkable
class Terms(Protocol):
    """Facts whose terms are known exactly, such as those that a reasoner gives out."""

    def texts(self) -> list[list[str]]:
        """Columns of N-Triples terms."""

    def __len__(self) -> int: ...


class Collector(Intake):
    """Facts as they come in; those of a predicate that rules name have as many arguments as there."""

    def __init__(self, program: Program, read_files: ReadFiles) -> None:
        super().__init__(attribute_layout(program))
        self._read_files = read_files
        self._chunks: list[Chunk] = []
        self._rows: dict[Predicate, list[Sequence[Any]]] = {}
        self._arities = arities_in(program)

    def chunks(self) -> list[Chunk]:
        """Everything that has come in."""
        for predicate, rows in self._rows.items():
            self._add_rows(predicate, rows)
        self._rows = {}
        chunks = [*self._chunks, self.chunk()] if self.rows else self._chunks
        check_arities(self._arities, (p for chunk in chunks for p in chunk.facts))
        return chunks

    # Anything.

    def take(self, facts: FactInput) -> None:
        interrupts.check()
        if isinstance(facts, str | Path):
            self._chunks += self._read_files([facts], "")
        elif isinstance(facts, Mapping):
            for name, table in facts.items():
                self.table(name, table)
        elif isinstance(facts, _BYTES):
            raise InputError(f"cannot read facts from {type(facts).__name__}; a path is a string or a Path")
        elif isinstance(facts, ox.Store) or hasattr(facts, "triples"):
            self.triples(facts)
        elif isinstance(facts, tuple) and facts:
            self.fact(facts)
        elif isinstance(facts, ox.Triple | ox.Quad):
            self.triples([facts])
        elif isinstance(facts, Iterable):
            self._take_each(facts)
        else:
            raise InputError(f"cannot read facts from {type(facts).__name__}")

    def _take_each(self, facts: Iterable[Any]) -> None:
        with interrupts.let_through():
            items = list(facts)
        paths: list[str | Path] = []
        triples = []
        for item in items:
            if type(item) is tuple and item and type(item[0]) is str:
                self._rows.setdefault(Predicate(item[0], len(item) - 1), []).append(item[1:])
            elif isinstance(item, str | Path):
                paths.append(item)
            elif _is_triple(item):
                triples.append(item)
            elif item == ():
                raise InputError("a fact is a tuple of a predicate's name and values, not ()")
            else:
                self.take(item)
        if paths:
            self._chunks += self._read_files(paths, "")
        if triples:
            self.triples(triples)

    def fact(self, fact: tuple[Any, ...]) -> None:
        """(Predicate, row of terms), or (name, value, ...)."""
        if isinstance(fact[0], Predicate):
            predicate, row = fact
            if len(row) != predicate.arity:
                raise InputError(f"{predicate} has {predicate.arity} arguments, not {len(row)}")
            self._rows.setdefault(predicate, []).append(row)
        elif type(fact[0]) is str:
            self._rows.setdefault(Predicate(fact[0], len(fact) - 1), []).append(fact[1:])
        else:
            raise InputError(f"a fact is a tuple of a predicate's name and values, not {fact!r}")

    def _add_rows(self, predicate: Predicate, rows: Sequence[Sequence[Any]]) -> None:
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
        types = self.types(predicate, "")
        if not columns:
            self.add(predicate, [], 1)
            return
        ids = [object_ids(self.terms, c, t) for c, t in zip(columns, types, strict=True)]
        self._check(predicate.name, ids, types, lambda i, row: columns[i][row])
        self.add(predicate, ids, len(rows))

    def _check(
        self, name: str, columns: Sequence[Places], types: Sequence[str], value: Callable[[int, int], Any]
    ) -> None:
        """All values have a term, or the first that has none is told."""
        for i, (column, type_) in enumerate(zip(columns, types, strict=True)):
            bad = np.flatnonzero(column == BAD)
            if len(bad):
                row = int(bad[0])
                bad_value = value(i, row)
                place = f"{name}: row {row + 1}, column {i + 1}: "
                if bad_value is None:
                    raise InputError(f"{place}a value is missing, as in {len(bad):,} rows of this column")
                if type_ not in ("", "any"):
                    raise InputError(f"{place}{bad_value!r} is not a {type_}")
                try:
                    value_text(bad_value)
                except InputError as error:
                    raise InputError(f"{place}{error}") from None
                raise InputError(f"{place}{bad_value!r} is not a value a fact can have")

    # Tables.

    def table(self, name: str | Predicate, table: Any) -> None:
        if not isinstance(name, str | Predicate):
            raise InputError(f"the name of a predicate is a string, not {name!r}")
        if isinstance(table, str | Path):
            self._chunks += self._read_files([table], name if isinstance(name, str) else name.name)
            return
        if isinstance(table, Terms):
            self._take_terms(name, table)
            return
        if isinstance(table, np.ndarray):
            table = [tuple(row) if isinstance(row, list) else (row,) for row in table.tolist()]
        try:
            arrow = _as_arrow(table)
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
            # Columns of objects: each value is looked at by itself.
            frame = table.to_frame() if _is_series(table) else table
            self._take_objects(name, frame)
            return
        if arrow is not None:
            self.arrow(name, arrow)
            return
        if isinstance(table, (Mapping, *_BYTES)) or not isinstance(table, Iterable):
            raise InputError(
                f"{_name(name)}: facts are rows or a table (pandas, polars, Arrow), not {type(table).__name__}"
            )
        with interrupts.let_through():
            rows = list(table)
        for row in rows:
            if isinstance(row, Mapping):
                keys = list(map(str, row))
                order = self.order(_name(name), keys, f"{_name(name)}: ")
                several = list(row.values())
                row = tuple(several[i] for i in order)
            values = row if isinstance(row, tuple | list) else (row,)
            predicate = name if isinstance(name, Predicate) else Predicate(name, len(values))
            if len(values) != predicate.arity:
                raise InputError(f"{predicate} has {predicate.arity} arguments, not {len(values)}")
            self._rows.setdefault(predicate, []).append(values)

    def _take_terms(self, name: str | Predicate, table: Terms) -> None:
        columns = table.texts()
        predicate = name if isinstance(name, Predicate) else Predicate(name, len(columns))
        if predicate.arity != len(columns):
            raise InputError(f"{predicate} has {predicate.arity} arguments, the facts {len(columns)}")
        self.types(predicate, "")
        self.add(predicate, [self.terms.add_texts(c) for c in columns], len(table) if columns else 1)

    def _take_objects(self, name: str | Predicate, frame: Any) -> None:
        """A table of pandas with values of several kinds in a column."""
        predicate = name if isinstance(name, Predicate) else Predicate(name, len(frame.columns))
        arranged, _ = self.arrange(predicate, list(map(str, frame.columns)))
        named = dict(zip(map(str, frame.columns), frame.columns, strict=True))
        rows = list(zip(*(frame[named[n]].tolist() for n in arranged), strict=True))
        self._rows.setdefault(predicate, []).extend(rows)

    def arrow(self, name: str | Predicate, table: pa.Table) -> None:
        predicate = name if isinstance(name, Predicate) else Predicate(name, table.num_columns)
        if predicate.arity != table.num_columns:
            raise InputError(
                f"{predicate.name} has {predicate.arity} arguments, the table {table.num_columns} columns"
            )
        types = self.types(predicate, "")
        place = f"{predicate.name}: "
        table = table.select(self.order(predicate.name, list(map(str, table.column_names)), place))
        for field in table.schema:
            if not _has_values(field.type):
                raise InputError(
                    f"{place}column {field.name} has the type {field.type}, which no value of a fact has"
                )
        columns = [_combine(c) for c in table.columns]
        ids = [column_ids(self.terms, c, t) for c, t in zip(columns, types, strict=True)]
        self._check(predicate.name, ids, types, lambda i, row: columns[i][row].as_py())
        self.add(predicate, ids, table.num_rows if ids else min(1, table.num_rows))

    def arrange(self, predicate: Predicate, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """The columns of a table in the order of the arguments of its predicate, and their declared types."""
        types = self.types(predicate, f"{predicate.name}: ")
        check_arities(self._arities, [predicate])
        return [names[i] for i in self.order(predicate.name, names, f"{predicate.name}: ")], types

    # Graphs.

    def triples(self, graph: Iterable[Any]) -> None:
        """Triples and quads of pyoxigraph or rdflib."""
        grouped: dict[tuple[str, bool], list[tuple[str, ...]]] = {}
        with interrupts.let_through():
            items = list(graph)
        for item in items:
            s, p, o = (graph_text(t) for t in tuple(item)[:3])
            name = _graph_name(item)
            grouped.setdefault((p, name is not None), []).append((s, o) if name is None else (s, o, name))
        for (predicate, _), rows in grouped.items():
            columns = [self.terms.add_texts(column) for column in zip(*rows, strict=True)]
            self.add_triples(predicate[1:-1], *columns)


def _graph_name(item: Any) -> str | None:
    """The named graph that a quad is in; None for the default graph, and for a triple."""
    graph = tuple(item)[3] if len(tuple(item)) > 3 else None
    graph = getattr(graph, "identifier", graph)  # rdflib gives the graph itself
    if graph is None or isinstance(graph, ox.DefaultGraph) or str(graph) == _RDFLIB_DEFAULT:
        return None
    return graph_text(graph)


def _is_triple(item: Any) -> bool:
    """Whether this is a triple of a graph: rdflib's are tuples of its terms."""
    if isinstance(item, ox.Triple | ox.Quad):
        return True
    return isinstance(item, tuple) and len(item) in (3, 4) and hasattr(item[0], "n3")


def _as_arrow(table: Any) -> pa.Table | None:
    """A table of any library that knows Arrow."""
    if hasattr(table, "collect") and type(table).__module__.startswith("polars"):
        table = table.collect()
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if type(table).__module__.startswith("pandas"):
        import pandas

        frame = table.to_frame() if isinstance(table, pandas.Series) else table
        if not frame.columns.is_unique:
            raise InputError(f"several columns have the same name: {', '.join(map(str, frame.columns))}")
        return pa.Table.from_pandas(frame, preserve_index=False)
    if hasattr(table, "toArrow"):  # pyspark, whose stream knows no time zones
        return table.toArrow()
    if hasattr(table, "__arrow_c_stream__"):
        arrow = pa.chunked_array(table) if _is_series(table) else pa.table(table)
        return pa.table({"c0": arrow}) if isinstance(arrow, pa.ChunkedArray) else arrow
    if isinstance(table, pa.Array | pa.ChunkedArray):
        return pa.table({"c0": table})
    for name in ("to_arrow", "to_arrow_table"):  # polars and DuckDB, DuckDB
        if hasattr(table, name):
            arrow = getattr(table, name)()
            return pa.table(arrow) if not isinstance(arrow, pa.Table) else arrow
    return None


def _has_values(type_: pa.DataType) -> bool:
    """Whether values of a type are ones that facts have."""
    return not (
        pa.types.is_nested(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_fixed_size_binary(type_)
        or isinstance(type_, pa.BaseExtensionType)
    )


def _is_series(table: Any) -> bool:
    return type(table).__name__ in ("Series", "ChunkedArray")


def _combine(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.combine_chunks() if isinstance(combined, pa.ChunkedArray) else combined


Arities = Mapping[str, set[int]]
"""By name of a table, with how many arguments it occurs."""


def check_arities(known: Arities, facts: Iterable[Predicate]) -> None:
    """Refuse facts of tables that rules have with another number of arguments."""
    for predicate in dict.fromkeys(facts):
        if predicate.arity not in known.get(predicate.name, {predicate.arity}):
            wanted = " or ".join(map(str, sorted(known[predicate.name])))
            raise InputError(
                f"facts of {predicate.name} have {predicate.arity} arguments; in the rules it has {wanted}"
            )


def arities_in(program: Program) -> Arities:
    """With how many arguments tables occur in rules; an IRI may name a class and a property."""
    arities: dict[str, set[int]] = {}
    for rule in program.rules:
        for atom in (*rule.heads, *(a for a, _ in body_atoms(rule.body))):
            if ":" not in atom.name and not atom.is_triple:
                arities.setdefault(atom.name, set()).add(len(atom.terms))
    return arities


def find_misspelt(program: Program, predicates: Iterable[Predicate]) -> list[str]:
    """Warnings for tables that no rule names, though one has nearly the same name."""
    named = {p.name for p in program.predicates}
    warnings = []
    for predicate in predicates:
        if ":" not in predicate.name and predicate.name not in named:
            hint = did_you_mean(predicate.name, named)
            if hint:
                warnings.append(f"warning: facts of {predicate.name} are given, which no rule names; {hint}")
    return warnings[:_SHOWN]


def _name(name: str | Predicate) -> str:
    return name if isinstance(name, str) else name.name
