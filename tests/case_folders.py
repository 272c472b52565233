"""Cases: a folder in tests/cases with a program, updates, what each must change, and what must hold in the end.

    program.dlog or program.dl
    expected.txt     the facts after the last update, one a line
    explain.txt      how the rules are evaluated then, by the default method
    updates.txt      blocks with an empty line between:

        add edge[1, 2] . edge[2, 3] .        facts, as the RDFox dialect writes them
        delete edge[1, 2] .
        rules p[?x] :- q[?x] .               rules to add, in the dialect of the program
        remove p[?x] :- q[?x] .              rules to remove
        gives
        + path[1, 2] .
        - path[1, 3] .

A line `gives` with nothing after it says that nothing changes.

A new case is a folder with a program and updates without `gives`: `python -m tests.case_folders NAME` writes what they must give and what must hold in
the end, by the naive evaluator, and explain.txt. Read what it has written before you believe it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from hdlog.api import Reasoner, Update
from hdlog.dialects import Dialect
from hdlog.program.model import Atom, Program, Rule
from hdlog.program.ntriples import term_text
from hdlog.program.terms import RDF_TYPE, XSD_INTEGER, XSD_STRING, Constant, Literal
from hdlog.report.explain import as_text
from hdlog.text import dialect_of, parse, read
from hdlog.text.write import write
from tests.oracle import materialise
from tests.strategies import Fact

FOLDER = Path(__file__).parent / "cases"


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
    expected: frozenset[Fact]

    @property
    def changes_rules(self) -> bool:
        return any(step.rules or step.remove for step in self.steps)


def cases() -> list[Case]:
    return [read_case(folder) for folder in sorted(FOLDER.iterdir())]


def read_case(folder: Path) -> Case:
    (path,) = folder.glob("program.dl*")
    blocks = (folder / "updates.txt").read_text().split("\n\n")
    steps = (read_step(b, dialect_of(path)) for b in blocks if b.strip())
    expected = folder / "expected.txt"
    lines = facts(expected.read_text()) if expected.exists() else []
    return Case(folder.name, path, read(path), tuple(steps), frozenset(lines))


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


def changed(case: Case, step: Step, program: Program, present: set[Fact]) -> tuple[Program, set[Fact]]:
    """The program and the asserted facts after a step."""
    if step.rules is not None:
        new = tuple(r for r in step.rules.rules if r not in program.rules)
        return replace(program, rules=program.rules + new), present | set(facts_of(step.rules))
    if step.remove is not None:
        gone = step.remove.rules
        left = replace(program, rules=tuple(r for r in program.rules if r not in gone))
        return left, present - (set(facts_of(step.remove)) - set(facts_of(left)))
    return program, (present - set(step.delete)) | set(step.add)


def rules_of(program: Program) -> Program:
    """Without facts: those are asserted, and may have been retracted."""
    return replace(program, rules=tuple(r for r in program.rules if not r.is_fact))


def write_files(folder: Path, given: list[Fact]) -> list[str]:
    """Facts as files that `hdlog update` reads: triples in one, numbers and strings in another, each other table in its own."""
    folder.mkdir(parents=True)
    tables: dict[str, list[str]] = {}
    for predicate, row in given:
        texts = [term_text(t) for t in row]
        plain = predicate.without_graph()
        if ":" in plain.name and plain.arity in (1, 2):
            graph = f" {texts[-1]}" if predicate.has_graph else ""
            last = texts[1] if plain.arity == 2 else f"<{plain.name}>"
            middle = plain.name if plain.arity == 2 else RDF_TYPE
            name = "quads.nq" if graph else "triples.nt"
            tables.setdefault(name, []).append(f"{texts[0]} <{middle}> {last}{graph} .")
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


def is_written(fact: Fact) -> bool:
    """Whether there is a file for it: subjects and graphs of RDF are no literals."""
    predicate, row = fact
    if ":" not in predicate.name:
        return True
    nodes = (row[0], row[-1]) if predicate.has_graph else row[:1]
    return not any(isinstance(node, Literal) for node in nodes)


def plain_field(term: Constant) -> str:
    return term.lexical if isinstance(term, Literal) else str(term)


def fact_text(fact: Fact) -> str:
    """As the RDFox dialect writes it."""
    predicate, row = fact
    return write(Program((Rule((Atom(predicate.name, row),)),)), "rdfox").strip()


def write_expectations(name: str) -> None:
    """Fill in `gives`, expected.txt and explain.txt, by the oracle."""
    folder = FOLDER / name
    case = read_case(folder)
    program, present = case.program, set(facts_of(case.program))
    before = _truth(program, present)
    blocks = []
    texts = [b for b in (folder / "updates.txt").read_text().split("\n\n") if b.strip()]
    for text, step in zip(texts, case.steps, strict=True):
        program, present = changed(case, step, program, present)
        after = _truth(program, present)
        asked = text.strip().split("\ngives")[0]
        lines = [f"+ {fact_text(f)}" for f in sorted(after - before, key=str)]
        lines += [f"- {fact_text(f)}" for f in sorted(before - after, key=str)]
        blocks.append("\n".join([asked, "gives", *lines]))
        before = after
    (folder / "updates.txt").write_text("\n\n".join(blocks) + "\n")
    (folder / "expected.txt").write_text("".join(f"{fact_text(f)}\n" for f in sorted(before, key=str)))
    (folder / "explain.txt").write_text(explain(read_case(folder)))


def _truth(program: Program, present: set[Fact]) -> set[Fact]:
    return {(p, row) for p, rows in materialise(rules_of(program), present).items() for row in rows}


def explain(case: Case) -> str:
    """How the rules of a case are evaluated after its last step."""
    reasoner = Reasoner(case.program)
    for step in case.steps:
        take(reasoner, step)
    return as_text(reasoner.explain(), times=False) + "\n"


def take(reasoner: Reasoner, step: Step) -> Update:
    if step.rules is not None:
        return reasoner.add_rules(step.rules)
    if step.remove is not None:
        return reasoner.remove_rules(step.remove)
    return reasoner.update(step.add, step.delete)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        write_expectations(argument)
