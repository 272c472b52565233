"""Cases: a folder with a program, updates, and what each must change.

    program.dlog or program.dl
    updates.txt      blocks with an empty line between:

        add edge[1, 2] . edge[2, 3] .        facts, as the RDFox dialect writes them
        delete edge[1, 2] .
        rules p[?x] :- q[?x] .               rules to add, in the dialect of the program
        remove p[?x] :- q[?x] .              rules to remove
        gives
        + path[1, 2] .
        - path[1, 3] .

A line `gives` with nothing after it says that nothing changes. A block without `gives` is only checked against the oracle.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hdlog.program.model import Program
from hdlog.program.ntriples import term_text
from hdlog.program.terms import RDF_TYPE, XSD_INTEGER, XSD_STRING, Constant, Literal
from hdlog.text import Dialect, dialect_of, parse, read
from tests.strategies import Fact

FOLDER = Path(__file__).parent / "cases" / "programs"


@dataclass
class Step:
    """One update, or one change of rules, and what it must change; None where only the oracle says."""

    add: list[Fact] = field(default_factory=list)
    delete: list[Fact] = field(default_factory=list)
    rules: Program | None = None
    remove: Program | None = None
    came: set[Fact] | None = None
    went: set[Fact] | None = None


@dataclass(frozen=True)
class Case:
    name: str
    path: Path
    program: Program
    steps: tuple[Step, ...]

    @property
    def changes_rules(self) -> bool:
        return any(step.rules or step.remove for step in self.steps)


def cases() -> list[Case]:
    return [read_case(folder) for folder in sorted(FOLDER.iterdir())]


def read_case(folder: Path) -> Case:
    (path,) = folder.glob("program.dl*")
    blocks = (folder / "updates.txt").read_text().split("\n\n")
    steps = (read_step(b, dialect_of(path)) for b in blocks if b.strip())
    return Case(folder.name, path, read(path), tuple(steps))


def read_step(text: str, dialect: Dialect) -> Step:
    step = Step()
    for line in text.strip().split("\n"):
        word, _, rest = line.partition(" ")
        match word:
            case "#":
                pass
            case "add":
                step.add += facts(rest)
            case "delete":
                step.delete += facts(rest)
            case "rules":
                step.rules = parse(rest, dialect)
            case "remove":
                step.remove = parse(rest, dialect)
            case "gives":
                step.came, step.went = set(), set()
            case "+" | "-":
                side = step.came if word == "+" else step.went
                assert side is not None, "what comes and goes is told after `gives`"
                side.update(facts(rest))
            case _:
                raise AssertionError(f"a case has no line {line!r}")
    return step


def facts(text: str) -> list[Fact]:
    return list(facts_of(parse(text)))


def facts_of(program: Program) -> Iterator[Fact]:
    for rule in program.rules:
        if rule.is_fact:
            yield from ((h.predicate, h.terms) for h in rule.heads)  # type: ignore[misc]


def write_files(folder: Path, given: list[Fact]) -> list[str]:
    """Facts as files that `hdlog update` reads: triples in one, numbers and strings in another, each other table in its own."""
    folder.mkdir(parents=True)
    tables: dict[str, list[str]] = {}
    for predicate, row in given:
        texts = [term_text(t) for t in row]
        if ":" in predicate.name and predicate.arity in (1, 2):
            last = texts[1] if predicate.arity == 2 else f"<{predicate.name}>"
            middle = predicate.name if predicate.arity == 2 else RDF_TYPE
            tables.setdefault("triples.nt", []).append(f"{texts[0]} <{middle}> {last} .")
        elif all(isinstance(t, Literal) and t.datatype in (XSD_INTEGER, XSD_STRING) for t in row):
            values = [int(t.lexical) if t.datatype == XSD_INTEGER else t.lexical for t in row]  # type: ignore[union-attr]
            line = json.dumps({"predicate": predicate.name, "args": values})
            tables.setdefault("tables.jsonl", []).append(line)
        else:
            line = "\t".join(map(plain_field, row)) or "()"
            tables.setdefault(f"{predicate.name}.facts", []).append(line)
    for name, lines in tables.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return [str(folder / name) for name in tables]


def plain_field(term: Constant) -> str:
    return term.lexical if isinstance(term, Literal) else str(term)
