"""What bad input gets: a case for each row of the table in docs/reliability.md, through the command line, with a store beside it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import re
import shutil
import sys
import zlib
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdlog.commands.main import main
from hdlog.errors import InputError
from hdlog.program.model import Program
from hdlog.reading.changes import read_changes

DOCS = Path(__file__).parents[2] / "docs" / "reliability.md"
RULES = "link[?x, ?y] :- edge[?x, ?y] ."
TRIPLE = "<http://e/{}> <http://e/p> <http://e/o> .\n"


@dataclass(frozen=True)
class Run:
    exit_code: int
    output: str


def hdlog(*arguments: str | Path) -> Run:
    """A command, in this process; an error that no user can cause comes through."""
    said = io.StringIO()
    before, sys.argv = sys.argv, ["hdlog", *map(str, arguments)]
    try:
        with redirect_stdout(said), redirect_stderr(said):
            main()
    except SystemExit as end:
        return Run(int(end.code or 0), said.getvalue())
    finally:
        sys.argv = before
    raise AssertionError("a command ends with a code")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "rules.dlog").write_text(RULES)
    (folder / "edge.facts").write_text("1\t2\n2\t3\n")
    run = hdlog("materialise", folder / "rules.dlog", folder / "edge.facts", "--store", folder / "store")
    assert run.exit_code == 0, run.output
    return folder / "store"


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "store"))


@dataclass(frozen=True)
class Given:
    """A file, and what becomes of it."""

    row: str
    """of the table in the documentation"""
    name: str
    content: bytes | Callable[[Path], None]
    told: str = ""
    """a regular expression of what is told; nothing where it is read"""
    code: int = 7
    facts: int = 0
    """how many more there are then"""
    options: tuple[str, ...] = ()


def _parquet(table: pa.Table) -> Callable[[Path], None]:
    return lambda path: pq.write_table(table, path)


def _bomb(path: Path) -> None:
    """Hundreds of megabytes of one line after another, in one."""
    block = (TRIPLE.format("s") * 20_000).encode()
    with gzip.open(path, "wb", 1) as out:
        for _ in range(300_000_000 // len(block)):
            out.write(block)


def _long_line(path: Path) -> None:
    with path.open("w") as out:
        out.write('<http://e/s> <http://e/p> "')
        for _ in range(100):
            out.write("x" * 1_000_000)
        out.write('" .\n' + TRIPLE.format("t"))


LAUGHS = "\n".join(
    [
        '<?xml version="1.0"?><!DOCTYPE rdf:RDF [ <!ENTITY a0 "laugh">',
        *(f'<!ENTITY a{i} "&a{i - 1};&a{i - 1};">' for i in range(1, 31)),
        ']><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">',
        '<rdf:Description rdf:about="http://e/s"><e:p>&a30;</e:p></rdf:Description></rdf:RDF>',
    ]
)
BAD_LINE = "a malformed line of any format"
ENCODING = "not UTF-8"
MARKS = "byte order mark, CRLF"
CUT = "truncated or damaged `.gz` and `.zst`"
COLUMNS = "missing or extra columns"
TYPES = "a value of another type than declared, a missing value"
WHOLE = gzip.compress((TRIPLE.format("s") * 500).encode())
GIVEN = [
    Given(BAD_LINE, "a.nt", (TRIPLE.format("s") + "nonsense\n").encode(), r"a\.nt:2: "),
    Given(BAD_LINE, "a.nq", b"<http://e/s> <http://e/p> .\n", r"a\.nq:1: "),
    Given(BAD_LINE, "a.ttl", b"@prefix : <http://e/> .\n:a :b [ .\n", r"a\.ttl"),
    Given(BAD_LINE, "a.rdf", b"<rdf:RDF", r"a\.rdf"),
    Given(BAD_LINE, "edge.csv", b'a,b\n1,2\n"3,4\n', r"edge\.csv:3: "),
    Given(BAD_LINE, "edge.jsonl", b'{"a": 1, "b": 2}\n{"a": 1\n', r"edge\.jsonl:2: "),
    Given(BAD_LINE, "edge.parquet", b"PAR1 and nothing else", r"edge\.parquet"),
    Given(
        BAD_LINE,
        "a.nt",
        (TRIPLE.format("s") + "nonsense\n" + TRIPLE.format("t")).encode(),
        r"1 malformed line was skipped[\s\S]*a\.nt:2",
        0,
        2,
        ("--lenient",),
    ),
    Given(ENCODING, "a.nt", TRIPLE.format("s").encode("utf-16"), r"a\.nt:1: "),
    Given(ENCODING, "edge.csv", "a,b\nä,ö\n".encode("latin-1"), r"edge\.csv:2: "),
    Given(ENCODING, "edge.jsonl", '{"a": "ä", "b": 2}\n'.encode("latin-1"), r"edge\.jsonl:1: "),
    Given(MARKS, "a.nt", ("\ufeff" + TRIPLE.format("s")).encode(), code=0, facts=1),
    Given(MARKS, "edge.csv", "\ufeffa,b\r\n7,8\r\n".encode(), code=0, facts=2),
    Given(MARKS, "edge.facts", b"7\t8\r\n", code=0, facts=2),
    Given("a line of 100 MB", "a.nt", _long_line, code=0, facts=2),
    Given(
        "entities of XML that grow without end",
        "a.rdf",
        LAUGHS.encode(),
        r"a\.rdf",
        options=("--memory", "1"),
    ),
    Given(
        "a compressed file that is a thousand times as large inside",
        "a.nt.gz",
        _bomb,
        r"memory budget",
        5,
        options=("--memory", "0.2"),
    ),
    Given(CUT, "a.nt.gz", WHOLE[: len(WHOLE) // 2], r"a\.nt\.gz"),
    Given(CUT, "a.nt.gz", WHOLE[:40] + b"\0\0\0\0" + WHOLE[44:], r"a\.nt\.gz"),
    Given(CUT, "a.nt.zst", b"\x28\xb5\x2f\xfd nothing of the kind", r"a\.nt\.zst"),
    Given(CUT, "a.nt.gz", zlib.compress(b"x"), r"a\.nt\.gz"),
    Given("a compression that is not known", "a.nt.bz2", bz2.compress(b"x"), r"a\.nt\.bz2"),
    Given("an empty file", "a.nt", b"", code=0),
    Given("an empty file", "edge.facts", b"", code=0),
    Given("an empty file", "edge.jsonl", b"", code=0),
    Given(COLUMNS, "edge.csv", b"a,b\n1,2\n3\n", r"edge\.csv:3: "),
    Given(COLUMNS, "edge.facts", b"1\t2\n1\t2\t3\n", r"edge\.facts:2: "),
    Given(COLUMNS, "edge.jsonl", b'{"a": 1, "b": 2}\n{"a": 1}\n', r"edge\.jsonl:2: "),
    Given(TYPES, "edge.parquet", _parquet(pa.table({"a": [1, None], "b": [1, 2]})), r"edge\.parquet:2: "),
    Given(
        "columns of mixed values",
        "edge.jsonl",
        b'{"a": 1, "b": "x"}\n{"a": "1", "b": true}\n{"a": 1.5, "b": 2}\n',
        code=0,
        facts=6,
    ),
    Given("NaN and infinity", "edge.csv", b"a,b\nNaN,inf\n", code=0, facts=2),
    Given(
        "NaN and infinity",
        "edge.parquet",
        _parquet(pa.table({"a": [float("nan"), float("inf")], "b": [1, 2]})),
        code=0,
        facts=4,
    ),
    Given("integers beyond 64 bits", "edge.csv", b"a,b\n123456789012345678901234567890,1\n", code=0, facts=2),
    Given(
        "IRIs with spaces, broken language tags",
        "a.nt",
        b"<http://e/a b> <http://e/p> <http://e/o> .\n",
        r"a\.nt:1: ",
    ),
    Given(
        "IRIs with spaces, broken language tags",
        "a.nt",
        b'<http://e/a> <http://e/p> "x"@e_n .\n',
        r"a\.nt:1: ",
    ),
    Given("facts that are given twice", "edge.facts", b"7\t8\n7\t8\n1\t2\n", code=0, facts=2),
]


@pytest.mark.parametrize("given", GIVEN, ids=lambda g: f"{g.row[:30]}-{g.name}")
def test_a_bad_file(given: Given, store: Path, tmp_path: Path) -> None:
    path = tmp_path / given.name
    if callable(given.content):
        given.content(path)
    else:
        path.write_bytes(given.content)
    before = describe(store)
    run = hdlog("update", store, "--add", path, *given.options)
    assert run.exit_code == given.code, run.output
    if given.told:
        assert re.search(given.told, run.output), run.output
    after = describe(store)
    assert after["facts"] == before["facts"] + given.facts
    if given.code:
        assert after == before


def describe(store: Path) -> dict[str, Any]:
    found = json.loads(hdlog("info", store, "--json").output)
    return {name: found[name] for name in ("facts", "version", "predicates")}


# Rules.


def _atoms(count: int) -> str:
    return "p[?x0] :- " + ", ".join(f"edge[?x{i}, ?x{i + 1}]" for i in range(count)) + " ."


@dataclass(frozen=True)
class Rules:
    row: str
    text: str
    told: str
    code: int = 3
    options: tuple[str, ...] = ()
    name: str = "rules.dlog"


RULE_CASES = [
    Rules("rules of 10,000 atoms", "edge[1, 1] . " + _atoms(10_000), "a body of 10,000 atoms"),
    Rules("rules of 10,000 atoms", "edge[1, 1] . " + _atoms(500), "2 facts after", 0),
    Rules(
        "rules that never end",
        "n[0] . n[?y] :- n[?x], BIND(?x + 1 AS ?y) .",
        "rounds",
        6,
        ("--max-rounds", "50"),
    ),
    Rules(
        "rules that never end",
        "n[0] . n[?y] :- n[?x], BIND(?x + 1 AS ?y) .",
        "facts",
        6,
        ("--max-facts", "50"),
    ),
    Rules(
        "cyclic includes, errors in rules",
        '#include "rules.dl"\n.decl p(x: number)\np(1).\n',
        "include",
        3,
        name="rules.dl",
    ),
    Rules("cyclic includes, errors in rules", "p[?x] :- q[?y] .\nr[?x :- s[?x] .\n", r":1:3: [\s\S]*:2:"),
    Rules(
        "files of a program outside its folder",
        '.decl p(x: number)\n.input p(filename="../secret.facts")\n.output p\n',
        "1 facts read",
        0,
        name="rules.dl",
    ),
]


@pytest.mark.parametrize("case", RULE_CASES, ids=lambda c: c.row[:30])
def test_bad_rules(case: Rules, tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "secret.facts").write_text("1\n")
    path = folder / case.name
    path.write_text(case.text)
    run = hdlog("run", path, "-F", folder, "-D", folder / "out", *case.options)
    assert run.exit_code == case.code, run.output
    assert re.search(case.told, run.output), run.output


# Names and values that mean something elsewhere.

HOSTILE = ["$(touch pwned)", "; rm -rf x", "../../up", "a/b", "'\"`", "<script>alert(1)</script>", "con\x00"]


def test_names_with_characters_of_shells_and_paths_stay_names(tmp_path: Path) -> None:
    (tmp_path / "rules.dlog").write_text(
        "".join(f"<{name}>[{i}, {i}] .\n" for i, name in enumerate(HOSTILE[:5]))
    )
    hdlog("run", tmp_path / "rules.dlog", "-D", tmp_path / "out")
    assert {p.name for p in tmp_path.iterdir()} <= {"rules.dlog", "out"}


def test_markup_in_literals_is_shown_not_obeyed(tmp_path: Path) -> None:
    (tmp_path / "rules.dlog").write_text(
        'p[?x] :- q[?x, "<script>alert(1)</script>"], q[?x, ?y], q[?y, ?z] . q["<b>", "<script>alert(1)</script>"] .'
    )
    page = tmp_path / "page.html"
    run = hdlog("explain", tmp_path / "rules.dlog", "--html", page)
    assert run.exit_code == 0, run.output
    assert "<script>alert" not in page.read_text()


OTHERS = {
    "predicates with characters of shells or paths in their names",
    "HTML in literals",
    "a REGEX that tries too many ways",
    "a store, a folder or a pipe in place of a file",
    "files of a store outside its folder",
}
"""Rows with a test of their own, here or in test_reading.py, test_functions.py and test_cli.py."""


def test_files_of_a_store_outside_its_folder_are_refused(store: Path, tmp_path: Path) -> None:
    manifest = store / "manifest.json"
    text = manifest.read_text()
    content = json.loads(text)["content"]
    content["facts"][0]["path"] = "../other/" + Path(content["facts"][0]["path"]).name
    spelt = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    version = json.loads(text)["format"]
    manifest.write_text(f'{{"format":{version},"checksum":{zlib.crc32(spelt.encode())},"content":{spelt}}}\n')
    run = hdlog("info", store)
    assert run.exit_code == 9, run.output
    assert "outside" in run.output


def test_the_documentation_has_a_row_for_each_kind() -> None:
    text = DOCS.read_text().split("## Bad input")[1]
    rows = {line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")} - {"input"}
    tested = {g.row for g in GIVEN} | {c.row for c in RULE_CASES} | OTHERS
    assert rows == tested


@pytest.mark.parametrize("escape", [r"\UFFFFFFFF", r"\U00110000", r"\uD800", r"\U0000DFFF", r"\q"])
def test_what_is_no_character_is_refused_in_changes(escape: str, tmp_path: Path) -> None:
    path = tmp_path / "changes.txt"
    path.write_text(f'+ <http://s> <http://p> "{escape}" .\n')
    with pytest.raises(InputError, match=r"changes\.txt:1"):
        read_changes(path, Program())
