"""Files of changes, as `hdlog update` prints them: a fact a line, after a plus if it comes, after a minus if it goes.

A fact is a triple of N-Triples, or the name of a predicate with its arguments in brackets: integers as they are, other terms as
N-Triples. Lines that begin with # are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hdlog.errors import InputError
from hdlog.program.model import Predicate, Program, in_graph, triple_atom
from hdlog.program.ntriples import parse_term, term_text
from hdlog.program.terms import Constant
from hdlog.reading.chunks import Chunk
from hdlog.reading.identifiers import INTEGER_MARK
from hdlog.reading.objects import Collector
from hdlog.reading.splits import report_input_errors

_TERM = re.compile(
    r'<[^<>"{}|^`\\\x00-\x20]*>|_:[^\s,()]+|"(?:[^"\\\n\r]|\\(?:'
    + r"[tbnrf\"'\\]|u(?![Dd][89A-Fa-f])[0-9A-Fa-f]{4}|U00(?!00[Dd][89A-Fa-f])(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4}"
    + r'))*"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*|\^\^<[^<>\s]*>)?|-?[0-9]+'
)
"""A term; of escapes only those that stand for a character."""


@dataclass
class _Facts:
    """Facts of one predicate, as texts."""

    columns: list[list[str]]
    rows: int = 0

    def texts(self) -> list[list[str]]:
        return self.columns

    def __len__(self) -> int:
        return self.rows


@dataclass
class _Side:
    facts: dict[Predicate, _Facts] = field(default_factory=dict)

    def add(self, predicate: Predicate, terms: Sequence[str]) -> None:
        facts = self.facts.setdefault(predicate, _Facts([[] for _ in terms]))
        for column, text in zip(facts.columns, terms, strict=True):
            column.append(text)
        facts.rows += 1


def read_changes(path: str | Path, program: Program) -> tuple[list[Chunk], list[Chunk]]:
    """The facts that come, and those that go."""
    sides = {"+": _Side(), "-": _Side()}
    with report_input_errors(str(path)):
        data = Path(path).read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{place}: not UTF-8") from None
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip("\r ")
        if not line or line.startswith("#"):
            continue
        fact = _parse(line[1:].strip()) if line[0] in sides else None
        if fact is None:
            raise InputError(
                f'{path}:{number}: a change is a + or a -, and a fact: + <http://s> <http://p> 1 ., or + p(1, "a")'
            )
        sides[line[0]].add(*fact)
    chunks = []
    for side in sides.values():
        collector = Collector(program, _no_files)
        collector.take(side.facts)
        chunks.append(collector.chunks())
    return chunks[0], chunks[1]


def _parse(text: str) -> tuple[Predicate, list[str]] | None:
    """A predicate and the texts of terms."""
    if text.endswith("."):
        terms = _terms(text[:-1], r"\s+")
        if terms is None or len(terms) not in (3, 4) or not terms[1].startswith("<"):
            return None
        if any(node.startswith('"') for node in (terms[0], *terms[3:])):
            return None
        subject, predicate, value, *graph = map(_constant, terms)
        atom = triple_atom(subject, predicate, value)
        atom = in_graph(atom, graph[0]) if graph else atom
        return atom.predicate, [term_text(t) for t in atom.terms]  # type: ignore[arg-type]
    if not text.endswith(")"):
        return None
    # A name may have brackets in it.
    for start in (i for i, c in enumerate(text) if c == "(" and i):
        inner = text[start + 1 : -1].strip()
        terms = _terms(inner, r"\s*,\s*") if inner else []
        if terms is not None:
            return Predicate(text[:start], len(terms)), [term_text(_constant(t)) for t in terms]
    return None


def _terms(text: str, separator: str) -> list[str] | None:
    """Terms with something in between, if there is nothing else."""
    terms: list[str] = []
    between = re.compile(separator)
    at, text = 0, text.strip()
    while True:
        match = _TERM.match(text, at)
        if match is None:
            return None
        terms.append(match.group())
        at = match.end()
        if at == len(text):
            return terms
        gap = between.match(text, at)
        if gap is None:
            return None
        at = gap.end()


def _constant(text: str) -> Constant:
    return parse_term(text if text[0] in '<"_' else f'"{int(text)}{INTEGER_MARK}')


def _no_files(paths: Sequence[object], name: str) -> list[Chunk]:
    raise AssertionError("facts of a change are no files")
