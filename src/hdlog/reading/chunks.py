"""Terms and columns, as they come in, into a chunk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdlog.errors import InputError, IntermediateTooLarge
from hdlog.memory import used_memory
from hdlog.program.model import GRAPH, Attribute, Predicate
from hdlog.program.ntriples import SKOLEM
from hdlog.program.terms import RDF_TYPE
from hdlog.reading.kernels import Places
from hdlog.reading.shared_terms import TermsInTurn
from hdlog.reading.splits import LineNumbers, Split, scope_of
from hdlog.reading.term_table import MOST_BYTES, TermTable

PROBLEMS = 10
"""How many skipped lines are told of."""
_WORTH_A_LOOK = 50_000
"""Rows that come together from which on the memory is looked at."""
Layout = Mapping[str, Sequence[Attribute]]
"""The attributes of declared predicates, by name; their types are primitive, or empty."""
_SCOPED = rf"^_:b\.[0-9a-f]{{10}}\.|^{re.escape(SKOLEM)}"
"""Blank nodes that belong to no file, or say to which."""


@dataclass
class Chunk:
    """Facts whose terms have numbers of their own.

    `texts` are distinct terms, as canonical N-Triples text. The columns of the facts have places in `texts`, or, below
    zero, ids of integers, which have no text. `skipped` lines were malformed; `problems` tells of the first of them.

    Where several chunks share a table of terms, there are no texts, and places are those in the first `known` terms of that.
    """

    texts: pa.Array
    facts: dict[Predicate, list[NDArray[np.int64]]]
    rows: int
    skipped: int = 0
    problems: list[str] = field(default_factory=list)
    dropped: int = 0
    """rows that lack a value"""
    known: int | None = None


class Intake:
    """What has come in so far."""

    def __init__(self, layout: Layout, terms: TermTable | TermsInTurn | None = None) -> None:
        self.layout = layout
        self.terms = TermTable() if terms is None else terms
        self.rows = 0
        self._parts: dict[Predicate, list[list[Places]]] = {}

    def types(self, predicate: Predicate, place: str) -> list[str]:
        """The declared types of the arguments, empty where there are none."""
        declared = self.layout.get(predicate.name)
        if declared is None:
            return [""] * predicate.arity
        if len(declared) != predicate.arity:
            raise InputError(
                f"{place}{_format_count(predicate.arity, 'column')}, but {predicate.name} has "
                f"{_format_count(len(declared), 'attribute')}"
            )
        return [a.type for a in declared]

    def order(self, name: str, columns: Sequence[str], place: str) -> list[int]:
        """In which order named columns are the arguments of a predicate: by declared names, or as they stand."""
        declared = [a.name for a in self.layout.get(name, ())]
        if not set(declared) & set(columns):
            return list(range(len(columns)))
        if set(declared) != set(columns) or len(set(columns)) != len(columns):
            raise InputError(
                f"{place}the columns are {', '.join(columns)}, those of {name} are {', '.join(declared)}"
            )
        return [columns.index(n) for n in declared]

    def add(self, predicate: Predicate, columns: list[Places], rows: int) -> None:
        if predicate.name.startswith("#"):
            raise InputError(f"{predicate.name}: names that begin with # are for hdlog's own predicates")
        if predicate.name.startswith(RDF_TYPE) and predicate.without_graph() == (RDF_TYPE, 2):
            self.add_triples(RDF_TYPE, *columns)
        else:
            self._add(predicate, columns, rows)

    def _add(self, predicate: Predicate, columns: list[Places], rows: int) -> None:
        if rows:
            self._parts.setdefault(predicate, []).append(columns)
            self.rows += rows

    def add_triples(
        self, predicate: str, subjects: Places, objects: Places, graphs: Places | None = None
    ) -> None:
        """Triples with a predicate, by its name; in named graphs, if there are any."""
        more, suffix = ([], "") if graphs is None else ([graphs], GRAPH)
        if predicate != RDF_TYPE:
            columns = [subjects, objects, *more]
            self.add(Predicate(predicate + suffix, len(columns)), columns, len(subjects))
            return
        # (s, rdf:type, C) is C(s) if C is an IRI.
        for number, (own, classes, *rest) in gather(objects, subjects, objects, *more):
            text = self.terms.text(number) if number >= 0 else ""
            columns = [own, *rest] if text[:1] == "<" else [own, classes, *rest]
            name = text[1:-1] if text[:1] == "<" else RDF_TYPE
            self._add(Predicate(name + suffix, len(columns)), columns, len(own))

    def chunk(self) -> Chunk:
        facts = {p: _join_parts(parts) for p, parts in self._parts.items()}
        if isinstance(self.terms, TermsInTurn):
            return Chunk(pa.array([], pa.string()), facts, self.rows, known=self.terms.known)
        return Chunk(self.terms.texts(), facts, self.rows)


class Reading(Intake):
    """What has been read of a split."""

    def __init__(self, split: Split, layout: Layout, lenient: bool, terms: TermsInTurn | None = None) -> None:
        super().__init__(layout, terms)
        self.split, self.lenient = split, lenient
        self.lines = LineNumbers(split)
        self.skipped = self.dropped = 0
        self.problems: list[str] = []

    def order(self, name: str, columns: Sequence[str], place: str) -> list[int]:
        """Likewise, or those that somebody has chosen."""
        missing = [field for field in self.split.fields if field not in columns]
        if missing:
            raise InputError(f"{place}there is no column {missing[0]}; there are {', '.join(columns)}")
        if self.split.fields:
            return [columns.index(field) for field in self.split.fields]
        return super().order(name, columns, place)

    def _add(self, predicate: Predicate, columns: list[Places], rows: int) -> None:
        super()._add(predicate, columns, rows)
        if self.split.memory is not None and rows > _WORTH_A_LOOK and used_memory() > self.split.memory:
            raise IntermediateTooLarge(
                f"what is read of {self.split.path}, so far a table",
                self.rows,
                used_memory(),
                self.split.memory,
            )

    def refuse(self, line: Callable[[], int], why: str) -> None:
        """Skip a line, or give up; only then, or for the first few, is its number asked for."""
        if not self.lenient:
            raise InputError(f"{self.split.path}:{line()}: {why}")
        self.skipped += 1
        if len(self.problems) < PROBLEMS:
            self.problems.append(f"{self.split.path}:{line()}: {why}")

    def chunk(self) -> Chunk:
        if isinstance(self.terms, TermTable) and self.terms.bytes > MOST_BYTES:
            raise InputError(
                f"{self.split.path}: more than 2 GB of terms in one part; cut it into smaller files"
            )
        chunk = super().chunk()
        if self.split.scope != "":
            chunk.texts = scope_blank_nodes(chunk.texts, self.split)
        chunk.skipped, chunk.problems, chunk.dropped = self.skipped, self.problems, self.dropped
        return chunk


def scope_blank_nodes(texts: pa.Array, split: Split) -> pa.Array:
    """Blank nodes of a file as nodes of that file: labels mean nothing outside of it."""
    blank = pc.starts_with(texts, "_:")
    if not pc.any(blank).as_py():
        return texts
    own = pc.and_(blank, pc.invert(pc.match_substring_regex(texts, _SCOPED)))
    labels = pc.utf8_slice_codeunits(texts.filter(own), 2)
    return pc.replace_with_mask(
        texts, own, pc.binary_join_element_wise(f"_:b.{scope_of(split)}.", labels, "")
    )


def _join_parts(parts: list[list[Places]]) -> list[Places]:
    return parts[0] if len(parts) == 1 else [np.concatenate(columns) for columns in zip(*parts, strict=True)]


def _format_count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def gather(keys: NDArray[Any], *columns: Places) -> Iterator[tuple[int, list[Places]]]:
    """Each key with its rows of some columns, in their order."""
    small = keys.astype(np.uint16) if len(keys) and keys.min() >= 0 and keys.max() < 1 << 16 else keys
    order = np.argsort(small, kind="stable")  # of small keys by counting
    ordered = keys[order]
    firsts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(keys) else order
    gathered = [column[order] for column in columns]
    starts, found = firsts.tolist(), ordered[firsts].tolist()
    ends = [*starts[1:], len(keys)][: len(starts)]
    for key, start, end in zip(found, starts, ends, strict=True):
        yield key, [column[start:end] for column in gathered]
