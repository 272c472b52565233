"""The command line: reads arguments, calls one function, prints what it returns."""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

import hdlog
from hdlog import interrupts
from hdlog.errors import INTERRUPTED, OPERATING_SYSTEM, HdlogError, ProgramError, UsageError
from hdlog.evaluation import commands
from hdlog.program.model import EvaluationMethod
from hdlog.report.check import as_table, describe
from hdlog.report.progress import Progress
from hdlog.text import ENDINGS, Dialect, Reading, examine_file
from hdlog.tuning import Tuning

app = typer.Typer(
    help=hdlog.__doc__,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
METHOD_HELP = "How rules are evaluated: join plans, hypertree decompositions, or for each rule the cheaper."
WITHOUT_HELP = "Improvements to switch off, with commas between: views, sharing, ... (see docs/engine.md)."
DATA_HELP = (
    "Files, folders or globs of facts: .nt, .nq, .ttl, .rdf, .csv, .tsv, .facts, .parquet, .jsonl, "
    "each also .gz or .zst; table:NAME is a table of Spark."
)
# Options that several commands have.
FactFolder = Annotated[Path, typer.Option("-F", "--fact-dir", help="Where .input relations are read from.")]
RuleDialect = Annotated[Dialect | None, typer.Option(help="The dialect of the rule files.")]
MemoryBudget = Annotated[
    float | None, typer.Option(help="Memory budget in GB; 80 % of the machine by default.")
]
MaxRounds = Annotated[int | None, typer.Option(help="Stop a component that takes more rounds.")]
MaxFacts = Annotated[int | None, typer.Option(help="Stop an update that finds more facts.")]
RuleMethod = Annotated[EvaluationMethod, typer.Option(help=METHOD_HELP)]
Without = Annotated[str, typer.Option(help=WITHOUT_HELP)]
SummaryAsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
Lenient = Annotated[
    bool,
    typer.Option("--lenient", help="Skip malformed lines and count them, in place of refusing the file."),
]
EngineOption = Annotated[
    Literal["auto", "columnar", "spark"],
    typer.Option(
        help="The embedded engine, Spark, or the one that suits the number of facts and the memory."
    ),
]
Master = Annotated[str, typer.Option(help="Spark's master: local[N], spark://host:port, yarn, ...")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the store that is there.")]
StoreFolder = Annotated[Path, typer.Argument(help="The folder of the store.")]
NewStore = Annotated[Path, typer.Option(help="The folder to make a store in.")]
ExportFormat = Literal["nt", "csv", "tsv", "facts", "parquet"]
WARNINGS_SHOWN = 3
PIPE = 10_000
"""Columns of a table that nobody looks at."""


app.add_typer(commands.generate, name="generate")
app.command()(commands.bench)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(f"hdlog {hdlog.__version__}")
        raise typer.Exit


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(help="Rule files: .dlog (RDFox Datalog) or .dl (Soufflé).")],
    dialect: Annotated[
        Dialect | None, typer.Option(help="The dialect of all files, whatever their ending.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object per file.")] = False,
    warnings: Annotated[
        bool, typer.Option("--warnings", help="Show every warning, not just the first of each kind.")
    ] = False,
) -> None:
    """Read rule files, say what is wrong with them and what they look like."""
    readings = [(str(path), examine_file(path, dialect)) for path in files]
    descriptions = [describe(name, reading) for name, reading in readings]
    if json_:
        for description in descriptions:
            print(json.dumps(description, ensure_ascii=False))
    else:
        for _, reading in readings:
            for line in problem_lines(reading, warnings):
                print(line, file=sys.stderr)
        print_table(as_table(descriptions))
    if any(reading.errors for _, reading in readings):
        raise typer.Exit(ProgramError.exit_code)


@app.command()
def run(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Rule files (.dlog, .dl) and fact files (.nt, .ttl, .nq, .rdf, .csv, .tsv, .facts, .parquet, .gz)."
        ),
    ],
    facts: FactFolder = Path(),
    out: Annotated[
        Path | None, typer.Option("-D", "--output-dir", help="Where results are written; - is the screen.")
    ] = None,
    dialect: RuleDialect = None,
    memory: MemoryBudget = None,
    max_rounds: MaxRounds = None,
    max_facts: MaxFacts = None,
    method: RuleMethod = "combined",
    without: Without = "",
    lenient: Lenient = False,
    json_: SummaryAsJson = False,
) -> None:
    """Materialise rules over facts and write the results.

    Soufflé programs read their .input relations and write their .output ones. RDFox programs write @output predicates, or
    all triples to materialised.nt in the output folder.
    """
    with _working() as progress:
        from hdlog.running import run_program

        summary = run_program(
            files,
            facts,
            out,
            dialect,
            None if memory is None else int(memory * 1e9),
            max_rounds,
            max_facts,
            progress,
            Tuning(method).without(without),
            lenient,
        )
    if json_ or out is None or str(out) != "-":
        _summarise(summary, json_)


@app.command()
def explain(
    files: Annotated[
        list[Path], typer.Argument(help="Rule files, and fact files to evaluate them over, if any.")
    ],
    facts: FactFolder = Path(),
    dialect: RuleDialect = None,
    method: RuleMethod = "combined",
    without: Without = "",
    html: Annotated[
        Path | None, typer.Option(help="Write a page with pictures to this file, in place of the text.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON in place of the text.")] = False,
) -> None:
    """Show how each rule is evaluated and why: its width, the method, the tree, and what each node keeps.

    With facts the rules are run, and actual rows and times stand beside the estimates.
    """
    with _working() as progress:
        from hdlog.report.explain import as_text
        from hdlog.report.page import page
        from hdlog.running import explain_program

        found = explain_program(files, facts, dialect, progress, Tuning(method).without(without))
    if html is not None:
        try:
            html.write_text(page(found, [str(f) for f in files]), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {html}: {error.strerror}") from None
        print(f"written to {html}", file=sys.stderr)
    if json_:
        print(json.dumps(found))
    elif html is None:
        print(as_text(found))


@app.command()
def load(
    data: Annotated[list[str], typer.Argument(help=DATA_HELP)],
    store: NewStore,
    overwrite: Overwrite = False,
    lenient: Lenient = False,
    master: Master = "local[*]",
    memory: Annotated[float | None, typer.Option(help="Memory of Spark in GB.")] = None,
    json_: SummaryAsJson = False,
) -> None:
    """Read files of facts into a new store, without reasoning."""
    with _working(store) as progress:
        from hdlog.storing import Settings
        from hdlog.storing import load as load_store

        settings = Settings(master=master, memory=memory, lenient=lenient, say=progress.say)
        summary = load_store(store, data, settings, overwrite)
    _summarise(summary, json_)


@app.command()
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
    with _working(store) as progress:
        from hdlog.storing import Settings
        from hdlog.storing import materialise as materialise_store

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
    _summarise(summary, json_)


@app.command()
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
    with _working(store) as progress:
        from hdlog.storing import Settings, change_lines
        from hdlog.storing import update as update_store

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
    if not quiet and not json_:
        for line in change_lines(change):
            print(line)
    _summarise(summary, json_)


@app.command()
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
    with _working() as progress:
        from hdlog.storing import Settings, export_store

        target = out
        if out is None and (format_ != "nt" or sys.stdout.isatty()):
            target = Path("export.nt" if format_ == "nt" else "export")
        elif str(out) == "-":
            target = None
        summary = export_store(store, format_, target, Settings(say=progress.say), overwrite)
    _summarise(summary, json_)


@app.command()
def info(
    store: StoreFolder,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON in place of the table.")] = False,
) -> None:
    """Tell what is in a store: facts per predicate, asserted and derived, terms, rules, size."""
    from hdlog.report.store import as_table as store_table
    from hdlog.storing import info as store_info

    found = store_info(store)
    if json_:
        print(json.dumps(found))
    else:
        print_table(store_table(found))


@app.command()
def stream(
    store: Annotated[Path, typer.Option(help="The folder of the store.")],
    changes: Annotated[Path, typer.Option(help="The folder in which files of changes appear.")],
    out: Annotated[
        Path | None, typer.Option(help="Where net changes are written; changes/ in the store by default.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop when all files that are there are done.")
    ] = False,
    every: Annotated[float, typer.Option(help="Seconds between looks at the folder.")] = 1.0,
    engine: EngineOption = "auto",
    master: Master = "local[*]",
    memory: MemoryBudget = None,
) -> None:
    """Follow a folder: files named *.add.* and *.delete.* become updates, each exactly once, whatever happens.

    A file may be in any format that `hdlog load` reads, as in monday.add.nt.gz. Write it elsewhere and move it in.
    """
    console = Console(stderr=True)
    with _working(store) as progress:
        from hdlog.storing import Settings
        from hdlog.streaming import follow

        settings = Settings(engine, master, memory, say=progress.say, tell=progress)

        def tell(line: str) -> None:
            console.print(line, highlight=False, markup=False)

        follow(store, changes, out, settings, once, every, tell)


@contextmanager
def _working(store: Path | None = None) -> Iterator[Progress]:
    """Progress in the terminal; an interrupt is a word on what has become of the store, and an exit code."""
    before = _snapshot(store)
    with interrupts.Guard(), Progress(Console(stderr=True)) as progress:
        try:
            with interrupts.let_through():
                progress.say("loading the engine (compiling it, the first time: a few seconds)")
                yield progress
            interrupted = interrupts.take()
        except KeyboardInterrupt:
            interrupted = True
            interrupts.take()  # one word for several of them
        progress.say("")
    if interrupted:
        if store is None:
            told = "nothing was written"
        elif _snapshot(store) == before:
            told = "everything is as it was before"
        else:
            told = f"that was too late, the change is in {store}"
        print(f"interrupted: {told}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)


def _snapshot(store: Path | None) -> int | None:
    """The number of a store's snapshot, if there is one."""
    try:
        found = json.loads((store / "manifest.json").read_bytes()) if store is not None else {}
        return found.get("snapshot")
    except (OSError, ValueError, AttributeError):
        return None


def print_table(table: Any) -> None:
    """A table as wide as the terminal, or, in a pipe, as it is."""
    console = Console() if sys.stdout.isatty() else Console(width=PIPE)
    with console.capture() as captured:
        console.print(table, highlight=False)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _summarise(summary: dict[str, Any], as_json: bool) -> None:
    lines = summary.pop("lines")
    if as_json:
        print(json.dumps(summary))
    else:
        for line in lines:
            Console(stderr=True, soft_wrap=True).print(line, highlight=False, markup=False)


def problem_lines(reading: Reading, every_warning: bool) -> list[str]:
    """All errors; of the warnings, unless every one is asked for, a few of each kind."""
    seen: Counter[str] = Counter()
    lines = []
    for problem in reading.problems:
        seen[problem.kind] += 1
        if every_warning or problem.severity == "error" or seen[problem.kind] <= WARNINGS_SHOWN:
            lines.append(str(problem))
    kinds = {p.kind for p in reading.problems if p.severity == "warning"}
    hidden = sum(max(0, seen[kind] - WARNINGS_SHOWN) for kind in kinds)
    if hidden and not every_warning:
        lines.append(f"... and {hidden} more warnings; --warnings shows all")
    return lines


def main() -> None:
    """Run the command; an error a user can cause is a message and an exit code, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except HdlogError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"{place}{error.strerror or error}", file=sys.stderr)
        sys.exit(OPERATING_SYSTEM)
