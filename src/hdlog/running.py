"""One run from files to files: what `hdlog run` does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hdlog.api import Reasoner
from hdlog.engines.columnar.facts import Facts
from hdlog.engines.decode import FactTable
from hdlog.engines.load import Collector, InputError
from hdlog.errors import UsageError, did_you_mean
from hdlog.maintenance.trace import Event
from hdlog.pipeline.files import input_files, write_relation, write_triples
from hdlog.pipeline.reading import find_splits, read_split
from hdlog.pipeline.splits import FORMATS, Split
from hdlog.plan.tuning import Tuning
from hdlog.program.model import Predicate, Program
from hdlog.program.types import attribute_types
from hdlog.text import ENDINGS, Dialect, read


def run_program(
    files: list[Path],
    fact_folder: Path,
    out: Path | None,
    dialect: Dialect | None,
    memory: int | None,
    max_rounds: int | None,
    max_facts: int | None,
    progress: Callable[[Event], None],
    tuning: Tuning,
) -> dict[str, Any]:
    """Materialise and write; returns what a summary tells."""
    program = read_rules(files, dialect)
    reasoner = Reasoner(
        program, memory=memory, max_rounds=max_rounds, max_facts=max_facts, progress=progress, tuning=tuning
    )
    started = time.perf_counter()
    given = read_facts(reasoner, files, fact_folder)
    loaded = time.perf_counter()
    reasoner.materialise_encoded(given)
    done = time.perf_counter()
    lines = [
        f"{sum(map(len, given.values())):,} facts read in {loaded - started:.2f} s, "
        f"{len(reasoner):,} facts after materialisation in {done - loaded:.2f} s"
    ]
    lines += unknown_predicates(program, reasoner)
    lines += write_results(program, reasoner, out)
    return {
        "facts": {str(p): n for p, n in reasoner.counts().items()},
        "seconds": {"load": loaded - started, "materialise": done - loaded},
        "lines": lines,
    }


def explain_program(
    files: list[Path],
    fact_folder: Path,
    dialect: Dialect | None,
    progress: Callable[[Event], None],
    tuning: Tuning,
) -> dict[str, Any]:
    """How rules are evaluated: over facts, if there are any, or as they would be."""
    reasoner = Reasoner(read_rules(files, dialect), progress=progress, tuning=tuning)
    if any(map(_is_data, files)) or fact_folder != Path():
        reasoner.materialise_encoded(read_facts(reasoner, files, fact_folder))
    return reasoner.explain()


def read_rules(files: list[Path], dialect: Dialect | None) -> Program:
    rules = [f for f in files if not _is_data(f)]
    if not rules:
        raise UsageError(f"no rule file among the arguments; rule files end in {' or '.join(ENDINGS)}")
    program = Program()
    for path in rules:
        program += read(path, dialect)
    return program


def read_facts(reasoner: Reasoner, files: list[Path], fact_folder: Path) -> dict[Predicate, Facts]:
    program = reasoner.program
    collector = Collector(reasoner.engine, program)
    types = attribute_types(program)
    data = [f for f in files if _is_data(f)]
    for split in (*input_splits(program, fact_folder), *(find_splits(data) if data else ())):
        collector.encoded(read_split(split, types))
    return collector.facts()


def input_splits(program: Program, folder: Path) -> list[Split]:
    """The files that a program's directives name."""
    found = []
    for file in input_files(program, folder):
        if not file.path.exists():
            raise InputError(f"{file.path}: No such file or directory")
        # Quotes count where commas are between values, as in CSV; whatever the file is called.
        format_ = "csv" if file.delimiter == "," else "facts"
        whole = Split(str(file.path), format_, 0, -1, file.name, file.delimiter, file.header)
        cuts = find_splits([file.path]) if file.path.suffix == ".facts" and format_ == "facts" else [whole]
        found += [replace(whole, start=cut.start, end=cut.end) for cut in cuts]
    return found


def _is_data(path: Path) -> bool:
    return any(ending in FORMATS for ending in path.suffixes)


def unknown_predicates(program: Program, reasoner: Reasoner) -> list[str]:
    """Warnings for body predicates that no rule derives and no fact has."""
    counts = reasoner.counts()
    derived = {h.predicate for r in program.rules for h in r.heads}
    declared = set(program.declared)
    found = []
    for predicate in program.predicates:
        if predicate not in derived and predicate not in counts and predicate.name not in declared:
            hint = did_you_mean(predicate.name, [p.name for p in counts])
            found.append(
                f"warning: no rule derives {predicate.name}, and no fact has it; {hint}".rstrip("; ")
            )
    return found


def write_results(program: Program, reasoner: Reasoner, out: Path | None) -> list[str]:
    outputs = [d for d in program.directives if d.kind == "output"]
    screen = str(out) == "-"
    folder = None if screen else (out or Path())
    lines = []
    for directive in outputs:
        write_relation(directive, program, reasoner.facts(directive.name), folder, sys.stdout)
    for directive in program.directives:
        if directive.kind == "printsize":
            print(f"{directive.name}\t{len(reasoner.facts(directive.name))}")
    if not outputs and out is not None and folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        tables = all_tables(reasoner)
        count = write_triples(
            {p: t for p, t in tables.items() if p.arity in (1, 2)}, folder / "materialised.nt"
        )
        lines.append(f"{count:,} triples written to {folder / 'materialised.nt'}")
    elif not outputs:
        shown = sorted(reasoner.counts().items(), key=lambda item: -item[1])
        lines += [f"{n:>14,}  {p.name}" for p, n in shown[:40]]
    return lines


def all_tables(reasoner: Reasoner) -> dict[Predicate, FactTable]:
    return {p: reasoner.facts(p) for p in reasoner.counts()}
