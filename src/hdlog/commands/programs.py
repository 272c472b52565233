"""`hdlog check`, `run` and `explain`: programs, and facts in files."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from hdlog.commands.console import print_table, show_progress, summarise
from hdlog.commands.options import (
    PATH,
    evaluation,
    fact_folder,
    lenient,
    limits,
    memory_budget,
    one_of,
    rule_dialect,
    summary_as_json,
)
from hdlog.dialects import Dialect
from hdlog.errors import ProgramError, UsageError
from hdlog.tuning import Method, Tuning

if TYPE_CHECKING:
    from hdlog.text import Reading

WARNINGS_SHOWN = 3


@click.command()
@click.argument("files", nargs=-1, required=True, type=PATH)
@click.option("--dialect", type=one_of(Dialect), help="The dialect of all files, whatever their ending.")
@click.option("--json", "json_", is_flag=True, help="Print one JSON object per file.")
@click.option("--warnings", is_flag=True, help="Show every warning, not just the first of each kind.")
def check(files: tuple[Path, ...], dialect: Dialect | None, json_: bool, warnings: bool) -> None:
    """Read rule files and say what is wrong with them.

    FILES are .dlog (RDFox Datalog), .dl (Soufflé) or .owl (an ontology). A table tells what the programs look like. Several files are read together, as `hdlog run` does: what one declares, the others may use.
    """
    from hdlog.report.check import as_table, describe
    from hdlog.text import examine_files

    names = map(str, files)
    readings = list(zip(names, examine_files(files, dialect), strict=True))
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
        raise click.exceptions.Exit(ProgramError.exit_code)


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


@click.command()
@click.argument("files", nargs=-1, required=True, type=PATH)
@fact_folder
@click.option(
    "-D",
    "--output-dir",
    "out",
    type=PATH,
    metavar="FOLDER",
    help="Where results are written; - is the screen.",
)
@rule_dialect
@memory_budget
@limits
@evaluation
@lenient
@summary_as_json
def run(
    files: tuple[Path, ...],
    facts: Path,
    out: Path | None,
    dialect: Dialect | None,
    memory: float | None,
    max_rounds: int | None,
    max_facts: int | None,
    method: Method,
    without: str,
    lenient: bool,
    json_: bool,
) -> None:
    """Materialise rules over facts and write the results.

    FILES are rule files (.dlog, .dl) and fact files (.nt, .ttl, .nq, .trig, .rdf, .csv, .tsv, .facts, .parquet, .jsonl, each also .gz or .zst).
    Soufflé programs read their .input relations and write their .output ones. RDFox programs write @output predicates, or
    all triples to materialised.nt in the output folder.
    """
    with show_progress() as progress:
        from hdlog.operations.run import run_program

        summary = run_program(
            list(files),
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
    summarise(summary, json_)


@click.command()
@click.argument("files", nargs=-1, required=True, type=PATH)
@fact_folder
@rule_dialect
@evaluation
@click.option(
    "--html",
    type=PATH,
    metavar="FILE",
    help="Write a page with pictures to this file, in place of the text.",
)
@click.option("--json", "json_", is_flag=True, help="Print JSON in place of the text.")
def explain(
    files: tuple[Path, ...],
    facts: Path,
    dialect: Dialect | None,
    method: Method,
    without: str,
    html: Path | None,
    json_: bool,
) -> None:
    """Show how each rule is evaluated, and why.

    That is its width, the method, the tree, and what each node keeps. FILES are rule files, and fact files to evaluate them over, if any. With facts the rules are run, and actual rows and times stand beside the estimates. In place of files it may be a store: what it was planned with, and which nodes it has.
    """
    with show_progress() as progress:
        from hdlog.operations.run import explain_program
        from hdlog.operations.stores import explain_store
        from hdlog.report.explain import as_text
        from hdlog.report.page import page

        if len(files) == 1 and files[0].is_dir():
            explanation = explain_store(files[0])
        else:
            tuning = Tuning(method).without(without)
            explanation = explain_program(list(files), facts, dialect, progress, tuning)
    if html is not None:
        try:
            html.write_text(page(explanation, [str(f) for f in files]), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {html}: {error.strerror}") from None
        print(f"written to {html}", file=sys.stderr)
    if json_:
        print(json.dumps(explanation))
    elif html is None:
        print(as_text(explanation))


Level = Literal["owl-rl", "rdfs"]


@click.command()
@click.argument("ontology", type=PATH)
@click.option(
    "--level",
    type=one_of(Level),
    default="owl-rl",
    show_default=True,
    help="All that OWL 2 RL says in rules, or what RDFS does.",
)
@click.option("--out", "-o", type=PATH, metavar="FILE", help="Where to write the rules.")
def owl(ontology: Path, level: Level, out: Path | None) -> None:
    """Translate an ontology to rules.

    ONTOLOGY is RDF/XML, Turtle or N-Triples. Axioms of OWL 2 RL become rules about the classes and properties that they name, individuals become facts, and
    what cannot be said in rules is listed. `hdlog run ontology.owl data.ttl` does so by itself. What must not be is derived as a fact of
    <urn:hdlog:inconsistency>.
    """
    from hdlog.text import rule_texts
    from hdlog.writing.files import write_whole

    (text,) = rule_texts([ontology], level)
    if out is None:
        print(text.source.text, end="")
    else:
        with write_whole(out) as file:
            file.write(text.source.text.encode())
    for line in text.left_out:
        print(f"left out: {line}", file=sys.stderr)
