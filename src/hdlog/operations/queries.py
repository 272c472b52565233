"""What the commands that ask a store do."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from hdlog.errors import UsageError
from hdlog.operations.stores import Living, begin_living, check_files, find_data, read_text
from hdlog.operations.work import Settings
from hdlog.places import Place
from hdlog.query.answers import Answers
from hdlog.query.formats import AnswerFormat, write_answers
from hdlog.query.queries import Modifiers, Queries
from hdlog.reading.changes import read_changes
from hdlog.reasoning import Update
from hdlog.report.queries import explain_query
from hdlog.store.store import open_for_reading
from hdlog.writing.files import write_columns, write_whole


@dataclass(frozen=True)
class Shown:
    """Answers as a command shows them."""

    answers: Answers
    is_question: bool
    explanation: str
    written: bytes | None
    """in some format, unless that is a table or went to a file"""
    unknown: tuple[str, ...]
    """what to say of predicates that nothing has, where there is no answer"""


def ask_store(
    folder: Place,
    text: str,
    settings: Settings,
    modifiers: Modifiers,
    format_: AnswerFormat | None = None,
    out: Path | None = None,
    version: int | None = None,
    explain: bool = False,
) -> Shown:
    """Ask a store a query in SPARQL, or a rule body."""
    with open_for_reading(folder, version) as store:
        living = begin_living(store, settings)
        queries = Queries(living.work.reasoner)
        asked = queries.ask(read_text(text), modifiers)
        asked.answers.hold()
        explanation = explain_query(asked.query, asked.planned) if explain else ""
        written = _write(asked.answers, format_, out, asked.is_question)
        unknown = () if asked.answers else tuple(queries.find_unknown(asked.query))
    return Shown(asked.answers, asked.is_question, explanation, written, unknown)


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


def ask_sql(folder: Place, statement: str, settings: Settings, version: int | None = None) -> pa.Table:
    """Ask a store in SQL."""
    with open_for_reading(folder, version) as store:
        living = begin_living(store, settings)
        return Queries(living.work.reasoner).ask_sql(read_text(statement))


def write_rows(table: pa.Table, format_: str, out: IO[bytes]) -> None:
    """The rows of a table, as SQL has given them."""
    match format_:
        case "csv" | "tsv":
            write_columns(table, out, "," if format_ == "csv" else "\t")
        case "json":
            for batch in table.to_batches():
                lines = (json.dumps(row, default=str, ensure_ascii=False) for row in batch.to_pylist())
                out.write("".join(f"{line}\n" for line in lines).encode())
        case "parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, out, compression="zstd")
        case _:
            raise UsageError(f"rows of SQL are written as csv, tsv, json or parquet, not as {format_}")


def explain_fact(
    folder: Place, fact: str, settings: Settings, several: int = 1, version: int | None = None
) -> dict[str, Any]:
    """How a fact of a store comes about."""
    with open_for_reading(folder, version) as store:
        living = begin_living(store, settings)
        return Queries(living.work.reasoner).why(read_text(fact), several).as_dict()


def explain_absence(
    folder: Place, fact: str, settings: Settings, version: int | None = None
) -> dict[str, Any]:
    """What is missing for a fact of a store to hold."""
    with open_for_reading(folder, version) as store:
        living = begin_living(store, settings)
        return Queries(living.work.reasoner).why_not(read_text(fact)).as_dict()


def try_update(
    folder: Place,
    add: Sequence[str],
    delete: Sequence[str],
    settings: Settings,
    changes: Sequence[str] = (),
    version: int | None = None,
) -> Update:
    """What an update of a store would change; nothing is changed, and nobody has to wait."""
    check_files([*add, *delete])
    with open_for_reading(folder, version) as store:
        living = begin_living(store, settings)
        work = living.work
        if changes:
            come, go = read_changes_of(changes, living)
        else:
            given = [find_data(data, settings) for data in (add, delete)]
            come, go = (work.read(g.splits, living.program, g.frames)[0] for g in given)
        return work.reasoner.try_update(come, go)


def read_changes_of(paths: Sequence[str], living: Living) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """The facts of a file of changes."""
    if len(paths) != 1:
        raise UsageError("one file of changes is tried at a time; put several into one")
    engine = living.work.engine
    come, go = read_changes(paths[0], living.program)
    return engine.encode_chunks(come), engine.encode_chunks(go)
