"""Lines of N-Triples and N-Quads, and Turtle, TriG and RDF/XML by way of them, into facts.

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
from hdlog.reading import kernels
from hdlog.reading.chunks import Reading, gather
from hdlog.reading.entities import find_growth
from hdlog.reading.kernels import Bytes, Places
from hdlog.reading.shared_terms import Terms, TermsInTurn
from hdlog.reading.splits import blocks, content, cut_blocks
from hdlog.reading.term_table import TermTable
from hdlog.reading.values import value_text

_SHORTEST_TRIPLE = len(b"_:s <p:> _:o.")
_DOCUMENTS = {
    "ttl": ("Turtle", ox.RdfFormat.TURTLE),
    "trig": ("TriG", ox.RdfFormat.TRIG),
    "rdf": ("RDF/XML", ox.RdfFormat.RDF_XML),
}
_PLACE = re.compile(r"^Parser error [^:]*: ")
_ANONYMOUS = "anonymous."
_MADE_UP = re.compile(r"[0-9a-f]{24,32}")
"""Labels that pyoxigraph gives to nodes that have none."""
_DEFAULT = np.int64(-(1 << 62))
"""In place of the number of a graph: the default graph."""
Refuse = Callable[[int, str], None]
"""Called with the place and the fault of a line."""
QuadText = tuple[str, str, str, str]
"""Subject, predicate, object and graph; nothing for the default graph."""
Scanned = tuple[Bytes, Places, list[QuadText]]
"""The bytes of a block, the places of terms in them, and the texts of those in lines that are not plain."""


def read_lines(reading: Reading) -> None:
    """Read a split in N-Triples or N-Quads."""
    split = reading.split

    def refuse(place: int, why: str) -> None:
        reading.refuse(lambda: reading.lines.of(place), why)

    _read(blocks(split), split.format == "nq", reading, refuse)


def read_document(reading: Reading) -> None:
    """Read a split in Turtle, TriG or RDF/XML; none of it if anything is wrong, even if the reading is lenient."""
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
        lines = ox.serialize(_rename_blank_nodes(triples), format=ox.RdfFormat.N_QUADS)
    except SyntaxError as error:
        raise InputError(f"{path}:{error.lineno or 1}: {_reason(error)}{note}") from None
    _read(cut_blocks(BytesIO(lines or b"")), True, reading, refuse)


def _rename_blank_nodes(quads: Iterable[ox.Quad]) -> Iterator[ox.Quad]:
    """Nodes without a label are numbered as they come, so that the same file has the same nodes every time. No label that somebody
    writes begins as theirs do."""
    names: dict[str, ox.BlankNode] = {}

    def rename(term: Any) -> Any:
        if not isinstance(term, ox.BlankNode):
            return term
        if _MADE_UP.fullmatch(term.value):
            return names.setdefault(term.value, ox.BlankNode(f"{_ANONYMOUS}{len(names)}"))
        return ox.BlankNode(f"_{term.value}") if term.value.lstrip("_").startswith(_ANONYMOUS) else term

    for quad in quads:
        yield ox.Quad(rename(quad.subject), quad.predicate, rename(quad.object), rename(quad.graph_name))


Quads = tuple[Places, Places, Places, Places]
"""Numbers of subjects, predicates, objects and graphs; a graph below zero is the default one."""


def _read(placed_blocks: Iterable[tuple[int, bytes]], quads: bool, reading: Reading, refuse: Refuse) -> None:
    names = TermTable()
    parts = [_no_quads()]
    scanned: Iterable[Scanned] = (_scan(start, block, quads, refuse) for start, block in placed_blocks)
    if isinstance(reading.terms, TermsInTurn):
        # What takes long is done before others wait.
        scanned = list(scanned)
    for data, places, texts in scanned:
        parts.append(_number_terms(data, places, reading.terms, names))
        if texts:
            parts.append(_number_texts(texts, reading.terms, names))
    subjects, predicates, objects, graphs = (np.concatenate(column) for column in zip(*parts, strict=True))
    named = np.flatnonzero(graphs >= 0)
    for number, (s, o, g) in gather(predicates[named], subjects[named], objects[named], graphs[named]):
        reading.add_triples(names.text(number)[1:-1], s, o, g)
    if len(named):
        rest: Places = np.flatnonzero(graphs < 0)
        predicates, subjects, objects = predicates[rest], subjects[rest], objects[rest]
    for number, (s, o) in gather(predicates, subjects, objects):
        reading.add_triples(names.text(number)[1:-1], s, o)


def _scan(start: int, block: bytes, quads: bool, refuse: Refuse) -> Scanned:
    data = np.frombuffer(block, np.uint8)
    room = len(data) // _SHORTEST_TRIPLE + 1
    places = np.empty((8 if quads else 6, room), np.int64)
    others = np.empty((2, len(data) // 2 + 1), np.int64)
    rows, unclear = kernels.scan(data, quads, places, others)
    lines = [(start + low, block[low:high]) for low, high in others[:, :unclear].T.tolist()]
    return data, places[:, :rows].copy(), _look_closer(lines, quads, refuse) if unclear else []


def _no_quads() -> Quads:
    none = np.empty(0, np.int64)
    return none, none, none, none


def _number_terms(data: Bytes, places: Places, terms: Terms, names: TermTable) -> Quads:
    s, p, o, *more = places[0:2], places[2:4], places[4:6], places[6:8]
    graphs = np.full(places.shape[1], _DEFAULT)
    for low, high in (g for g in more if len(g)):
        named = np.flatnonzero(high > low)
        graphs[named] = terms.add(data, low[named], high[named])
    return terms.add(data, *s), names.add(data, *p), terms.add(data, *o), graphs


def _number_texts(texts: list[QuadText], terms: Terms, names: TermTable) -> Quads:
    s, p, o, g = zip(*texts, strict=True)
    graphs = np.full(len(texts), _DEFAULT)
    named = [i for i, text in enumerate(g) if text]
    graphs[named] = terms.add_texts([g[i] for i in named])
    return terms.add_texts(s), names.add_texts(p), terms.add_texts(o), graphs


def _look_closer(lines: list[tuple[int, bytes]], quads: bool, refuse: Refuse) -> list[QuadText]:
    """The triples of lines that are not plain, or are malformed."""
    try:
        return _parse(b"\n".join(line for _, line in lines), quads)
    except SyntaxError:
        pass
    found = []
    for place, line in lines:
        try:
            found += _parse(line, quads)
        except SyntaxError as error:
            refuse(place, _reason(error))
    return found


def _parse(lines: bytes, quads: bool) -> list[QuadText]:
    parsed = ox.parse(lines, format=ox.RdfFormat.N_QUADS if quads else ox.RdfFormat.N_TRIPLES)
    return [(str(t.subject), str(t.predicate), _object_text(t.object), _graph_text(t)) for t in parsed]


def _graph_text(quad: ox.Quad) -> str:
    return "" if isinstance(quad.graph_name, ox.DefaultGraph) else str(quad.graph_name)


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
