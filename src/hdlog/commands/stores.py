"""`hdlog load`, `materialise`, `update`, `export`, `info` and `stream`: stores."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hdlog.commands.console import print_table, show_progress, summarise
from hdlog.commands.options import (
    PATH,
    PLACE,
    EngineChoice,
    ExportFormat,
    at_version,
    engine_choice,
    evaluation,
    fact_folder,
    lenient,
    limits,
    mapping,
    memory_budget,
    new_store,
    one_of,
    overwrite,
    rule_dialect,
    store_folder,
    summary_as_json,
)
from hdlog.dialects import ENDINGS, Dialect
from hdlog.errors import INTERRUPTED, OPERATING_SYSTEM, UsageError
from hdlog.places import Place
from hdlog.tuning import Method, Tuning

quiet_option = click.option("--quiet", is_flag=True, help="Do not print the facts that came and went.")


def _everything(data: Sequence[str], mapped: Sequence[str]) -> list[Any]:
    """Data as it is named, and as it is mapped."""
    from hdlog.reading.mapping import read_mapping

    return [*data, *map(read_mapping, mapped)]


@click.command()
@click.argument("data", nargs=-1)
@mapping
@new_store
@overwrite
@lenient
@engine_choice
@memory_budget
@summary_as_json
def load(
    data: tuple[str, ...],
    mapped: tuple[str, ...],
    store: Place,
    overwrite: bool,
    lenient: bool,
    where: EngineChoice,
    memory: float | None,
    json_: bool,
) -> None:
    """Read files of facts into a new store, without reasoning.

    DATA are files, folders or globs: .nt, .nq, .ttl, .trig, .rdf, .csv, .tsv, .facts, .parquet, .jsonl, each also .gz or .zst; table:NAME is a
    table of Spark.
    """
    with show_progress(store) as progress:
        from hdlog.operations.stores import load as load_store

        settings = where.settings(memory, lenient=lenient, say=progress.say)
        given = _everything(data, mapped)
        if not given:
            raise UsageError("name files of facts, or a table by --map")
        summary = load_store(store, given, settings, overwrite)
    summarise(summary, json_)


def _check_nothing_else(*names: str) -> None:
    """Refuse what only those can say who begin."""
    context = click.get_current_context()
    said = [name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if said:
        option = next(p for p in context.command.params if p.name == said[0])
        raise UsageError(
            f"--resume goes on with the rules and the facts that were read, as it began; leave out {option.opts[0]}"
        )


@click.command()
@click.argument("files", nargs=-1)
@mapping
@new_store
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with a materialisation on Spark that was killed; without files, which were read.",
)
@fact_folder
@rule_dialect
@overwrite
@lenient
@engine_choice
@memory_budget
@limits
@evaluation
@summary_as_json
def materialise(
    files: tuple[str, ...],
    mapped: tuple[str, ...],
    store: Place,
    resume: bool,
    facts: Path,
    dialect: Dialect | None,
    overwrite: bool,
    lenient: bool,
    where: EngineChoice,
    memory: float | None,
    max_rounds: int | None,
    max_facts: int | None,
    method: Method,
    without: str,
    json_: bool,
) -> None:
    """Read rules and facts into a new store, with all that follows.

    FILES are rule files (.dlog, .dl), and facts as `hdlog load` takes them.
    """
    with show_progress(store) as progress:
        from hdlog.operations.stores import materialise as materialise_store
        from hdlog.operations.stores import resume as resume_materialisation

        rules = [Path(f) for f in files if f.endswith(tuple(ENDINGS))]
        data = [f for f in files if not f.endswith(tuple(ENDINGS))]
        settings = where.settings(
            memory,
            lenient=lenient,
            tuning=Tuning(method).without(without),
            max_rounds=max_rounds,
            max_facts=max_facts,
            say=progress.say,
            tell=progress,
        )
        if resume:
            _check_nothing_else(
                "files", "mapped", "facts", "dialect", "overwrite", "lenient", "method", "without"
            )
            summary = resume_materialisation(store, settings)
        elif not files:
            raise UsageError("name rule files and facts, or say --resume")
        else:
            everything = _everything(data, mapped)
            summary = materialise_store(rules, everything, store, settings, facts, dialect, overwrite)
    summarise(summary, json_)


@click.command()
@store_folder
@click.option("--add", multiple=True, metavar="FILE", help="A file of facts to add; may be given again.")
@click.option(
    "--delete", multiple=True, metavar="FILE", help="A file of facts to delete; may be given again."
)
@click.option(
    "--from",
    "changes",
    multiple=True,
    metavar="FILE",
    help="A file of lines with + or - and a fact, as this command prints them; may be given again.",
)
@click.option("--sparql", metavar="TEXT", help="SPARQL Update: a text, @FILE, or - for standard input.")
@quiet_option
@lenient
@engine_choice
@memory_budget
@limits
@summary_as_json
def update(
    store: Place,
    add: tuple[str, ...],
    delete: tuple[str, ...],
    changes: tuple[str, ...],
    sparql: str | None,
    quiet: bool,
    lenient: bool,
    where: EngineChoice,
    memory: float | None,
    max_rounds: int | None,
    max_facts: int | None,
    json_: bool,
) -> None:
    """Add and delete facts, and print exactly what that changed.

    A line that begins with + is a fact that came, one with - a fact that went, asserted and derived facts alike.
    """
    if not add and not delete and not changes and sparql is None:
        raise UsageError("nothing to do; name files with --add, --delete or --from, or say it in --sparql")
    if sparql is not None and (add or delete or changes):
        raise UsageError(
            "--sparql says all of what comes and goes; give --add, --delete and --from in an update of their own"
        )
    if changes and (add or delete):
        raise UsageError(
            "--from says what comes and what goes; give --add and --delete in an update of their own"
        )
    with show_progress(store) as progress:
        from hdlog.operations.stores import update as update_store

        settings = where.settings(
            memory,
            lenient=lenient,
            max_rounds=max_rounds,
            max_facts=max_facts,
            say=progress.say,
            tell=progress,
        )
        summary = update_store(store, add, delete, settings, changes, sparql)
    _tell(store, summary, quiet, json_)


def _tell(store: Place, summary: dict[str, Any], quiet: bool, as_json: bool) -> None:
    """Print what changed."""
    from hdlog.operations.stores import change_lines

    change = summary.pop("change")
    try:
        if not quiet and not as_json:
            for line in change_lines(change):
                print(line)
        summarise(summary, as_json)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print(f"interrupted: {_unsaid(store)}", file=sys.stderr)
        raise click.exceptions.Exit(INTERRUPTED) from None
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        print(f"cannot print what changed: {error.strerror}; {_unsaid(store)}", file=sys.stderr)
        # What waits in the buffer would fail again when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(OPERATING_SYSTEM) from None


def _unsaid(store: Place) -> str:
    return f"the change is in {store}, the rest of it was not printed"


@click.command()
@store_folder
@click.option(
    "--add", type=PATH, multiple=True, metavar="FILE", help="A rule file to add; may be given again."
)
@click.option(
    "--remove",
    type=PATH,
    multiple=True,
    metavar="FILE",
    help="A file of rules to remove; may be given again.",
)
@click.option("--list", "list_", is_flag=True, help="Print the rules of the store.")
@at_version
@quiet_option
@rule_dialect
@engine_choice
@memory_budget
@limits
@summary_as_json
def rules(
    store: Place,
    add: tuple[Path, ...],
    remove: tuple[Path, ...],
    list_: bool,
    version: int | None,
    quiet: bool,
    dialect: Dialect | None,
    where: EngineChoice,
    memory: float | None,
    max_rounds: int | None,
    max_facts: int | None,
    json_: bool,
) -> None:
    """Add rules to a store and remove others, or list them.

    What follows changes with them, and exactly that is printed, as `hdlog update` does. Rules to remove may have other names for their
    variables.
    """
    if list_ == bool(add or remove):
        raise UsageError("name files with --add or --remove, or say --list")
    with show_progress(None if list_ else store) as progress:
        from hdlog.operations.stores import change_rules, list_rules

        if list_:
            text = list_rules(store, version)
        else:
            settings = where.settings(
                memory,
                max_rounds=max_rounds,
                max_facts=max_facts,
                say=progress.say,
                tell=progress,
            )
            summary = change_rules(store, add, remove, settings, dialect)
    if list_:
        print(text)
    else:
        _tell(store, summary, quiet, json_)


@click.command()
@store_folder
@click.option(
    "--format", "format_", type=one_of(ExportFormat), default="nt", show_default=True, help="What to write."
)
@click.option(
    "--out",
    "-o",
    type=PATH,
    help="The file (nt; - is standard output) or folder (csv, tsv, facts, parquet) to write to.",
)
@click.option(
    "--table",
    "database",
    metavar="SCHEMA",
    help="Write tables of Spark's catalog in place of files, one for each predicate, into this schema.",
)
@click.option("--overwrite", is_flag=True, help="Replace what is in the folder of tables, or in the schema.")
@at_version
@engine_choice
@memory_budget
@summary_as_json
def export(
    store: Place,
    format_: ExportFormat,
    out: Path | None,
    database: str | None,
    overwrite: bool,
    version: int | None,
    where: EngineChoice,
    memory: float | None,
    json_: bool,
) -> None:
    """Write the facts of a store to files, or to tables of Spark.

    N-Triples go to one file, tables to a folder with a file for each predicate. Without --out, N-Triples go to a pipe or, on a terminal, to export.nt; tables go to the folder export.
    """
    with show_progress() as progress:
        from hdlog.operations.stores import export_store, export_to_catalog

        settings = where.settings(memory, say=progress.say)
        if database is not None:
            if out is not None:
                raise UsageError("--table writes to Spark's catalog, --out to files; say one of the two")
            summarise(export_to_catalog(store, database, settings, overwrite, version), json_)
            return
        target = out
        if out is None and (format_ != "nt" or sys.stdout.isatty()):
            target = Path("export.nt" if format_ == "nt" else "export")
        elif str(out) == "-":
            target = None
        summary = export_store(store, format_, target, settings, overwrite, version)
    summarise(summary, json_)


@click.command()
@store_folder
@at_version
@click.option("--json", "json_", is_flag=True, help="Print JSON in place of the table.")
def info(store: Place, version: int | None, json_: bool) -> None:
    """Tell what is in a store.

    That is facts per predicate, asserted and derived, terms, rules, and sizes.
    """
    from hdlog.operations.stores import info as store_info
    from hdlog.report.store import as_table as store_table

    contents = store_info(store, version)
    if json_:
        print(json.dumps(contents))
    else:
        print_table(store_table(contents))


@click.command()
@store_folder
@click.option("--json", "json_", is_flag=True, help="Print JSON in place of the table.")
def log(store: Place, json_: bool) -> None:
    """Tell what has happened to a store.

    That is when each version was made, by whom, and how many facts came and went. Versions that are kept can be read with --at.
    """
    from hdlog.operations.stores import log as store_log
    from hdlog.report.store import log_table

    entries = store_log(store)
    if json_:
        print(json.dumps(entries))
    else:
        print_table(log_table(entries))


@click.command()
@store_folder
@click.option(
    "--to", "version", type=int, required=True, metavar="VERSION", help="The version to go back to."
)
@summary_as_json
def rollback(store: Place, version: int, json_: bool) -> None:
    """Have a store say again what it said in an older version.

    That is a new version, so it can be taken back as well.
    """
    from hdlog.operations.stores import rollback as roll_back

    summarise(roll_back(store, version), json_)


@click.command()
@store_folder
@click.option(
    "--keep", type=click.IntRange(min=1), metavar="NUMBER", help="How many versions are kept from now on."
)
@engine_choice
@memory_budget
@summary_as_json
def compact(store: Place, keep: int | None, where: EngineChoice, memory: float | None, json_: bool) -> None:
    """Write a store anew, each fact once.

    Updates do so by themselves when changes have piled up. Files of older versions go when these are kept no more.
    """
    with show_progress(store) as progress:
        from hdlog.operations.stores import compact as compact_store

        summary = compact_store(store, where.settings(memory, say=progress.say), keep)
    summarise(summary, json_)


@click.command()
@store_folder
@click.option(
    "--deep", is_flag=True, help="Also evaluate the rules anew, and compare all facts and supports."
)
@at_version
@memory_budget
@summary_as_json
def verify(store: Place, deep: bool, version: int | None, memory: float | None, json_: bool) -> None:
    """Read all of a store, and compare it with its checksums."""
    with show_progress() as progress:
        from hdlog.operations.stores import verify as verify_store
        from hdlog.operations.work import Settings

        summary = verify_store(store, Settings("columnar", memory=memory, say=progress.say), deep, version)
    summarise(summary, json_)


@click.command()
@click.option("--store", type=PLACE, required=True, metavar="FOLDER", help="The folder of the store.")
@click.option(
    "--changes",
    type=PATH,
    required=True,
    metavar="FOLDER",
    help="The folder in which files of changes appear.",
)
@click.option(
    "--out",
    type=PATH,
    metavar="FOLDER",
    help="Where net changes are written; changes/ in the store by default.",
)
@click.option("--once", is_flag=True, help="Stop when all files that are there are done.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.01),
    default=1.0,
    show_default=True,
    help="Seconds between looks at the folder.",
)
@engine_choice
@memory_budget
def stream(
    store: Place,
    changes: Path,
    out: Path | None,
    once: bool,
    every: float,
    where: EngineChoice,
    memory: float | None,
) -> None:
    """Follow a folder whose files become updates of a store.

    Files named *.add.* and *.delete.* are added and deleted, each exactly once, whatever happens. A file may be in any format that `hdlog load` reads, as in monday.add.nt.gz. Write it elsewhere and move it in.
    """
    from rich.console import Console

    console = Console(stderr=True)
    with show_progress(store, "each batch that was told of is in the store, and nothing else") as progress:
        from hdlog.operations.stream import follow

        settings = where.settings(memory, say=progress.say, tell=progress)

        def tell(line: str) -> None:
            console.print(line, highlight=False, markup=False)

        follow(store, changes, out, settings, once, every, tell)
