"""`hdlog query` and others that ask a store."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, cast

import click

from hdlog.commands.console import print_table, show_progress
from hdlog.commands.options import (
    PATH,
    EngineChoice,
    at_version,
    engine_choice,
    memory_budget,
    one_of,
    store_folder,
)
from hdlog.errors import UsageError
from hdlog.places import Place

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
    store: Place,
    text: str,
    order: str,
    limit: int | None,
    offset: int,
    matches: bool,
    format_: QueryFormat | None,
    out: Path | None,
    explain: bool,
    version: int | None,
    where: EngineChoice,
    memory: float | None,
) -> None:
    """Ask a store: a rule body, or SPARQL.

    QUERY is a text, @FILE, or - for standard input: '?x, ?y <- :advisor[?x, ?y], NOT :Student[?y]', or 'SELECT ...', 'ASK ...',
    'CONSTRUCT ...', 'DESCRIBE ...'. Prefixes of the rules of the store need not be declared. The answer to a question without variables is
    yes or no.
    """
    with show_progress() as progress:
        from hdlog.operations.queries import ask_store
        from hdlog.query.queries import Modifiers

        chosen = _choose_format(format_, out)
        keys = tuple(key.strip() for key in order.split(",") if key.strip())
        shown = ask_store(
            store,
            text,
            where.settings(memory, say=progress.say),
            Modifiers(keys, limit, offset, not matches),
            None if chosen == "table" or explain else chosen,
            out,
            version,
            explain,
        )
    for line in shown.unknown:
        print(f"warning: {line}", file=sys.stderr)
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
        from hdlog.query.formats import shown_rows

        answers = shown.answers
        _print_rows(answers.names, shown_rows(answers, _SHOWN), len(answers), "answer")


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


def _print_rows(names: Sequence[str], rows: Iterable[Sequence[str]], count: int, noun: str) -> None:
    """The first rows as a table, with how many there are below it."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    print_table(table)
    more = f", of which the first {_SHOWN:,} are shown" if count > _SHOWN else ""
    print(f"{count:,} {noun}s{more}" if count != 1 else f"1 {noun}", file=sys.stderr)


SqlFormat = Literal["table", "csv", "tsv", "json", "parquet"]


@click.command()
@store_folder
@click.argument("statement")
@click.option(
    "--format", "format_", type=one_of(SqlFormat), help="A table on a terminal, CSV in a pipe, unless given."
)
@click.option(
    "--out", "-o", type=PATH, metavar="FILE", help="Where to write the rows; its ending says the format."
)
@at_version
@engine_choice
@memory_budget
def sql(
    store: Place,
    statement: str,
    format_: SqlFormat | None,
    out: Path | None,
    version: int | None,
    where: EngineChoice,
    memory: float | None,
) -> None:
    """Ask a store in SQL, through DuckDB.

    STATEMENT is a text, @FILE, or - for standard input. Each predicate is a view, with columns as they are declared, or c0, c1, ...; an IRI goes by its
    last part too, where only one has it.
    """
    with show_progress() as progress:
        from hdlog.operations.queries import ask_sql, write_rows

        chosen = _choose_format(format_, out)
        rows = ask_sql(store, statement, where.settings(memory, say=progress.say), version)
        if out is not None:
            from hdlog.writing.files import write_whole

            with write_whole(out) as file:
                write_rows(rows, chosen, file)
    if out is not None:
        print(f"{rows.num_rows:,} rows written to {out}", file=sys.stderr)
    elif chosen == "table":
        columns = [column.to_pylist() for column in rows.slice(0, _SHOWN).columns]
        texts = [["" if v is None else str(v) for v in row] for row in zip(*columns, strict=True)]
        _print_rows(rows.column_names, texts, rows.num_rows, "row")
    else:
        write_rows(rows, chosen, sys.stdout.buffer)
        sys.stdout.buffer.flush()


@click.command()
@store_folder
@click.argument("fact")
@click.option(
    "--all", "several", type=click.IntRange(min=1), default=1, metavar="N", help="Up to N derivations."
)
@click.option("--json", "json_", is_flag=True, help="Print JSON in place of text.")
@click.option("--html", type=PATH, metavar="FILE", help="Write a page with a picture.")
@at_version
@engine_choice
@memory_budget
def why(
    store: Place,
    fact: str,
    several: int,
    json_: bool,
    html: Path | None,
    version: int | None,
    where: EngineChoice,
    memory: float | None,
) -> None:
    """Tell how a fact comes about.

    FACT is written as in rules, ':knows[:ann, :bob]'; prefixes of the rules of the store need not be declared. What is told is a smallest derivation
    down to asserted facts, with the rule and its place at each step.
    """
    with show_progress() as progress:
        from hdlog.operations.queries import explain_fact

        found = explain_fact(store, fact, where.settings(memory, say=progress.say), several, version)
    from hdlog.report.proofs import why_page, why_text

    if html is not None:
        html.write_text(why_page(found), encoding="utf-8")
        print(f"written to {html}", file=sys.stderr)
    if json_:
        print(json.dumps(found))
    elif html is None:
        print(why_text(found))


@click.command("why-not")
@store_folder
@click.argument("fact")
@click.option("--json", "json_", is_flag=True, help="Print JSON in place of text.")
@at_version
@engine_choice
@memory_budget
def why_not(
    store: Place,
    fact: str,
    json_: bool,
    version: int | None,
    where: EngineChoice,
    memory: float | None,
) -> None:
    """Tell what is missing for a fact to hold.

    For each rule that could derive it, what of its body matches, and where that ends, with values that were tried.
    """
    with show_progress() as progress:
        from hdlog.operations.queries import explain_absence

        found = explain_absence(store, fact, where.settings(memory, say=progress.say), version)
    from hdlog.report.proofs import why_not_text

    print(json.dumps(found) if json_ else why_not_text(found))


@click.command("what-if")
@store_folder
@click.option("--add", multiple=True, metavar="FILE", help="A file of facts to add; may be given again.")
@click.option(
    "--delete", multiple=True, metavar="FILE", help="A file of facts to delete; may be given again."
)
@click.option(
    "--from", "changes", multiple=True, metavar="FILE", help="A file of lines with + or - and a fact."
)
@at_version
@engine_choice
@memory_budget
def what_if(
    store: Place,
    add: tuple[str, ...],
    delete: tuple[str, ...],
    changes: tuple[str, ...],
    version: int | None,
    where: EngineChoice,
    memory: float | None,
) -> None:
    """Print what an update would change, exactly, without making it.

    Lines are as `hdlog update` prints them.
    """
    if not add and not delete and not changes:
        raise UsageError("nothing to try; name files with --add, --delete or --from")
    if changes and (add or delete):
        raise UsageError("--from says what comes and what goes; try --add and --delete by themselves")
    with show_progress() as progress:
        from hdlog.operations.queries import try_update
        from hdlog.operations.stores import change_lines

        settings = where.settings(memory, say=progress.say, tell=progress)
        change = try_update(store, add, delete, settings, changes, version)
    for line in change_lines(change):
        print(line)
    print(f"{change}, if it were made", file=sys.stderr)
