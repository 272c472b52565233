"""Lines of N-Triples and N-Quads, and Turtle and RDF/XML by way of them, into facts.

Compiled loops read all lines that are plain; pyoxigraph reads the few others, and says what is wrong with them. So what
is malformed is what pyoxigraph finds malformed, but for triple terms and base directions (RDF 1.2), which have no
counterpart in a program and are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import Any

import numpy as np
import pyoxigraph as ox

from hdlog.errors import InputError
from hdlog.program.model import Predicate
from hdlog.program.terms import RDF_TYPE
from hdlog.reading import kernels
from hdlog.reading.chunks import Reading, groups
from hdlog.reading.entities import find_growth
from hdlog.reading.kernels import Bytes, Places
from hdlog.reading.splits import blocks, content, cut_blocks
from hdlog.reading.term_table import TermTable
from hdlog.reading.values import value_text

_SHORTEST_TRIPLE = len(b"_:s <p:> _:o.")
_TYPE = f"<{RDF_TYPE}>"
_DOCUMENTS = {"ttl": ("Turtle", ox.RdfFormat.TURTLE), "rdf": ("RDF/XML", ox.RdfFormat.RDF_XML)}
_PLACE = re.compile(r"^Parser error [^:]*: ")
_ANONYMOUS = "anonymous."
_MADE_UP = re.compile(r"[0-9a-f]{24,32}")
"""Labels that pyoxigraph gives to nodes that have none."""
Refuse = Callable[[int, str], None]
"""Called with the place and the fault of a line."""


def read_lines(reading: Reading) -> None:
    """Read a split in N-Triples or N-Quads; names of graphs are dropped."""
    split = reading.split

    def refuse(place: int, why: str) -> None:
        reading.refuse(lambda: reading.lines.of(place), why)

    _read(blocks(split), split.format == "nq", reading, refuse)


def read_document(reading: Reading) -> None:
    """Read a split in Turtle or RDF/XML; none of it if anything is wrong, even if the reading is lenient."""
    path = reading.split.path
    name, rdf_format = _DOCUMENTS[reading.split.format]
    note = f"; {name} cannot be skipped line by line" if reading.lenient else ""

    def refuse(place: int, why: str) -> None:
        raise InputError(f"{path}: {why}{note}")

    data = content(reading.split)
    growth = find_growth(data) if reading.split.format == "rdf" else ""
    if growth:
        raise InputError(f"{path}: {growth}")
    try:
        triples = ox.parse(data, format=rdf_format)
        lines = ox.serialize(_rename_blank_nodes(triples), format=ox.RdfFormat.N_TRIPLES)
    except SyntaxError as error:
        raise InputError(f"{path}:{error.lineno or 1}: {_reason(error)}{note}") from None
    _read(cut_blocks(BytesIO(lines or b"")), False, reading, refuse)


def _rename_blank_nodes(triples: Iterable[ox.Quad]) -> Iterator[ox.Triple]:
    """Nodes without a label are numbered as they come, so that the same file has the same nodes every time. No label that somebody
    writes begins as theirs do."""
    names: dict[str, ox.BlankNode] = {}

    def rename(term: Any) -> Any:
        if not isinstance(term, ox.BlankNode):
            return term
        if _MADE_UP.fullmatch(term.value):
            return names.setdefault(term.value, ox.BlankNode(f"{_ANONYMOUS}{len(names)}"))
        return ox.BlankNode(f"_{term.value}") if term.value.lstrip("_").startswith(_ANONYMOUS) else term

    for triple in triples:
        yield ox.Triple(rename(triple.subject), triple.predicate, rename(triple.object))


def _read(placed_blocks: Iterable[tuple[int, bytes]], quads: bool, reading: Reading, refuse: Refuse) -> None:
    names = TermTable()
    parts = [_no_triples()]
    for start, block in placed_blocks:
        data = np.frombuffer(block, np.uint8)
        places = np.empty((6, len(data) // _SHORTEST_TRIPLE + 1), np.int64)
        others = np.empty((2, len(data) // 2 + 1), np.int64)
        rows, unclear = kernels.scan(data, quads, places, others)
        parts.append(_number_terms(data, places[:, :rows], reading.terms, names))
        if unclear:
            lines = [(start + low, block[low:high]) for low, high in others[:, :unclear].T.tolist()]
            texts = _look_closer(lines, quads, refuse)
            if texts:
                s, p, o = zip(*texts, strict=True)
                parts.append((reading.terms.add_texts(s), names.add_texts(p), reading.terms.add_texts(o)))
    subjects, predicates, objects = (np.concatenate(column) for column in zip(*parts, strict=True))
    for number, rows_of in groups(predicates):
        _add(names.text(number), subjects[rows_of], objects[rows_of], reading)


def _no_triples() -> tuple[Places, Places, Places]:
    none = np.empty(0, np.int64)
    return none, none, none


def _number_terms(
    data: Bytes, places: Places, terms: TermTable, names: TermTable
) -> tuple[Places, Places, Places]:
    s, p, o = places[0:2], places[2:4], places[4:6]
    return terms.add(data, *s), names.add(data, *p), terms.add(data, *o)


def _add(predicate: str, subjects: Places, objects: Places, reading: Reading) -> None:
    if predicate == _TYPE:
        reading.add_classes(subjects, objects)
    else:
        reading.add(Predicate(predicate[1:-1], 2), [subjects, objects], len(subjects))


def _look_closer(lines: list[tuple[int, bytes]], quads: bool, refuse: Refuse) -> list[tuple[str, str, str]]:
    """The triples of lines that are not plain, or are malformed."""
    try:
        return _parse(b"\n".join(line for _, line in lines), quads)
    except SyntaxError:
        pass
    triples = []
    for place, line in lines:
        try:
            triples += _parse(line, quads)
        except SyntaxError as error:
            refuse(place, _reason(error))
    return triples


def _parse(lines: bytes, quads: bool) -> list[tuple[str, str, str]]:
    parsed = ox.parse(lines, format=ox.RdfFormat.N_QUADS if quads else ox.RdfFormat.N_TRIPLES)
    return [(str(t.subject), str(t.predicate), _object_text(t.object)) for t in parsed]


def _object_text(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> str:
    if isinstance(term, ox.NamedNode | ox.BlankNode):
        return str(term)
    if isinstance(term, ox.Triple):
        raise SyntaxError("a triple term (RDF 1.2) cannot be part of a fact")
    if term.direction is not None:
        raise SyntaxError("a literal with a base direction (RDF 1.2) cannot be part of a fact")
    return value_text(term)


def _reason(error: SyntaxError) -> str:
    return _PLACE.sub("", error.msg)
