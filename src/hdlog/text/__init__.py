"""Rule text into a program, in the dialect its file ending names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from hdlog.dialects import ENDINGS, Dialect
from hdlog.errors import Problem, ProgramError, Source, UsageError, did_you_mean, in_text_order
from hdlog.program.checks import check, check_constants, check_rule
from hdlog.program.model import Atom, Program, Rule, is_ground
from hdlog.program.normalise import check_core
from hdlog.program.terms import Variable
from hdlog.text import rdfox, souffle
from hdlog.text.preprocess import preprocess


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says, as far as it could be read, and everything wrong with it."""

    program: Program
    problems: tuple[Problem, ...]
    dialect: Dialect

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(p for p in self.problems if p.severity == "error")


def dialect_of(path: Path) -> Dialect:
    if path.suffix in ENDINGS:
        return ENDINGS[path.suffix]
    known = ", ".join(f"{ending} ({name})" for ending, name in ENDINGS.items())
    raise UsageError(f"{path}: unknown rule file ending {path.suffix!r}; known: {known}, or name a dialect")


@dataclass(frozen=True, slots=True)
class RuleText:
    """The text of a rule file as it is read: after the preprocessor, and with the lines a reader knows it by."""

    source: Source
    dialect: Dialect
    left_out: tuple[str, ...] = ()
    """axioms of an ontology that are in no rule, and why"""


def examine(text: str, dialect: Dialect, name: str = "<text>", folder: Path = Path()) -> Reading:
    """Read and check a text; never raises for what the text says.

    Checks that need the whole program are left out when a part of it could not be read.
    """
    prepared, problems = _prepare(text, dialect, name, folder)
    return _examine_texts([prepared], problems)


def _prepare(text: str, dialect: Dialect, name: str, folder: Path) -> tuple[RuleText, list[Problem]]:
    if dialect not in get_args(Dialect):
        hint = did_you_mean(dialect, get_args(Dialect))
        raise UsageError(f"unknown dialect {dialect!r}; known: {', '.join(get_args(Dialect))}. {hint}")
    source = Source(name, text.removeprefix("\ufeff").replace("\r\n", "\n"))
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{name}: half a character (a lone surrogate) at place {error.start}") from None
    problems: list[Problem] = []
    if dialect == "souffle":
        source, problems = preprocess(source, folder)
    if dialect in ("owl-rl", "rdfs"):
        from hdlog.text import owl

        source, left_out, problems = owl.translate(source, dialect)
        return RuleText(source, "rdfox", tuple(left_out)), problems
    return RuleText(source, dialect), problems


def _examine_texts(texts: Sequence[RuleText], problems: list[Problem]) -> Reading:
    """Texts as one program: what one declares, the others may use."""
    program = Program()
    for text in texts:
        reader = rdfox if text.dialect == "rdfox" else souffle
        more, own_problems = reader.parse(text.source)
        program += more
        problems += own_problems
    declared_only = all(text.dialect == "souffle" for text in texts)
    problems += check(program, declared_only, whole=not problems)
    if not any(p.severity == "error" for p in problems):
        problems += check_core(program)
    return Reading(program, in_text_order(problems), texts[0].dialect)


def examine_file(path: Path, dialect: Dialect | None = None) -> Reading:
    prepared, problems = _prepare_file(path, dialect)
    return _examine_texts([prepared], problems)


def examine_files(paths: Sequence[Path], dialect: Dialect | None = None) -> list[Reading]:
    """Files that are used together, each with what is wrong in it: what one declares, the others may use."""
    prepared = [_prepare_file(path, dialect) for path in paths]
    texts = [text for text, _ in prepared]
    together = _examine_texts(texts, [p for _, problems in prepared for p in problems])
    readings = []
    for place, text in enumerate(texts):
        own = [p for p in together.problems if _place_of(p, texts) == place]
        readings.append(Reading(_examine_texts([text], []).program, tuple(own), text.dialect))
    return readings


def _place_of(problem: Problem, texts: Sequence[RuleText]) -> int:
    """Which of some texts a problem is in; the first, if it is nowhere in particular."""
    names = [text.source.name for text in texts]
    return names.index(problem.span.source.name) if problem.span and problem.span.source.name in names else 0


def _prepare_file(path: Path, dialect: Dialect | None) -> tuple[RuleText, list[Problem]]:
    dialect = dialect or dialect_of(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text (byte {error.start}); rule files are UTF-8") from None
    return _prepare(text, dialect, str(path), path.parent)


def rule_texts(paths: Sequence[Path], dialect: Dialect | None = None) -> list[RuleText]:
    """The texts of rule files, which need no other files from here on."""
    prepared = [_prepare_file(path, dialect) for path in paths]
    problems = [p for _, more in prepared for p in more]
    if problems:
        raise ProgramError(problems)
    return [text for text, _ in prepared]


def read_texts(texts: Sequence[RuleText]) -> Program:
    """The program that several texts stand for together; `ProgramError` where it has errors."""
    return _program(_examine_texts(texts, [])) if texts else Program()


def parse(text: str, dialect: Dialect = "rdfox", name: str = "<text>") -> Program:
    """The program a text stands for; `ProgramError` with all its problems where it has errors.

    >>> program = parse("path[?x, ?z] :- path[?x, ?y], edge[?y, ?z] . path[?x, ?y] :- edge[?x, ?y] .")
    >>> len(program.rules), sorted(p.name for p in program.predicates)
    (2, ['edge', 'path'])
    """
    if not isinstance(text, str):
        raise UsageError(f"a program is a text, not {type(text).__name__}; `read` takes the path of a file")
    return _program(examine(text, dialect, name))


def parse_query(
    text: str, prefixes: Mapping[str, str], given: Sequence[str] = (), name: str = "<query>"
) -> Rule:
    """The rule for the answers to a query; its head is `rdfox.ANSWER` with what is asked for. Names that are `given` have values."""
    if not isinstance(text, str):
        raise UsageError(f"a query is a text, not {type(text).__name__}")
    source = _prepare(text, "rdfox", name, Path())[0].source
    queries, problems = rdfox.parse_query(source, prefixes)
    if not problems and len(queries) != 1:
        raise UsageError(f"{name}: {len(queries)} queries; give one, as in ?x, ?y <- edge[?x, ?y]")
    for query in queries:
        known = replace(query, body=(Atom("#given", tuple(map(Variable, given))), *query.body))
        problems += [*check_rule(known if given else query), *check_constants(query)]
    errors = [p for p in problems if p.severity == "error"]
    if errors:
        raise ProgramError(in_text_order(errors))
    return queries[0]


def parse_fact(text: str, prefixes: Mapping[str, str], name: str = "<fact>") -> Atom:
    """A fact as the RDFox dialect writes it: `:knows[:ann, "Bob"]`, with or without a dot."""
    source = _prepare(text, "rdfox", name, Path())[0].source
    rules, problems = rdfox.parse_facts(source, prefixes)
    if problems:
        raise ProgramError(in_text_order(problems))
    if len(rules) != 1 or rules[0].body or len(rules[0].heads) != 1 or not is_ground(rules[0].heads[0]):
        raise UsageError(f'{text!r} is no fact; write one as in knows[1, 2] or :knows[:ann, "Bob"]')
    return rules[0].heads[0]


def read(path: str | Path, dialect: Dialect | None = None) -> Program:
    """The program in a file; its ending says which dialect unless `dialect` does."""
    if not isinstance(path, str | Path):
        raise UsageError(f"a rule file is named by its path, not by {type(path).__name__}")
    return _program(examine_file(Path(path), dialect))


def _program(reading: Reading) -> Program:
    if reading.errors:
        raise ProgramError(reading.errors)
    return reading.program
