"""What the commands that ask a store do."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path

from hdlog.errors import UsageError
from hdlog.operations.stores import begin_living
from hdlog.operations.work import Settings
from hdlog.query.answers import Answers
from hdlog.query.formats import AnswerFormat, write_answers
from hdlog.query.queries import Modifiers, Queries
from hdlog.report.queries import explain_query
from hdlog.store.store import open_for_reading
from hdlog.writing.files import write_whole

_FROM_FILE = "@"


def read_text(text: str) -> str:
    """A text as it is given: `@FILE` is that of a file, `-` that of standard input."""
    if text == "-":
        return sys.stdin.read()
    if not text.startswith(_FROM_FILE):
        return text
    path = Path(text.removeprefix(_FROM_FILE))
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8 text") from None


@dataclass(frozen=True)
class Shown:
    """Answers as a command shows them."""

    answers: Answers
    is_question: bool
    explanation: str
    written: bytes | None
    """in some format, unless that is a table or went to a file"""


def ask_store(
    folder: Path,
    text: str,
    settings: Settings,
    modifiers: Modifiers,
    format_: AnswerFormat | None = None,
    out: Path | None = None,
    version: int | None = None,
) -> Shown:
    """Ask a store a query in SPARQL, or a rule body."""
    with open_for_reading(folder, version) as store:
        living = begin_living(store, settings)
        asked = Queries(living.work.reasoner).ask(read_text(text), modifiers)
        asked.answers.hold()
        explanation = explain_query(asked.query, asked.planned)
        written = _write(asked.answers, format_, out, asked.is_question)
    return Shown(asked.answers, asked.is_question, explanation, written)


def _write(
    answers: Answers, format_: AnswerFormat | None, out: Path | None, is_question: bool
) -> bytes | None:
    if format_ is None:
        return None
    if out is not None:
        with write_whole(out) as file:
            write_answers(answers, format_, file, is_question)
        return None
    buffer = io.BytesIO()
    write_answers(answers, format_, buffer, is_question)
    return buffer.getvalue()
