"""`hdlog load`, `materialise`, `update`, `export`, `info` and `stream`: stores."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from hdlog.commands.console import print_table, show_progress, summarise
from hdlog.commands.options import (
    DATA_HELP,
    EngineOption,
    ExportFormat,
    FactFolder,
    Lenient,
    Master,
    MaxFacts,
    MaxRounds,
    MemoryBudget,
    NewStore,
    Overwrite,
    RuleDialect,
    RuleMethod,
    StoreFolder,
    SummaryAsJson,
    Without,
)
from hdlog.dialects import ENDINGS
from hdlog.errors import INTERRUPTED, UsageError
from hdlog.tuning import Tuning


def load(
    data: Annotated[list[str], typer.Argument(help=DATA_HELP)],
    store: NewStore,
    overwrite: Overwrite = False,
    lenient: Lenient = False,
    master: Master = "local[*]",
    memory: Annotated[float | None, typer.Option(min=0.01, help="Memory of Spark in GB.")] = None,
    json_: SummaryAsJson = False,
) -> None:
    """Read files of facts into a new store, without reasoning."""
    with show_progress(store) as progress:
        from hdlog.operations.stores import load as load_store
        from hdlog.operations.work import Settings

        settings = Settings(master=master, memory=memory, lenient=lenient, say=progress.say)
        summary = load_store(store, data, settings, overwrite)
    summarise(summary, json_)


def materialise(
    files: Annotated[list[str], typer.Argument(help="Rule files (.dlog, .dl). " + DATA_HELP)],
    store: NewStore,
    facts: FactFolder = Path(),
    dialect: RuleDialect = None,
    overwrite: Overwrite = False,
    lenient: Lenient = False,
    engine: EngineOption = "auto",
    master: Master = "local[*]",
    memory: MemoryBudget = None,
    max_rounds: MaxRounds = None,
    max_facts: MaxFacts = None,
    method: RuleMethod = "combined",
    without: Without = "",
    json_: SummaryAsJson = False,
) -> None:
    """Read rules and files of facts, derive what follows, and keep it all in a new store."""
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


def update(
    store: StoreFolder,
    add: Annotated[list[str] | None, typer.Option(help="A file of facts to add; may be given again.")] = None,
    delete: Annotated[
        list[str] | None, typer.Option(help="A file of facts to delete; may be given again.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Do not print the facts that came and went.")
    ] = False,
    lenient: Lenient = False,
    engine: EngineOption = "auto",
    master: Master = "local[*]",
    memory: MemoryBudget = None,
    max_rounds: MaxRounds = None,
    max_facts: MaxFacts = None,
    json_: SummaryAsJson = False,
) -> None:
    """Add and delete facts, and print exactly what that changed: + for facts that came, - for those that went."""
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
        summary = update_store(store, add or [], delete or [], settings)
    change = summary.pop("change")
    try:
        if not quiet and not json_:
            for line in change_lines(change):
                print(line)
        summarise(summary, json_)
    except KeyboardInterrupt:
        print(f"interrupted: the change is in {store}, the rest of it was not printed", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def export(
    store: StoreFolder,
    format_: Annotated[ExportFormat, typer.Option("--format", help="What to write.")] = "nt",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The file (nt; - is standard output) or folder (csv, tsv, facts, parquet) to write to.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what is in the folder of tables.")
    ] = False,
    json_: SummaryAsJson = False,
) -> None:
    """Write all facts of a store, decoded: N-Triples to one file, tables to a folder with a file for each predicate.

    Without --out, N-Triples go to a pipe or, on a terminal, to export.nt; tables go to the folder export.
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


def info(
    store: StoreFolder,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON in place of the table.")] = False,
) -> None:
    """Tell what is in a store: facts per predicate, asserted and derived, terms, rules, size."""
    from hdlog.operations.stores import info as store_info
    from hdlog.report.store import as_table as store_table

    contents = store_info(store)
    if json_:
        print(json.dumps(contents))
    else:
        print_table(store_table(contents))


def stream(
    store: Annotated[Path, typer.Option(help="The folder of the store.")],
    changes: Annotated[Path, typer.Option(help="The folder in which files of changes appear.")],
    out: Annotated[
        Path | None, typer.Option(help="Where net changes are written; changes/ in the store by default.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop when all files that are there are done.")
    ] = False,
    every: Annotated[float, typer.Option(min=0.01, help="Seconds between looks at the folder.")] = 1.0,
    engine: EngineOption = "auto",
    master: Master = "local[*]",
    memory: MemoryBudget = None,
) -> None:
    """Follow a folder: files named *.add.* and *.delete.* become updates, each exactly once, whatever happens.

    A file may be in any format that `hdlog load` reads, as in monday.add.nt.gz. Write it elsewhere and move it in.
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
