"""Files into chunks: pyoxigraph is the judge of RDF, the loader of the engine that of tables."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import re
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hdlog.errors import IntermediateTooLarge
from hdlog.program.model import GRAPH, Predicate, Program
from hdlog.program.ntriples import parse_term, quote, term_text
from hdlog.program.terms import RDF_TYPE, XSD_INTEGER
from hdlog.program.types import attribute_layout
from hdlog.reading import kernels
from hdlog.reading.files import Chunk, InputError, Split, find_splits, read_split, read_splits
from hdlog.reading.identifiers import inline_integer, integer_text
from hdlog.reading.objects import Collector
from hdlog.reading.shared_terms import SharedTerms
from hdlog.reading.splits import blocks
from hdlog.reading.term_table import TermTable
from hdlog.reading.values import value_text
from hdlog.text import examine

Rows = Counter[tuple[Any, ...]]
FORMATS = {"nt": ox.RdfFormat.N_TRIPLES, "nq": ox.RdfFormat.N_QUADS}
S, P = "<http://a.b/s>", "<http://a.b/p>"


def read(data: bytes | str, name: str = "f.nt", lenient: bool = False, **options: Any) -> Chunk:
    """The one chunk of a file with this content."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        (split,) = find_splits([path])
        return checked(read_split(replace(split, scope=""), lenient=lenient, **options))


def checked(chunk: Chunk) -> Chunk:
    """The chunk, if it keeps its promises."""
    texts = chunk.texts.to_pylist()
    chunk.texts.validate(full=True)
    assert len(set(texts)) == len(texts)
    assert all(term_text(parse_term(t)) == t for t in texts if not t.startswith("_:skolem."))
    assert not any(inline_integer(t) for t in texts)
    for predicate, columns in chunk.facts.items():
        assert len(columns) == predicate.arity
        assert len({len(c) for c in columns}) <= 1
        assert all(c.dtype == np.int64 and c.max() < len(texts) for c in columns)
    return chunk


def rows(*chunks: Chunk) -> Rows:
    """The facts of chunks with their texts, and how often each was read."""
    found: Rows = Counter()
    for chunk in chunks:
        texts = chunk.texts.to_pylist()
        for predicate, columns in chunk.facts.items():
            decoded = [[texts[i] if i >= 0 else integer_text(i) for i in c.tolist()] for c in columns]
            found.update((predicate, *row) for row in zip(*decoded, strict=True))
            if not columns:
                found[(predicate,)] += 1
    return found


def judged(data: bytes, format_: str = "nt") -> Rows | None:
    """The facts of a file by pyoxigraph, if it takes it, and it is of RDF 1.1."""
    try:
        triples = list(ox.parse(data, format=FORMATS[format_]))
    except SyntaxError:
        return None
    if any(isinstance(t.object, ox.Triple) or getattr(t.object, "direction", None) for t in triples):
        return None
    found: Rows = Counter()
    for quad in triples:
        s, p, o = value_text(quad.subject), quad.predicate.value, value_text(quad.object)
        has_graph = not isinstance(quad.graph_name, ox.DefaultGraph)
        graph = [value_text(quad.graph_name)] if has_graph else []
        name, row = (o[1:-1], [s]) if p == RDF_TYPE and o[0] == "<" else (p, [s, o])
        found[(Predicate(name + GRAPH * has_graph, len(row) + has_graph), *row, *graph)] += 1
    return found


def agree(line: bytes, format_: str = "nt") -> None:
    expected = judged(line, format_)
    if expected is None:
        with pytest.raises(InputError):
            read(line, f"f.{format_}")
        lenient = read(line, f"f.{format_}", lenient=True)
        assert lenient.skipped
    else:
        chunk = read(line, f"f.{format_}")
        assert rows(chunk) == expected
        assert chunk.rows == expected.total()


OBJECTS = r'''
<http://a.b/o> <a:> <http:> <http://> <http:///a> <urn:x:y> <mailto:x@y> <a+b-c.d:e> <http://a/%20%E9> <http://a?b/c#d/e?>
<http://h:80/> <http://h:/> <http://h:b/> <http://h:80x/> <http://u@h/> <http://u:p@h/> <http://a@b@c/> <http://[::1]/x> <http://[x]/>
<http://é.fr/> <http://é:b/> <http://%41/> <http://%41:b/> <http://a]b/> <a:é> <a:𝄞> <a:漢字> <a:%zz> <a:%4> <a:[> <a:b#c#d> <a:{> <a:|> <a:^> <a:`> <a:">
<a:\u00e9> <a:\U0001D11E> <a:\u0020> <a:\u003e> <a:\t> <a:\\> <a> </a> <> <:b> <1a:b> <a_b:c> <é:b> <a <<b:>> <a:b<c>
_:a _:a. _:a.b _:a..b _:1 _:_ _:-a _:a- _:a:b _::b _: _:é _:é· _:× _:a× _:skolem.61 _
"" "a" "é漢𝄞" "a\tb\n\r\"\\" "\b\f\'" "\u00e9\U0001F600" "\u0009\u0022\u005c\u000a" "\u0000" "\uD800" "\uD83D\uDE00" "\U00110000" "\u12" "\u00e" "\x" "a
"a"@en "a"@EN-gb "a"@en-Latn-GB "a"@sr-Latn "a"@es-419 "a"@en-x-foo "a"@zh-min-nan "a"@i-klingon "a"@simple "a"@abcdefghi "a"@a "a"@en- "a"@-en "a"@en--ltr "a"@en--GB
"a"@123 "a"@en-1 "a"@en-12 "a"@zz-zz-zz "a"@en. "a"@ "a"@e2 "a"@en-a1
"5"^^<http://www.w3.org/2001/XMLSchema#integer> "-5"^^<http://www.w3.org/2001/XMLSchema#integer> "\u0035"^^<http://www.w3.org/2001/XMLSchema#integer>
"05"^^<http://www.w3.org/2001/XMLSchema#integer> "-0"^^<http://www.w3.org/2001/XMLSchema#integer> "+5"^^<http://www.w3.org/2001/XMLSchema#integer>
"2305843009213693951"^^<http://www.w3.org/2001/XMLSchema#integer> "2305843009213693952"^^<http://www.w3.org/2001/XMLSchema#integer>
"-99999999999999999999"^^<http://www.w3.org/2001/XMLSchema#integer> ""^^<http://www.w3.org/2001/XMLSchema#integer> "x"^^<http://www.w3.org/2001/XMLSchema#integer>
"a"^^<http://www.w3.org/2001/XMLSchema#string> "a"^^<http://www.w3.org/2001/XMLSchema#strin\u0067> "\t"^^<http://www.w3.org/2001/XMLSchema#string>
"a"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> "a"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#HTML> "a"^^<b:c> "a"^^<b> "a"^^_:b "a"^<b:c> "a"^^
'a' a 5 true <<(<a:><b:><c:>)>> "a""b" """a"""
'''.split()  # noqa: SIM905  # fmt: skip


@pytest.mark.parametrize("term", OBJECTS)
def test_a_term_is_taken_or_refused_as_by_pyoxigraph(term: str) -> None:
    for line in (
        f"{S} {P} {term} .",
        f"{term} {P} {S} .\n",
        f"{S} {term} {S} .",
        f"{S} <{RDF_TYPE}> {term}.",
    ):
        agree(line.encode())
        agree(line.encode(), "nq")
    agree(f"{S} {P} {P} {term} .".encode(), "nq")


LINES = (
    f"{S}{P}<http://a/o>.",
    f'{S}\t{P}\t"a"\t.\t# comment',
    f"  {S} {P} {P} .#",
    f"{S} {P} {P} . {S} {P} {P} .",
    f"{S} {P} {P} .\r{S} {P} {S} .\r",
    f"{S} {P} {P} .\r\n\r\n# c\r\n{S} {P} {S} .\r\n",
    f"# c\r{S} {P} {P} .",
    f"{S} {P}\n{P} .",
    f"{S} {P} {P}\n.",
    f"{S} {P} {P}\r .",
    f'{S} {P} "a" @en .',
    f'{S} {P} "a"^^ <a:b> .',
    f'{S} {P} "a\tb\x08\x00\x7f\ufffe" .',
    f'{S} {P} "a\rb" .',
    f"_:a{P}_:b.",
    f"{S} {P} {P} . .",
    f"{S} {P} {P} ..",
    f"{S} {P} {P}",
    f"{S} {P} {P} {P} .",
    f"{S} {P} .",
    ".",
    "",
    "\n \t\n#\n",
    "#",
    "\x0b",
    f"\u00a0{S} {P} {P} .",
    '@prefix a: <http://a/> .\nVERSION "1.2"',
    "<<(<a:> <b:> <c:>)>> <b:> <c:> .",
    "_:_ <b:> _:_.",
)
BYTES = (b'<a:> <b:> "\xff" .', b"<a:> <b:> <c:> . # \xff", b"# \xff\n", b"\xc0\x80", b'<a:> <b:> "\xed\xa0\x80" .',
         b'<a:> <b:> "\xe0\x80\x80" .', b'<a:> <b:> "\xf4\x90\x80\x80" .', b'<a:> <b:> "\xc3', b"<a:\xff> <b:> <c:> .")  # fmt: skip


@pytest.mark.parametrize("line", [*(line.encode() for line in LINES), *BYTES])
def test_a_line_is_taken_or_refused_as_by_pyoxigraph(line: bytes) -> None:
    agree(line)
    agree(line, "nq")


PARTS = [t.encode() for t in OBJECTS] + [
    b" ",
    b"\t",
    b".",
    b"#",
    b"\r",
    b"\\",
    b'"',
    b"<",
    b">",
    b"@",
    b"\xc3",
    b"%",
    b":",
]


@st.composite
def mutated_lines(draw: st.DrawFn) -> bytes:
    """A triple of terms that may be malformed, with some bytes put in or taken out."""
    term = st.sampled_from(OBJECTS)
    line = bytearray(f"{draw(term)} {draw(term)} {draw(term)} .", "utf-8")
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(line)))
        line[at : at + draw(st.integers(0, 2))] = draw(st.sampled_from(PARTS) | st.just(b""))
    return bytes(line)


@given(mutated_lines())
def test_a_mutated_line_is_taken_or_refused_as_by_pyoxigraph(line: bytes) -> None:
    agree(line)
    agree(line, "nq")


@given(
    st.lists(mutated_lines() | st.sampled_from(LINES[:3]).map(str.encode), max_size=8), st.integers(1, 300)
)
def test_lenient_reading_of_pieces_keeps_every_line_that_is_fine(lines: list[bytes], size: int) -> None:
    assume(not any(b"\r" in line or b"\n" in line for line in lines))
    expected: Rows = Counter()
    bad = []
    for number, line in enumerate(lines, 1):
        found = judged(line)
        expected += found or Counter()
        bad += [number] if found is None else []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "f.nt"
        path.write_bytes(b"\n".join(lines))
        splits = [replace(s, scope="") for s in find_splits([path], size)]
        chunks = [checked(read_split(s, lenient=True)) for s in splits]
        assert rows(*chunks) == expected
        assert sum(c.skipped for c in chunks) == len(bad)
        told = [int(p.removeprefix(f"{path}:").split(":")[0]) for c in chunks for p in c.problems]
        assert told == bad


def test_at_most_ten_problems_are_told_of() -> None:
    chunk = read("x\n" * 25 + f"{S} {P} {P} .\n", lenient=True)
    assert (chunk.rows, chunk.skipped, len(chunk.problems)) == (1, 25, 10)
    assert chunk.problems[9].endswith("f.nt:10: The subject of a triple must be an IRI or a blank node")


def test_spellings_of_one_term_are_one_text() -> None:
    lines = (
        '"a\\u0062"',
        '"ab"',
        '"\\U00000061b"',
        '"ab"^^<http://www.w3.org/2001/XMLSchema#string>',
        '"ab"@EN-gb',
        '"ab"@en-GB',
    )
    chunk = read("".join(f"<a:\\u0062> <b:> {o} .\n<a:b> <b:> {o} .\n" for o in lines))
    assert sorted(chunk.texts.to_pylist()) == ['"ab"', '"ab"@en-gb', "<a:b>"]
    assert chunk.rows == 12


def test_a_split_in_the_middle_knows_its_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "f.nt"
    path.write_text(f"{S} {P} {P} .\n" * 500 + f"{S} {P} 5 .\n" + f"{S} {P} {P} .\n" * 500)
    splits = find_splits([path], 1000)
    assert len(splits) > 30
    failed = []
    for split in splits:
        try:
            read_split(split)
        except InputError as error:
            failed.append(str(error))
    assert failed == [f"{path}:501: The object of a triple must be an IRI, a blank node or a literal"]


@given(
    st.lists(st.binary(max_size=5).filter(lambda b: b"\n" not in b), max_size=12),
    st.integers(1, 20),
    st.integers(1, 9),
)
def test_every_line_is_in_the_one_split_it_begins_in(lines: list[bytes], size: int, block: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "f.nt"
        data = b"\n".join(lines)
        path.write_bytes(data)
        found = [b for split in find_splits([path], size) for b in blocks(split, block)]
    assert b"".join(text for _, text in found) == data
    assert all(data[at : at + len(text)] == text for at, text in found)
    assert all(text.endswith(b"\n") for _, text in found[:-1])


# Turtle and RDF/XML.


def test_turtle_and_rdf_xml_are_read_like_the_same_triples(tmp_path: Path) -> None:
    turtle = '@prefix : <http://a/> . :a a :C ; :p 1, 01, 1.5, "é\\t\x01"@EN, "x" ; :q [ a [] ; :r :a ] .'
    data = ox.serialize(ox.parse(turtle.encode(), format=ox.RdfFormat.TURTLE), format=ox.RdfFormat.RDF_XML)
    for chunk, bad in ((read(turtle, "f.ttl"), 1), (read(data or b"", "f.rdf"), 1)):
        names = {(p.name, p.arity): len(c[0]) for p, c in chunk.facts.items()}
        assert names == {
            ("http://a/C", 1): 1,
            ("http://a/p", 2): 5,
            ("http://a/q", 2): bad,
            (RDF_TYPE, 2): 1,
            ("http://a/r", 2): 1,
        }
        assert {'"é\\t\x01"@en', f'"01"^^<{XSD_INTEGER}>'} <= set(chunk.texts.to_pylist())


def test_documents_are_refused_as_a_whole() -> None:
    for lenient, note in ((False, ""), (True, "; Turtle cannot be skipped line by line")):
        with pytest.raises(InputError, match=rf"f\.ttl:2: No scheme found in an absolute IRI{note}$"):
            read("<a:b> <b:c> 1 .\n<x> <y:> 2 .", "f.ttl", lenient)
        with pytest.raises(InputError, match=rf"a triple term \(RDF 1\.2\) cannot be part of a fact{note}$"):
            read("<a:b> <b:c> <<(<a:> <b:> <c:>)>> .", "f.ttl", lenient)
    with pytest.raises(InputError, match=r"f\.rdf:"):
        read("<rdf:RDF>", "f.rdf")


# Files.


def test_folders_patterns_and_compressed_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    line = f"{S} {P} {P} .\n".encode()
    (tmp_path / "a.nt").write_bytes(line)
    (tmp_path / "notes.txt").write_bytes(b"no facts")
    (tmp_path / "deep" / "b.nt.gz").write_bytes(gzip.compress(line) + gzip.compress(line))
    with pa.CompressedOutputStream(tmp_path / "deep" / "er" / "c.nt.zst", "zstd") as out:
        out.write(line * 3)
    splits = find_splits([tmp_path])
    assert [Path(s.path).name for s in splits] == ["a.nt", "b.nt.gz", "c.nt.zst"]
    assert [read_split(s).rows for s in splits] == [1, 2, 3]
    assert find_splits([f"{tmp_path}/**/*.nt*", tmp_path / "a.nt"]) == splits
    assert find_splits([str(tmp_path / "*")]) == splits[:1]


def test_an_error_in_a_compressed_file_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "f.nt.gz"
    path.write_bytes(gzip.compress(f"{S} {P} {P} .\n".encode() * 200_000 + b"x\n"))
    with pytest.raises(InputError, match=r"f\.nt\.gz:200001: "):
        read_split(Split(str(path), "nt"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.nt", "none.nt: no such file or folder"),
        ("f.txt", "f.txt: unknown ending '.txt'; known: .nt, "),
        ("*.ttl", "*.ttl: no file with a known ending here; known: .nt, "),
        ("empty", "empty: no file with a known ending here"),
    ],
)
def test_inputs_that_are_not_there_are_errors(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "f.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as raised:
        find_splits([tmp_path / name])
    assert message in str(raised.value)


def test_files_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    lines = b"".join(b"<a:%d> <b:> <c:> .\n" % (i * i) for i in range(10_000))
    for name, data in (("f.nt.gz", gzip.compress(lines)[:-500]), ("f.nt.zst", b"x"), ("f.parquet", b"x")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError, match=name):
            read_split(Split(str(tmp_path / name), name.split(".")[1]))
    with pytest.raises(InputError, match=r"gone\.nt: No such file or directory"):
        read_split(Split(str(tmp_path / "gone.nt"), "nt"))


def test_an_empty_file_has_no_facts() -> None:
    for name in ("f.nt", "f.nq", "f.ttl", "f.csv", "f.tsv", "f.facts", "f.jsonl"):
        chunk = read("", name)
        assert (chunk.rows, len(chunk.texts), chunk.facts) == (0, 0, {})


# Tables.

DECLARATIONS = """
.decl n(x: number, y: unsigned)
.decl f(x: float)
.decl s(x: symbol, y: symbol)
.decl one(x: symbol)
.decl z()
"""
PROGRAM = examine(DECLARATIONS, "souffle").program
LAYOUT = attribute_layout(PROGRAM)
XSD = "http://www.w3.org/2001/XMLSchema#"


def loaded(path: Path) -> Rows:
    """The facts of a file by Python's own readers, and a twin of what is said of written values."""
    name = path.name.split(".")[0]
    declared = LAYOUT.get(name)
    if declared == ():
        return Counter({(Predicate(name, 0),): 1})
    with path.open(newline="", encoding="utf-8-sig") as file:
        if path.suffix == ".csv":
            lines = [row for row in csv.reader(file) if row]
        else:
            text = file.read()
            texts = [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]
            single = declared is not None and len(declared) == 1
            lines = [line.split("\t") for line in texts if line or single]
    body = lines[1:] if path.suffix in (".csv", ".tsv") else lines
    types = [a.type for a in declared] if declared is not None else [""] * len(body[0])
    return Counter((Predicate(name, len(types)), *map(written_text, row, types)) for row in body)


def written_text(value: str, type_: str) -> str:
    if type_ == "symbol":
        return value_text(value)
    if type_ in ("number", "unsigned"):
        return value_text(int(value, 16 if "x" in value else 2 if "b" in value else 10))
    if type_ == "float":
        return value_text(float(value))
    if re.fullmatch("0|-?[1-9][0-9]*", value):
        return value_text(int(value))
    if re.fullmatch(r"-?(0|[1-9][0-9]*)(?=[.eE])(\.[0-9]+)?([eE][-+]?[0-9]+)?", value):
        return value_text(float(value))
    if value in ("true", "false"):
        return value_text(value == "true")
    if re.fullmatch(r"<[A-Za-z][A-Za-z0-9+.-]*:[^<>\s\"{}|^`\\]*>", value):
        return value
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
            return value_text(date.fromisoformat(value))
        if re.fullmatch(r"\d{4}-\d\d-\d\dT.*", value, re.ASCII):
            datetime.fromisoformat(value)
            return f'"{value}"^^<{XSD}dateTime>'
    except ValueError:
        pass
    return value_text(value)


TABLES = {
    "any.csv": 'a,b\n1,x\n-5,"q,""r"\n007,<http://a/b>\n-0,"two\nlines"\n99999999999999999999,\n999999999999999999,-999999999999999999\n'
    "1.5,-2e10\ntrue,True\n2024-02-29,2023-02-29\n2024-02-29T12:30:00Z,2024-02-29T25:30:00Z\n<b>hi</b>,<a b>\n9223372036854775808,1.\n"
    ".5,1e5\n-9223372036854775809,2305843009213693952\n",
    "plain.facts": "1\tx\n-5\tq\"r\\\n\n007\t<http://a/b>\n",
    "marked.facts": "\ufeff1\tx\n",
    "head.tsv": "a\tb\r\n1\tx\r\n",
    "n.facts": "1\t2\n-5\t007\n+3\t0x1F\n9223372036854775807\t2305843009213693951\n-0b101\t0\n",
    "f.facts": "1\n-2.50\nnan\n1e400\n-inf\n0.1\n",
    "s.facts": '1\t<a:b>\n\ta\\b"c\n',
    "one.facts": "a\n\nb\n",
    "s.csv": 'p,q\n"a\tb","é\r\n"\n',
    "z.facts": "()\n",
    "some.csv": "x\n1\n\n2\n",
    "end.csv": "x,y\n1,2",
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_read_as_its_twin_reads_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(TABLES[name].encode())
    found = rows(read(TABLES[name].encode(), name, layout=LAYOUT))
    assert found == loaded(path)
    assert found


@given(
    st.lists(st.tuples(*[st.text('0123456789-<>:"\\ax é', max_size=4)] * 2), min_size=1, max_size=20),
    st.integers(1, 40),
)
@example([("x", "1"), ("", "")], 3)
def test_cut_tables_are_read_as_whole_ones(given_rows: list[tuple[str, str]], size: int) -> None:
    assume("".join(a + b for a, b in given_rows).strip())  # the engine takes a file of blanks for empty
    with TemporaryDirectory() as folder:
        path = Path(folder) / "edge.facts"
        path.write_text("".join(f"{a}\t{b}\n" for a, b in given_rows))
        chunks = [checked(read_split(s)) for s in find_splits([path], size)]
        assert set(rows(*chunks)) == set(loaded(path))
        assert sum(c.rows for c in chunks) == len(given_rows)


def test_the_header_is_in_the_first_split_only(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("a\tb\n" + "".join(f"{i}\t{i}\n" for i in range(1000)))
    splits = find_splits([path], 500)
    assert len(splits) > 10
    assert sum(read_split(s).rows for s in splits) == 1000


BAD_TABLES: Sequence[tuple[str, str, Sequence[str]]] = [
    ("n.facts", "1\t2\n\n1\tx\n3\n4\t5\n6\t7\t8\n", ["3: 'x' is not a unsigned", "4: 1 columns, not 2 as before", "6: 3 columns, not 2 as before"]),
    ("s.csv", 'a,b\n"x\n\ny",z\nu\n1,2\n', ["5: 1 columns, not 2 as before"]),
    ("n.csv", 'a,b\n1,"2\n"\nx,1\n\n1,y\n7,8\n9,"1"\n', ["2: '2\\n' is not a unsigned", "4: 'x' is not a number", "6: 'y' is not a unsigned"]),
    ("f.facts", "1\n\nx\n2\n", ["2: '' is not a float", "3: 'x' is not a float"]),
    ("n.facts", "1\t2\n 3\t1_0\n1.0\t-1\n3\t4\n", ["2: ' 3' is not a number", "3: '1.0' is not a number"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "problems"), BAD_TABLES)
def test_bad_rows_have_their_lines(name: str, text: str, problems: Sequence[str]) -> None:
    with pytest.raises(InputError) as raised:
        read(text, name, layout=LAYOUT)
    assert str(raised.value).endswith(f"{name}:{problems[0]}")
    chunk = read(text, name, lenient=True, layout=LAYOUT)
    assert [p.split(f"{name}:")[1] for p in chunk.problems] == problems
    assert (chunk.rows, chunk.skipped) == (2, len(problems))


def test_a_row_that_is_not_utf_8_is_a_bad_row() -> None:
    chunk = read(b"a\tb\n\xff\tc\n1\t2\n", "t.facts", lenient=True)
    assert (chunk.rows, [p.split("facts:")[1] for p in chunk.problems]) == (2, ["2: column 1 is not UTF-8"])


def test_a_table_with_other_columns_than_declared_is_refused() -> None:
    for lenient in (False, True):
        with pytest.raises(InputError, match=r"s\.facts:1: 3 columns, but s has 2 attributes"):
            read("a\tb\tc\n", "s.facts", lenient, layout=LAYOUT)


def test_a_split_says_name_delimiter_and_header(tmp_path: Path) -> None:
    path = tmp_path / "x.data"
    path.write_text("a;b\n1;2\n")
    found = rows(read_split(Split(str(path), "facts", name="edge", delimiter=";", header=True)))
    assert found == {(Predicate("edge", 2), integer_text_of(1), integer_text_of(2)): 1}
    with pytest.raises(InputError, match="a delimiter is one character of ASCII, not '::'"):
        read_split(Split(str(path), "facts", delimiter="::"))


def integer_text_of(value: int) -> str:
    return value_text(value)


def test_parquet_is_read_as_the_same_table_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    columns: dict[str, Any] = {
        "i": pa.array([1, -2, 1 << 61, -(1 << 63)]),
        "f": pa.array([0.5, 1e300, -0.0, float("inf")]),
        "b": pa.array([True, False, True, True]),
        "s": pa.array(["5", "<a:b>", 'x"\n', ""]),
        "d": pa.array(["u", "v", "u", "w"]).dictionary_encode(),
        "l": pa.array(["a", "b", "a", "c"], pa.large_string()),
        "u": pa.array([1, 2, 3, (1 << 61) + 1], pa.uint64()),
        "e": pa.array([Decimal("1.50"), Decimal("2"), Decimal("-0.25"), Decimal("100")], pa.decimal128(9, 2)),
        "t": pa.array([date(2024, 2, 29)] * 4),
        "m": pa.array([datetime(2024, 2, 29, 1, 2, 3, 450_000)] * 4),
        "z": pa.array([datetime(2024, 2, 29, tzinfo=UTC)] * 4),
    }
    pq.write_table(pa.table(columns), path, row_group_size=1)
    splits = find_splits([path], 1)
    assert [(s.start, s.end) for s in splits] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert find_splits([path]) == [Split(str(path), "parquet", 0, 4)]
    whole = rows(checked(read_split(Split(str(path), "parquet"))))
    assert whole == rows(*(checked(read_split(s)) for s in splits))
    expected = zip(*(map(value_text, c.to_pylist()) for c in columns.values()), strict=True)
    assert whole == Counter((Predicate("t", len(columns)), *row) for row in expected)
    collector = Collector(Program(), lambda *_: [])
    collector.take({"t": pa.table(columns)})
    assert rows(*collector.chunks()) == whole
    assert {t for row in whole for t in row[8:]} >= {
        f'"1.5"^^<{XSD}decimal>',
        f'"2024-02-29"^^<{XSD}date>',
        f'"2024-02-29T01:02:03.45"^^<{XSD}dateTime>',
        f'"2024-02-29T00:00:00Z"^^<{XSD}dateTime>',
    }


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_strings_are_strings_however_they_are_stored(tmp_path: Path, kind: pa.DataType) -> None:
    pq.write_table(pa.table({"x": pa.array(["7", "<a:b>", "c", "7"]).cast(kind)}), tmp_path / "t.parquet")
    expected = Counter((Predicate("t", 1), value_text(value)) for value in ("7", "<a:b>", "c", "7"))
    assert rows(checked(read_split(Split(str(tmp_path / "t.parquet"), "parquet")))) == expected


@pytest.mark.parametrize("value", [b"x", [1], {"a": 1}])
def test_values_that_no_fact_can_have_are_refused(tmp_path: Path, value: Any) -> None:
    pq.write_table(pa.table({"x": [value]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t\.parquet:1: .* is not a value a fact can have"):
        read_split(Split(str(tmp_path / "t.parquet"), "parquet"))


def test_a_folder_of_parts_is_one_table(tmp_path: Path) -> None:
    for folder, mark in (("edge", "_SUCCESS"), ("likes.parquet", "")):
        (tmp_path / folder).mkdir()
        for part in ("part-00000-x.parquet", "part-00001-x.parquet"):
            pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / folder / part)
        if mark:
            (tmp_path / folder / mark).write_text("")
    found = rows(*(read_split(s) for s in find_splits([tmp_path])))
    assert {row[0].name for row in found} == {"edge", "likes"}


def test_columns_in_the_names_of_folders(tmp_path: Path) -> None:
    for value, name in ((1, "a%20b"), (2, "c")):
        folder = tmp_path / "visit" / f"day={value}" / f"place={name}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"who": [f"p{value}"]}), folder / "part-00000-x.parquet")
    found = rows(*(read_split(s) for s in find_splits([tmp_path])))
    visit = Predicate("visit", 3)
    assert found == {(visit, '"p1"', value_text(1), '"a b"'): 1, (visit, '"p2"', value_text(2), '"c"'): 1}
    layout = attribute_layout(
        examine(".decl visit(day: number, who: symbol, place: symbol)", "souffle").program
    )
    named = rows(*(read_split(s, layout=layout) for s in find_splits([tmp_path])))
    assert (visit, value_text(1), '"p1"', '"a b"') in named
    odd = tmp_path / "visit" / "day=__HIVE_DEFAULT_PARTITION__" / "place=x"
    odd.mkdir(parents=True)
    pq.write_table(pa.table({"who": ["p"]}), odd / "part-00000-x.parquet")
    with pytest.raises(InputError, match="no value in column day"):
        find_splits([tmp_path])


def test_columns_follow_declared_names() -> None:
    layout = attribute_layout(examine(".decl edge(x: number, y: number)", "souffle").program)
    expected = {(Predicate("edge", 2), value_text(70), value_text(71)): 1}
    assert rows(read('{"y": 71, "x": 70}\n', "edge.jsonl", layout=layout)) == expected
    assert rows(read("y,x\n71,70\n", "edge.csv", layout=layout)) == expected
    assert rows(read("a,b\n70,71\n", "edge.csv", layout=layout)) == expected
    with pytest.raises(InputError, match="the columns are y, z, those of edge are x, y"):
        read("y,z\n71,70\n", "edge.csv", layout=layout)


def test_the_first_line_of_a_csv_file_has_names() -> None:
    with pytest.raises(InputError, match=r"edge\.csv:1: there are tabs between the values"):
        read("1\t2\n3\t4\n", "edge.csv")
    with pytest.raises(InputError, match=r"edge\.csv:1: the first line .* '1' is a number"):
        read("1,2\n3,4\n", "edge.csv")


def test_blank_nodes_are_those_of_their_file(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("_:x <b:p> _:x .\n_:b.0123456789.y <b:p> _:skolem.1-66.t22 .\n")
    (tmp_path / "b.nt").write_text("_:x <b:p> _:x .\n")
    (tmp_path / "c.ttl").write_text("[] <b:p> [ <b:p> [] ] . _:x <b:p> [] .")
    found = [read_split(s) for s in find_splits([tmp_path])]
    nodes = [{t for t in chunk.texts.to_pylist() if t.startswith("_:")} for chunk in found]
    assert not nodes[0] & nodes[1]
    assert {"_:b.0123456789.y", "_:skolem.1-66.t22"} < nodes[0]
    assert len(nodes[2]) == 5
    again = [read_split(s) for s in find_splits([tmp_path])]
    assert [chunk.texts for chunk in again] == [chunk.texts for chunk in found]
    (tmp_path / "a.nt.gz").write_bytes(gzip.compress((tmp_path / "a.nt").read_bytes()))
    (packed,) = find_splits([tmp_path / "a.nt.gz"])
    assert read_split(packed).texts == found[0].texts
    os.mkfifo(tmp_path / "pipe.nt")
    writer = threading.Thread(
        target=(tmp_path / "pipe.nt").write_bytes, args=((tmp_path / "a.nt").read_bytes(),)
    )
    writer.start()
    (piped,) = find_splits([tmp_path / "pipe.nt"])
    writer.join()
    assert read_split(piped).texts == found[0].texts


@pytest.mark.parametrize(
    ("text", "values", "line"),
    [
        ('x,y\n1,5" pipe\n2,b\n', ['5" pipe', "b"], 0),
        ('x,y\n1,"open\n2,b\n', ["b"], 2),
        ('x,y\n1,a\n2,"open\n', ["a"], 3),
        ('x,y\n1,"two\nlines"\n2,"a ""q"" b"\n', ["two\nlines", 'a "q" b'], 0),
        ('x,y\n1,"a"b"\n2,""\n', ['ab"', ""], 0),
    ],
)
def test_a_quote_opens_a_value_only_at_its_beginning(text: str, values: list[str], line: int) -> None:
    chunk = read(text, "f.csv", lenient=True)
    assert sorted(t for t in chunk.texts.to_pylist()) == sorted(map(quote, values))
    assert [p.rsplit("/")[-1] for p in chunk.problems] == (
        [f"f.csv:{line}: a quote that is not closed"] if line else []
    )
    if line:
        with pytest.raises(InputError, match=f":{line}: a quote that is not closed"):
            read(text, "f.csv")


def test_records_with_quotes_are_found_as_by_the_csv_module() -> None:
    chance = random.Random(4)
    for _ in range(300):
        text = "".join(chance.choice('ab,"\n') for _ in range(chance.randrange(12)))
        data = np.frombuffer(text.encode(), np.uint8)
        starts = np.empty(len(text) + 2, np.int64)
        count = kernels.find_records(data, ord(","), starts)
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=False))
        assert count == len(rows)


def test_a_label_is_not_taken_for_a_node_without_one() -> None:
    """Whatever names nodes without labels get, no label in the file is one of them."""
    names = ["anonymous.0", "_anonymous.0", "anonymous.1", "b0"]
    text = "".join(f"_:{name} <u:p> [ <u:q> _:{name} ] .\n" for name in names)
    chunk = read(text, "f.ttl")
    nodes = {t for t in chunk.texts.to_pylist() if t.startswith("_:")}
    assert len(nodes) == 2 * len(names)


def test_one_column_of_several_is_chosen(tmp_path: Path) -> None:
    (tmp_path / "p.facts").write_text("1\ta\n2\tb\n")
    program = examine('.decl p(x: symbol)\n.input p(columns="1")', "souffle").program
    chunk = read_split(
        Split(str(tmp_path / "p.facts"), "facts", name="p", souffle=True, columns=(1,)),
        attribute_layout(program),
    )
    assert chunk.texts.to_pylist() == ['"a"', '"b"']


def test_missing_values_of_parquet_have_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1, 2, None, 4], "b": ["x", "y", "z", None]}), path, row_group_size=2)
    _, second = find_splits([path], 1)
    with pytest.raises(InputError, match=r"t\.parquet:3: no value in column 1"):
        read_split(second)
    chunk = read_split(second, lenient=True)
    assert (chunk.rows, chunk.skipped) == (0, 2)
    assert chunk.problems[1] == f"{path}:4: no value in column 2"


# JSON lines.


def test_objects_that_name_their_predicate_are_facts() -> None:
    lines = ('{"predicate": "p", "args": [1, "x", true]}', '{"args": [1.0, "<a:b>", -0.0], "predicate": "p"}',
             '{"predicate": "q", "args": []}', '{"predicate": "p", "args": [0.0]}')  # fmt: skip
    assert rows(read("\n".join(lines), "f.jsonl")) == {
        (Predicate("p", 3), *map(value_text, (1, "x", True))): 1,
        (Predicate("p", 3), *map(value_text, (1.0, "<a:b>", -0.0))): 1,
        (Predicate("q", 0),): 1,
        (Predicate("p", 1), value_text(0.0)): 1,
    }


def test_objects_of_the_same_keys_are_rows_in_the_order_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "edge.jsonl"
    path.write_text(
        "".join(json.dumps({"a": i, "b": "x"} if i == 0 else {"b": "x", "a": i}) + "\n" for i in range(50))
    )
    chunks = [checked(read_split(s)) for s in find_splits([path], 100)]
    assert len(chunks) > 5
    assert rows(*chunks) == {(Predicate("edge", 2), value_text(i), '"x"'): 1 for i in range(50)}


def test_bad_objects_have_their_lines() -> None:
    lines = ('{"a": 1, "b": 2}', "", '{"a": 1}', '{"a": null, "b": 1}', "[1]", "{", '{"a": [1], "b": 1}', '{"b": 4, "a": 3}',
             '{"a": "\\ud800", "b": 1}', '{"predicate": 1, "args": []}', '{"predicate": "p", "args": [7]}')  # fmt: skip
    with pytest.raises(InputError, match=r"f\.jsonl:3: the keys are a, not a, b, as in the first object"):
        read("\n".join(lines), "f.jsonl")
    chunk = read("\n".join(lines), "f.jsonl", lenient=True)
    assert [int(p.split("jsonl:")[1].split(":")[0]) for p in chunk.problems] == [3, 4, 5, 6, 7, 10, 9]
    assert "null is not a value a fact can have" in chunk.problems[1]
    assert set(rows(chunk)) == {
        (Predicate("f", 2), value_text(1), value_text(2)),
        (Predicate("f", 2), value_text(3), value_text(4)),
        (Predicate("p", 1), value_text(7)),
    }


def test_values_of_objects_become_what_their_types_say() -> None:
    lines = '{"predicate": "n", "args": [1, 2]}\n{"predicate": "f", "args": [1]}\n{"predicate": "s", "args": ["1", "2"]}\n'
    assert set(rows(read(lines, "x.jsonl", layout=LAYOUT))) == {
        (Predicate("n", 2), value_text(1), value_text(2)),
        (Predicate("f", 1), value_text(1.0)),
        (Predicate("s", 2), '"1"', '"2"'),
    }
    for bad in (
        '{"predicate": "n", "args": ["1", 2]}',
        '{"predicate": "n", "args": [1, -2]}',
        '{"predicate": "s", "args": ["1", 2]}',
        '{"predicate": "n", "args": [2]}',
    ):
        with pytest.raises(InputError, match=r"x\.jsonl:2: "):
            read('{"predicate": "n", "args": [1, 2]}\n' + bad, "x.jsonl", layout=LAYOUT)


# The kernels and their twins.

TEXT = st.text('aé\\"\n\t\u0001𝄞', max_size=6)
TERMS = (
    st.integers(-20, 20).map(value_text)
    | TEXT.map(quote)
    | st.tuples(TEXT, st.sampled_from(["en", "EN-gb"])).map(lambda t: f"{quote(t[0])}@{t[1]}")
    | st.tuples(TEXT, st.sampled_from(["string", "integer", "date"])).map(
        lambda t: f"{quote(t[0])}^^<http://www.w3.org/2001/XMLSchema#{t[1]}>"
    )
    | st.text("abc", max_size=30).map(lambda t: f"<a:{t}>")
    | st.text("abc", min_size=1, max_size=9).map(lambda t: f"_:{t}")
)


def test_splits_are_read_at_once_and_come_in_order(tmp_path: Path) -> None:
    path = tmp_path / "many.nt"
    path.write_text("".join(f"<http://e/{n}> <http://e/p> <http://e/{n % 7}> .\n" for n in range(5000)))
    splits = find_splits([path], 1000)
    together = [chunk.texts.to_pylist() for chunk in read_splits(splits)]
    assert together == [read_split(split).texts.to_pylist() for split in splits]
    assert len(together) > 100


def test_a_fault_ends_the_reading_of_all_splits(tmp_path: Path) -> None:
    path = tmp_path / "many.nt"
    lines = [f"<http://e/{n}> <http://e/p> <http://e/{n % 7}> .\n" for n in range(5000)]
    path.write_text("".join([*lines[:2000], "nonsense\n", *lines[2000:]]))
    with pytest.raises(InputError, match=r"many\.nt:2001: "):
        list(read_splits(find_splits([path], 1000)))
    assert not [t for t in threading.enumerate() if t.name.startswith("hdlog-reading")]


def canonical(text: str) -> str:
    return term_text(parse_term(text))


@given(st.lists(st.lists(TERMS, max_size=40), max_size=4))
def test_a_table_of_terms_is_a_dictionary_of_canonical_texts(parts: list[list[str]]) -> None:
    table, expected = TermTable(), dict[str, int]()
    for part in parts:
        for text, found in zip(part, table.add_texts(part).tolist(), strict=True):
            inline = inline_integer(canonical(text))
            assert found == (
                inline if inline is not None else expected.setdefault(canonical(text), len(expected))
            )
    assert table.texts().to_pylist() == list(expected)


@given(
    st.lists(st.lists(TERMS | st.text('ab\\"\t\n\ré ', max_size=20).map(quote), max_size=40), max_size=4),
    st.data(),
)
def test_strings_are_interned_as_their_literals_are(parts: list[list[str]], data: st.DataObject) -> None:
    table, expected = TermTable(), TermTable()
    for part in parts:
        strings = data.draw(st.lists(st.text('ab\\"\t\n\ré ', max_size=20), max_size=20))
        assert table.add_texts(part).tolist() == expected.add_texts(part).tolist()
        ids = table.add_strings(pa.array(strings, pa.string())).tolist()
        assert ids == expected.add_texts([quote(text) for text in strings]).tolist()
    assert table.texts().to_pylist() == expected.texts().to_pylist()


def test_a_table_of_terms_grows() -> None:
    table = TermTable()
    texts = [f"<http://example.org/{i * 'x' if i < 3000 else i}>" for i in range(20_000)]
    for _ in range(2):
        assert table.add_texts(texts).tolist() == list(range(20_000))
    assert table.texts().to_pylist() == texts


def _share_terms(splits: Sequence[Split]) -> tuple[list[str], list[dict[Predicate, list[list[int]]]]]:
    """The texts of a shared table, and the facts of each chunk."""
    table = TermTable()
    chunks = list(read_splits(splits, shared=SharedTerms(table, threading.RLock())))
    return table.texts().to_pylist(), [
        {p: [c.tolist() for c in cs] for p, cs in k.facts.items()} for k in chunks
    ]


def test_a_shared_table_has_the_same_numbers_whoever_is_faster(tmp_path: Path) -> None:
    for n in range(6):
        rows = (f"{n}\t{random.Random(i + n).randrange(900)} x\t{i}\n" for i in range(4000))
        (tmp_path / f"t{n}.facts").write_text("".join(rows))
    splits = find_splits([tmp_path], 5000)
    assert len(splits) > 50
    first = _share_terms(splits)
    assert all(_share_terms(splits) == first for _ in range(5))
    apart = [(c.texts.to_pylist(), c.facts) for c in read_splits(splits)]
    texts, chunks = first
    assert len(set(texts)) == len(texts)
    for (own, facts), shared in zip(apart, chunks, strict=True):
        for predicate, columns in facts.items():
            for ours, theirs in zip(shared[predicate], columns, strict=True):
                assert [texts[n] if n >= 0 else n for n in ours] == [
                    own[n] if n >= 0 else n for n in theirs.tolist()
                ]


def test_splits_do_not_wait_for_one_that_failed(tmp_path: Path) -> None:
    for n in range(6):
        (tmp_path / f"t{n}.nt").write_text("broken\n" if n == 2 else f"_:a <http://p> <http://{n}> .\n" * 300)
    with pytest.raises(InputError, match=r"t2\.nt:1"):
        _share_terms(find_splits([tmp_path], 1000))


@given(
    st.lists(st.integers(-30, 30).map(str) | st.text("0123456789-+ ", max_size=22)), st.sampled_from([18, 19])
)
def test_integers_finds_shortest_forms(texts: list[str], digits: int) -> None:
    array = "".join(texts).encode()
    offsets = np.cumsum([0, *map(len, texts)])
    found = kernels.integers(np.frombuffer(array, np.uint8), offsets[:-1], offsets[1:], digits).tolist()
    for text, identifier in zip(texts, found, strict=True):
        fits = len(text.lstrip("-")) <= digits and not text.startswith("--")
        expected = inline_integer(f'"{text}"^^<{XSD_INTEGER}>') if fits else None
        assert identifier == (expected or 0)


@given(st.lists(st.text("ab\t\n\r\u00e9", max_size=12)), st.integers(1, 3), st.booleans())
def test_fields_are_found_where_lines_and_delimiters_end(lines: list[str], width: int, empty: bool) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    count = data.count(b"\n")
    begins, ends = np.zeros((width, count), np.int64), np.zeros((width, count), np.int64)
    ragged = np.zeros((2, 3), np.int64)
    delimiter = ord("\t") if width > 1 else ord("\n")
    good, bad = kernels.find_fields(np.frombuffer(data, np.uint8), delimiter, empty, begins, ends, ragged)
    texts = [line.removesuffix(b"\r") for line in data.split(b"\n")[:-1]]
    rows = [text.split(b"\t") if width > 1 else [text] for text in texts if text or empty]
    found = [[data[a:b] for a, b in zip(begins[:, n], ends[:, n], strict=True)] for n in range(good)]
    assert found == [row for row in rows if len(row) == width]
    others = [[n, len(row)] for n, row in enumerate(rows) if len(row) != width]
    assert ragged[:, : min(bad, 3)].T.tolist() == others[:3]
    assert bad == len(others)


def scanned(data: bytes) -> Iterator[list[bytes]]:
    found, others = np.empty((6, len(data)), np.int64), np.empty((2, len(data)), np.int64)
    triples, _ = kernels.scan(np.frombuffer(data, np.uint8), False, found, others)
    for a, b, c, d, e, f in found[:, :triples].T.tolist():
        yield [data[a:b], data[c:d], data[e:f]]


@given(st.lists(mutated_lines(), max_size=5).map(b"\n".join))
def test_scan_finds_only_terms_that_pyoxigraph_finds(data: bytes) -> None:
    for terms in scanned(data):
        (triple,) = ox.parse(b" ".join([*terms, b"."]), format=ox.RdfFormat.N_TRIPLES)
        own = [canonical(t.decode()) for t in terms]
        assert own == [value_text(triple.subject), value_text(triple.predicate), value_text(triple.object)]


def test_reading_stops_where_the_memory_ends(tmp_path: Path) -> None:
    (tmp_path / "big.csv").write_text("a,b\n" + "".join(f"text {i},{i}\n" for i in range(100_000)))
    (split,) = find_splits([tmp_path / "big.csv"], memory=1_000_000)
    with pytest.raises(
        IntermediateTooLarge, match=r"what is read of .*big.csv, so far a table of 100,000 rows"
    ):
        read_split(split)
    (roomy,) = find_splits([tmp_path / "big.csv"], memory=1 << 40)
    assert read_split(roomy).rows == 100_000
