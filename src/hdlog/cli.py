"""The command line: reads arguments, calls one function, prints what it returns."""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import hdlog
from hdlog.errors import HdlogError, ProgramError, UsageError
from hdlog.plan.tuning import Tuning
from hdlog.program.model import EvaluationMethod
from hdlog.report.check import as_table, describe
from hdlog.report.progress import Progress
from hdlog.text import Dialect, Reading, examine_file

app = typer.Typer(
    help=hdlog.__doc__,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
METHOD_HELP = "How rules are evaluated: join plans, hypertree decompositions, or for each rule the cheaper."
WITHOUT_HELP = "Improvements to switch off, with commas between: views, sharing, ... (see docs/engine.md)."
WARNINGS_SHOWN = 3
INTERRUPTED = 130


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
        Console(soft_wrap=True).print(as_table(descriptions), highlight=False)
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
    facts: Annotated[
        Path, typer.Option("-F", "--fact-dir", help="Where .input relations are read from.")
    ] = Path(),
    out: Annotated[
        Path | None, typer.Option("-D", "--output-dir", help="Where results are written; - is the screen.")
    ] = None,
    dialect: Annotated[Dialect | None, typer.Option(help="The dialect of the rule files.")] = None,
    memory: Annotated[
        float | None, typer.Option(help="Memory budget in GB; 80 % of the machine by default.")
    ] = None,
    max_rounds: Annotated[int | None, typer.Option(help="Stop a component that takes more rounds.")] = None,
    max_facts: Annotated[int | None, typer.Option(help="Stop an update that finds more facts.")] = None,
    method: Annotated[EvaluationMethod, typer.Option(help=METHOD_HELP)] = "combined",
    without: Annotated[str, typer.Option(help=WITHOUT_HELP)] = "",
    json_: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Materialise rules over facts and write the results.

    Soufflé programs read their .input relations and write their .output ones. RDFox programs write @output predicates, or
    all triples to materialised.nt in the output folder.
    """
    console = Console(stderr=True)
    with Progress(console) as progress:
        progress.say("loading the engine (compiling it, the first time: a few seconds)")
        from hdlog.running import run_program

        try:
            summary = run_program(
                files,
                facts,
                out,
                dialect,
                int(memory * 1e9) if memory else None,
                max_rounds,
                max_facts,
                progress,
                Tuning(method).without(without),
            )
        except KeyboardInterrupt:
            progress.say("")
            print("interrupted: nothing was written", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
    if json_:
        print(json.dumps(summary))
    elif out is None or str(out) != "-":
        for line in summary["lines"]:
            console.print(line, highlight=False, markup=False)


@app.command()
def explain(
    files: Annotated[
        list[Path], typer.Argument(help="Rule files, and fact files to evaluate them over, if any.")
    ],
    facts: Annotated[
        Path, typer.Option("-F", "--fact-dir", help="Where .input relations are read from.")
    ] = Path(),
    dialect: Annotated[Dialect | None, typer.Option(help="The dialect of the rule files.")] = None,
    method: Annotated[EvaluationMethod, typer.Option(help=METHOD_HELP)] = "combined",
    without: Annotated[str, typer.Option(help=WITHOUT_HELP)] = "",
    html: Annotated[
        Path | None, typer.Option(help="Write a page with pictures to this file, in place of the text.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON in place of the text.")] = False,
) -> None:
    """Show how each rule is evaluated and why: its width, the method, the tree, and what each node keeps.

    With facts the rules are run, and actual rows and times stand beside the estimates.
    """
    with Progress(Console(stderr=True)) as progress:
        progress.say("loading the engine (compiling it, the first time: a few seconds)")
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
