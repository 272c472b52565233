"""`hdlog load`, `materialise`, `update`, `export`, `info` and `stream`: stores."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from hdlog.commands.console import print_table, show_progress, summarise
from hdlog.commands.options import (
    PATH,
    EngineName,
    ExportFormat,
    engine_choice,
    evaluation,
    fact_folder,
    lenient,
    limits,
    memory_budget,
    new_store,
    one_of,
    overwrite,
    rule_dialect,
    store_folder,
    summary_as_json,
)
from hdlog.dialects import ENDINGS, Dialect
from hdlog.errors import INTERRUPTED, UsageError
from hdlog.tuning import Method, Tuning


@click.command()
@click.argument("data", nargs=-1, required=True)
@new_store
@overwrite
@lenient
@click.option(
    "--master",
    default="local[*]",
    show_default=True,
    help="Spark's master: local[N], spark://host:port, yarn, ...",
)
@click.option("--memory", type=click.FloatRange(min=0.01), metavar="GB", help="Memory of Spark in GB.")
@summary_as_json
def load(
    data: tuple[str, ...],
    store: Path,
    overwrite: bool,
    lenient: bool,
    master: str,
    memory: float | None,
    json_: bool,
) -> None:
    """Read files of facts into a new store, without reasoning.

    DATA are files, folders or globs: .nt, .nq, .ttl, .rdf, .csv, .tsv, .facts, .parquet, .jsonl, each also .gz or .zst; table:NAME is a
    table of Spark.
    """
    with show_progress(store) as progress:
        from hdlog.operations.stores import load as load_store
        from hdlog.operations.work import Settings

        settings = Settings(master=master, memory=memory, lenient=lenient, say=progress.say)
        summary = load_store(store, data, settings, overwrite)
    summarise(summary, json_)


@click.command()
@click.argument("files", nargs=-1, required=True)
@new_store
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
    store: Path,
    facts: Path,
    dialect: Dialect | None,
    overwrite: bool,
    lenient: bool,
    engine: EngineName,
    master: str,
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
        from hdlog.operations.work import Settings

        rules = [Path(f) for f in files if f.endswith(tuple(ENDINGS))]
        data = [f for f in files if not f.endswith(tuple(ENDINGS))]
        settings = Settings(
            engine,
            master,
            memory,
            lenient,
            Tuning(method).without(without),
            max_rounds,
            max_facts,
            progress.say,
            progress,
        )
        summary = materialise_store(rules, data, store, settings, facts, dialect, overwrite)
    summarise(summary, json_)


@click.command()
@store_folder
@click.option("--add", multiple=True, metavar="FILE", help="A file of facts to add; may be given again.")
@click.option(
    "--delete", multiple=True, metavar="FILE", help="A file of facts to delete; may be given again."
)
@click.option("--quiet", is_flag=True, help="Do not print the facts that came and went.")
@lenient
@engine_choice
@memory_budget
@limits
@summary_as_json
def update(
    store: Path,
    add: tuple[str, ...],
    delete: tuple[str, ...],
    quiet: bool,
    lenient: bool,
    engine: EngineName,
    master: str,
    memory: float | None,
    max_rounds: int | None,
    max_facts: int | None,
    json_: bool,
) -> None:
    """Add and delete facts, and print exactly what that changed.

    A line that begins with + is a fact that came, one with - a fact that went, asserted and derived facts alike.
    """
    if not add and not delete:
        raise UsageError("nothing to do; name files with --add or --delete")
    with show_progress(store) as progress:
        from hdlog.operations.stores import change_lines
        from hdlog.operations.stores import update as update_store
        from hdlog.operations.work import Settings

        settings = Settings(
            engine,
            master,
            memory,
            lenient,
            max_rounds=max_rounds,
            max_facts=max_facts,
            say=progress.say,
            tell=progress,
        )
        summary = update_store(store, add, delete, settings)
    change = summary.pop("change")
    try:
        if not quiet and not json_:
            for line in change_lines(change):
                print(line)
        summarise(summary, json_)
    except KeyboardInterrupt:
        print(f"interrupted: the change is in {store}, the rest of it was not printed", file=sys.stderr)
        raise click.exceptions.Exit(INTERRUPTED) from None


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
@click.option("--overwrite", is_flag=True, help="Replace what is in the folder of tables.")
@summary_as_json
def export(store: Path, format_: ExportFormat, out: Path | None, overwrite: bool, json_: bool) -> None:
    """Write the facts of a store to files.

    N-Triples go to one file, tables to a folder with a file for each predicate. Without --out, N-Triples go to a pipe or, on a terminal, to export.nt; tables go to the folder export.
    """
    with show_progress() as progress:
        from hdlog.operations.stores import export_store
        from hdlog.operations.work import Settings

        target = out
        if out is None and (format_ != "nt" or sys.stdout.isatty()):
            target = Path("export.nt" if format_ == "nt" else "export")
        elif str(out) == "-":
            target = None
        summary = export_store(store, format_, target, Settings(say=progress.say), overwrite)
    summarise(summary, json_)


@click.command()
@store_folder
@click.option("--json", "json_", is_flag=True, help="Print JSON in place of the table.")
def info(store: Path, json_: bool) -> None:
    """Tell what is in a store.

    That is facts per predicate, asserted and derived, terms, rules, and sizes.
    """
    from hdlog.operations.stores import info as store_info
    from hdlog.report.store import as_table as store_table

    contents = store_info(store)
    if json_:
        print(json.dumps(contents))
    else:
        print_table(store_table(contents))


@click.command()
@click.option("--store", type=PATH, required=True, metavar="FOLDER", help="The folder of the store.")
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
    store: Path,
    changes: Path,
    out: Path | None,
    once: bool,
    every: float,
    engine: EngineName,
    master: str,
    memory: float | None,
) -> None:
    """Follow a folder whose files become updates of a store.

    Files named *.add.* and *.delete.* are added and deleted, each exactly once, whatever happens. A file may be in any format that `hdlog load` reads, as in monday.add.nt.gz. Write it elsewhere and move it in.
    """
    from rich.console import Console

    console = Console(stderr=True)
    with show_progress(store) as progress:
        from hdlog.operations.stream import follow
        from hdlog.operations.work import Settings

        settings = Settings(engine, master, memory, say=progress.say, tell=progress)

        def tell(line: str) -> None:
            console.print(line, highlight=False, markup=False)

        follow(store, changes, out, settings, once, every, tell)
