"""Rule text into a program, in the dialect its file ending names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from hdlog.errors import Problem, ProgramError, Source, UsageError, did_you_mean, in_text_order
from hdlog.program.checks import check
from hdlog.program.model import Program
from hdlog.text import rdfox, souffle
from hdlog.text.preprocess import preprocess

Dialect = Literal["rdfox", "souffle"]
ENDINGS: dict[str, Dialect] = {".dlog": "rdfox", ".dl": "souffle"}


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


def examine(text: str, dialect: Dialect, name: str = "<text>", folder: Path = Path()) -> Reading:
    """Read and check a text; never raises for what the text says.

    Checks that need the whole program are left out when a part of it could not be read.
    """
    if dialect not in get_args(Dialect):
        hint = did_you_mean(dialect, get_args(Dialect))
        raise UsageError(f"unknown dialect {dialect!r}; known: {', '.join(get_args(Dialect))}. {hint}")
    source = Source(name, text.replace("\r\n", "\n"))
    problems: list[Problem] = []
    if dialect == "souffle":
        source, problems = preprocess(source, folder)
    reader = rdfox if dialect == "rdfox" else souffle
    program, found = reader.parse(source)
    problems += found
    problems += check(program, dialect == "souffle", whole=not problems)
    return Reading(program, in_text_order(problems), dialect)


def examine_file(path: Path, dialect: Dialect | None = None) -> Reading:
    dialect = dialect or dialect_of(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text (byte {error.start}); rule files are UTF-8") from None
    return examine(text, dialect, str(path), path.parent)


def parse(text: str, dialect: Dialect = "rdfox", name: str = "<text>") -> Program:
    """The program a text stands for; `ProgramError` with all its problems where it has errors."""
    return _program(examine(text, dialect, name))


def read(path: str | Path, dialect: Dialect | None = None) -> Program:
    """The program in a file; its ending says which dialect unless `dialect` does."""
    return _program(examine_file(Path(path), dialect))


def _program(reading: Reading) -> Program:
    if reading.errors:
        raise ProgramError(reading.errors)
    return reading.program
