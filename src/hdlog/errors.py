"""Every error a user can cause: what happened, where, what to do, and the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import ClassVar, Literal


class HdlogError(Exception):
    """Root of the errors the command line turns into a message and an exit code."""

    exit_code: ClassVar[int] = 1

    def __reduce__(self) -> tuple[object, ...]:
        """Into another process as it is, whatever it was made from."""
        return _remake, (type(self), self.args, self.__dict__)


def _remake(
    kind: type[HdlogError], arguments: tuple[object, ...], attributes: dict[str, object]
) -> HdlogError:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(attributes)
    return error


class UsageError(HdlogError):
    """The call itself cannot be carried out: a missing file, an unknown dialect."""

    exit_code = 2


@dataclass(frozen=True, eq=False)
class Source:
    """A text and its name; `origins` tells where each line of a preprocessed text came from."""

    name: str
    text: str = field(repr=False)
    origins: tuple[tuple[str, int], ...] = field(default=(), repr=False)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def origin(self, number: int) -> tuple[str, int]:
        """File and line a reader knows line `number` of this text by."""
        return self.origins[number - 1] if 0 < number <= len(self.origins) else (self.name, number)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one line of a source; columns count from 1, `end` is exclusive."""

    source: Source
    line: int
    column: int
    end: int

    def __str__(self) -> str:
        name, line = self.source.origin(self.line)
        return f"{name}:{line}:{self.column}"

    @property
    def text(self) -> str:
        return self.source.line(self.line)[self.column - 1 : self.end - 1]


Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a program, in words a person can act on."""

    kind: str
    message: str
    span: Span | None = None
    hint: str = ""
    severity: Severity = "error"
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span else ""
        label = "warning: " if self.severity == "warning" else ""
        lines = [f"{place}{label}{self.message}"]
        if self.span:
            lines += excerpt(self.span)
        lines += [f"  note: {note}" for note in self.notes]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        file, line = self.span.source.origin(self.span.line) if self.span else ("", 0)
        return {
            "kind": self.kind,
            "severity": self.severity,
            "message": self.message,
            "file": file,
            "line": line,
            "column": self.span.column if self.span else 0,
            "hint": self.hint,
            "notes": list(self.notes),
        }


def excerpt(span: Span) -> list[str]:
    """The source line with carets under the span; control characters cannot shift the carets."""
    line = "".join(c if c.isprintable() else " " for c in span.source.line(span.line))
    number = str(span.source.origin(span.line)[1])
    width = max(1, min(span.end, len(line) + 1) - span.column)
    gutter = max(4, len(number) + 1)
    return [
        f"{number:>{gutter}} | {line}",
        f"{'':>{gutter}} | {' ' * (span.column - 1)}{'^' * width}",
    ]


class ProgramError(HdlogError):
    """A program with errors; carries all its problems, in the order of the text."""

    exit_code = 3

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = in_text_order(problems)
        super().__init__("\n".join(str(p) for p in self.problems))


class Inexpressible(HdlogError):
    """A program that has no counterpart in the dialect it should be written in."""

    exit_code = 4


class IntermediateTooLarge(HdlogError):
    """A step would pass the memory budget; the driver adds which rule it was."""

    exit_code = 5

    def __init__(self, what: str, rows: int, needed: int, allowed: int) -> None:
        self.rows = rows
        super().__init__(
            f"{what} of {rows:,} rows needs about {needed / 1e9:.1f} GB with what is in use; the memory budget is "
            f"{allowed / 1e9:.1f} GB"
        )


class TooManyDerivations(HdlogError):
    """More derivations of one fact than 64 bits can count."""

    exit_code = 5

    def __init__(self) -> None:
        super().__init__(
            "a fact has more derivations than can be counted (2^62); a body that multiplies so much is best cut into "
            "rules of its own, each with the variables that matter"
        )


class TermTooLarge(HdlogError):
    """A Skolem term that has no text of a reasonable length."""

    exit_code = 5

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the text of a Skolem term would have more than {most:,} characters: its arguments are Skolem "
            "terms again, many levels deep; bound the recursion that makes them, for instance with a counter"
        )


class LimitReached(HdlogError):
    """An update passed a limit on rounds or facts; nothing of it remains."""

    exit_code = 6


class InputError(HdlogError):
    """Facts that cannot be read."""

    exit_code = 7


class ClashingTerms(HdlogError):
    """Two terms that were given have the same hash, and so the same id."""

    exit_code = 12

    def __str__(self) -> str:
        return "two terms have the same hash, which happens once in a very long while; it is noted, so do the same once more"


class SparkFailed(HdlogError):
    """Spark could not run a job."""

    exit_code = 8


class StoreError(HdlogError):
    """A store that cannot be used: none there, of another version, in use."""

    exit_code = 9


class WriteError(HdlogError):
    """Facts that a format cannot hold."""

    exit_code = 11


OPERATING_SYSTEM = 10
"""The exit code of what the operating system refuses: no permission, a full disk."""
INTERRUPTED = 130
"""The exit code of Ctrl-C, as shells have it."""


def in_text_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    files: dict[str, int] = {}

    def key(problem: Problem) -> tuple[int, int, int]:
        if problem.span is None:
            return (-1, 0, 0)
        file = files.setdefault(problem.span.source.name, len(files))
        return (file, problem.span.line, problem.span.column)

    return tuple(sorted(dict.fromkeys(problems), key=key))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint naming the closest known words, or nothing."""
    names = sorted(set(known))
    start = max(word.rfind("/"), word.rfind("#")) + 1
    if start > 1:
        # IRIs of one namespace look alike whatever their last part is: that alone is compared.
        space, word = word[:start], word[start:]
        names = [name[start:] for name in names if name.startswith(space)]
        return _join_hint([space + name for name in get_close_matches(word, names, n=3, cutoff=0.7)])
    return _join_hint(get_close_matches(word, names, n=3, cutoff=0.7))


def _join_hint(close: Sequence[str]) -> str:
    return "did you mean " + " or ".join(close) + "?" if close else ""
