"""`hdlog query` and others that ask a store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import click

from hdlog.commands.console import print_table, show_progress
from hdlog.commands.options import (
    PATH,
    EngineName,
    at_version,
    engine_choice,
    memory_budget,
    one_of,
    store_folder,
)

if TYPE_CHECKING:
    pass

QueryFormat = Literal["table", "csv", "tsv", "json", "xml", "parquet", "nt"]
_SHOWN = 1000
"""Rows of a table on a terminal."""


@click.command()
@store_folder
@click.argument("text", metavar="QUERY")
@click.option(
    "--order",
    default="",
    metavar="NAMES",
    help="Names to order by, with commas; -?x for falling. Rule bodies only.",
)
@click.option("--limit", type=click.IntRange(min=0), help="At most so many answers. Rule bodies only.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Leave out so many. Rule bodies only.")
@click.option(
    "--matches", is_flag=True, help="An answer for each match, in place of each once. Rule bodies only."
)
@click.option(
    "--format",
    "format_",
    type=one_of(QueryFormat),
    help="How to write answers: a table on a terminal, CSV in a pipe, unless given.",
)
@click.option(
    "--out", "-o", type=PATH, metavar="FILE", help="Where to write them; its ending says the format."
)
@click.option("--explain", is_flag=True, help="Tell how the query was evaluated, in place of the answers.")
@at_version
@engine_choice
@memory_budget
def query(
    store: Path,
    text: str,
    order: str,
    limit: int | None,
    offset: int,
    matches: bool,
    format_: QueryFormat | None,
    out: Path | None,
    explain: bool,
    version: int | None,
    engine: EngineName,
    master: str,
    memory: float | None,
) -> None:
    """Ask a store: a rule body, or SPARQL.

    QUERY is a text, @FILE, or - for standard input: '?x, ?y <- :advisor[?x, ?y], NOT :Student[?y]', or 'SELECT ...', 'ASK ...',
    'CONSTRUCT ...', 'DESCRIBE ...'. Prefixes of the rules of the store need not be declared. The answer to a question without variables is
    yes or no.
    """
    with show_progress() as progress:
        from hdlog.operations.queries import ask_store
        from hdlog.operations.work import Settings
        from hdlog.query.queries import Modifiers

        chosen = _choose_format(format_, out)
        keys = tuple(key.strip() for key in order.split(",") if key.strip())
        shown = ask_store(
            store,
            text,
            Settings(engine, master, memory, say=progress.say),
            Modifiers(keys, limit, offset, not matches),
            None if chosen == "table" or explain else chosen,
            out,
            version,
        )
    if explain:
        print(shown.explanation)
    elif shown.written is not None:
        sys.stdout.buffer.write(shown.written)
        sys.stdout.buffer.flush()
    elif out is not None:
        print(f"{len(shown.answers):,} answers written to {out}", file=sys.stderr)
    elif shown.is_question:
        print("yes" if shown.answers else "no")
    else:
        print_answers(shown.answers)


def _choose_format(given: QueryFormat | None, out: Path | None) -> QueryFormat:
    if given is not None:
        return given
    if out is None:
        return "table" if sys.stdout.isatty() else "csv"
    endings = {".csv": "csv", ".tsv": "tsv", ".json": "json", ".srj": "json", ".xml": "xml", ".srx": "xml"}
    endings |= {".parquet": "parquet", ".nt": "nt"}
    found = endings.get(Path(out.name.removesuffix(".gz").removesuffix(".zst")).suffix)
    if found is None:
        raise click.UsageError(f"{out} does not say its format; give --format")
    return cast(QueryFormat, found)


def print_answers(answers: object) -> None:
    """A table, with how many there are below it."""
    from rich.table import Table

    from hdlog.query.answers import Answers
    from hdlog.query.formats import shown_rows

    assert isinstance(answers, Answers)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in answers.names:
        table.add_column(name, overflow="fold")
    for row in shown_rows(answers, _SHOWN):
        table.add_row(*row)
    print_table(table)
    more = f", of which the first {_SHOWN:,} are shown" if len(answers) > _SHOWN else ""
    print(f"{len(answers):,} answers{more}" if len(answers) != 1 else "1 answer", file=sys.stderr)
