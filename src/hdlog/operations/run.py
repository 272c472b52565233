"""One run from files to files: what `hdlog run` does."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from hdlog.dialects import ENDINGS, Dialect
from hdlog.engines.columnar.budget import Budget, parse_size
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.errors import InputError, UsageError, WriteError, did_you_mean
from hdlog.ingest.intake import Intake
from hdlog.maintenance.trace import Event, Limits, Trace
from hdlog.program.directives import TableFile, table_file
from hdlog.program.model import Predicate, Program
from hdlog.program.types import attribute_layout
from hdlog.reading.files import find_splits, read_splits
from hdlog.reading.objects import find_misspelt
from hdlog.reading.splits import FORMATS, Split, format_of
from hdlog.reasoning import Reasoning, start_reasoning
from hdlog.report.explain import describe
from hdlog.text import RuleText, read_texts, rule_texts
from hdlog.tuning import Tuning
from hdlog.writing.files import (
    RdfFormat,
    file_names,
    is_triple,
    write_table,
    write_tables,
    write_triples,
    write_whole,
)
from hdlog.writing.sheets import Sheet

AnyReasoning = Reasoning[Any, Any, Any]
_SHOWN = 40
_ORDERED = 1_000_000
"""Rows up to which a table is written in order."""


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
    lenient: bool = False,
) -> dict[str, Any]:
    """Materialise and write; returns what a summary tells."""
    started = time.perf_counter()
    texts = read_rules(files, dialect)
    program = read_texts(texts)
    check_output_folder(out)
    budget = Budget() if memory is None else Budget(parse_size(memory))
    engine = ColumnarEngine(budget, numbers=tuning.numbers)
    intake = Intake(program)
    splits = splits_of(program, files, fact_folder, budget.memory)
    chunks = read_splits(splits, attribute_layout(program), lenient, engine.share_terms())
    facts = engine.encode_chunks(intake.watch(chunks))
    loaded = time.perf_counter()
    trace = Trace(Limits(max_rounds, max_facts), progress)
    reasoner = start_reasoning(engine, program, tuning, trace)
    reasoner.materialise(facts)
    done = time.perf_counter()
    lines = [
        f"{intake.rows:,} facts read in {loaded - started:.2f} s, "
        f"{len(reasoner):,} facts after materialisation in {done - loaded:.2f} s"
    ]
    lines += describe_left_out(texts)
    lines += intake.warnings()
    lines += find_misspelt(program, facts)
    lines += unknown_predicates(program, reasoner)
    lines += write_results(program, reasoner, out)
    return {
        "facts": {str(p): n for p, n in reasoner.counts().items()},
        "skipped": intake.skipped,
        "seconds": {
            "load": loaded - started,
            "materialise": done - loaded,
            "write": time.perf_counter() - done,
        },
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
    program = read_texts(read_rules(files, dialect))
    engine = ColumnarEngine(numbers=tuning.numbers)
    reasoner = start_reasoning(engine, program, tuning, Trace(listen=progress))
    if any(map(_is_data, files)) or fact_folder != Path():
        splits = splits_of(program, files, fact_folder)
        chunks = read_splits(splits, attribute_layout(program), shared=engine.share_terms())
        reasoner.materialise(engine.encode_chunks(chunks))
    return describe(reasoner.driver)


def read_rules(files: Sequence[Path], dialect: Dialect | None) -> list[RuleText]:
    """The rule files among the arguments."""
    rules = [f for f in files if not _is_data(f)]
    for path in rules:
        if dialect is None and path.suffix not in ENDINGS:
            raise UsageError(
                f"{path}: neither rules ({', '.join(ENDINGS)}, or name a --dialect) nor facts ({', '.join(FORMATS)})"
            )
    if not rules:
        raise UsageError(f"no rule file among the arguments; rule files end in {' or '.join(ENDINGS)}")
    return rule_texts(rules, dialect)


def describe_left_out(texts: Sequence[RuleText]) -> list[str]:
    """A warning for each ontology of which something is in no rule."""
    lines = []
    for text in (t for t in texts if t.left_out):
        count = len(text.left_out)
        shown = "an axiom is" if count == 1 else f"{count:,} axioms are"
        name = text.source.name
        lines.append(
            f"warning: {name}: {shown} in no rule, such as {text.left_out[0]}; `hdlog owl {name}` lists all"
        )
    return lines


def _is_data(path: Path) -> bool:
    """Whether a file has facts; an ontology is for its rules."""
    return bool(format_of(path)) and path.suffix not in ENDINGS


def splits_of(
    program: Program, files: Sequence[Path], fact_folder: Path, memory: int | None = None
) -> list[Split]:
    """What is to be read: the files that the program names, and those among the arguments."""
    data = [f for f in files if _is_data(f)]
    return [*input_splits(program, fact_folder), *(find_splits(data, memory=memory) if data else ())]


def input_splits(program: Program, folder: Path) -> list[Split]:
    """The files that a program's directives name, in Soufflé's way: NAME.facts in the folder, unless it says otherwise."""
    splits = []
    for directive in program.directives:
        if directive.kind == "input":
            splits += _input_splits(table_file(directive), folder)
    return splits


def _input_splits(file: TableFile, folder: Path) -> list[Split]:
    whole = Split(
        "standard input" if file.kind == "stdin" else str(folder / file.filename),
        "facts",
        name=file.name,
        delimiter=file.delimiter,
        header=file.headers,
        souffle=True,
        rfc4180=file.rfc4180,
        columns=file.columns,
    )
    if file.kind == "stdin":
        return [replace(whole, data=sys.stdin.buffer.read())]
    path = folder / file.filename
    if not path.exists() and Path(f"{path}.gz").exists():
        path = Path(f"{path}.gz")
    if not path.exists():
        raise InputError(f"{path}: No such file or directory")
    if path.is_dir():
        raise InputError(f"{path}: a folder, not a file")
    whole = replace(whole, path=str(path))
    if not path.is_file():
        return [replace(whole, data=path.read_bytes())]
    if path.suffix != ".facts" or file.rfc4180:
        return [whole]
    return [replace(whole, start=cut.start, end=cut.end) for cut in find_splits([path])]


def unknown_predicates(program: Program, reasoner: AnyReasoning) -> list[str]:
    """A warning for body predicates that no rule derives and no fact has."""
    counts = reasoner.counts()
    derived = {h.predicate for r in program.rules for h in r.heads}
    unknown = [
        p
        for p in program.predicates
        if p not in derived and p not in counts and p.name not in program.declared and p.name[0] != "["
    ]
    hints = {p: did_you_mean(p.name, [known.name for known in counts]) for p in unknown}
    likely = [p for p in unknown if hints[p]]
    warnings = [f"warning: no rule derives {p.name}, and no fact has it; {hints[p]}" for p in likely[:3]]
    rest = [p.name for p in unknown if p not in likely[:3]]
    if rest:
        shown = ", ".join(rest[:5]) + (", ..." if len(rest) > 5 else "")
        plural = "predicates of rules have" if len(rest) > 1 else "predicate of a rule has"
        warnings.append(f"warning: {len(rest):,} {plural} no facts: {shown}")
    return warnings


# Out.


def check_output_folder(out: Path | None) -> None:
    """Before any work: whether results will have a place to go to."""
    if out is not None and str(out) != "-" and out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; -D names a folder")


def write_results(program: Program, reasoner: AnyReasoning, out: Path | None) -> list[str]:
    """What the program says is to be written; all triples, and a table for each other predicate, if it says nothing."""
    outputs = [d for d in program.directives if d.kind == "output"]
    sizes = [d for d in program.directives if d.kind == "printsize"]
    failed = []
    for directive in outputs:
        try:
            _write_output(table_file(directive), program, reasoner, out)
        except WriteError as error:
            failed.append(error)
    for directive in sizes:
        print(f"{directive.name}\t{reasoner.counts().get(reasoner.find(directive.name), 0)}")
    if failed:
        raise WriteError("\n".join(map(str, failed)))
    if outputs or sizes:
        return []
    if out is None:
        counts = sorted(reasoner.counts().items(), key=lambda item: -item[1])
        more = [f"... and {len(counts) - _SHOWN:,} more predicates"] if len(counts) > _SHOWN else []
        return [f"{n:>14,}  {p.name}" for p, n in counts[:_SHOWN]] + more
    return _write_everything(reasoner, out)


def sheet_of(reasoner: AnyReasoning, predicate: Predicate) -> Sheet:
    """All facts of a predicate, on their way to a file."""
    return reasoner.decode(predicate, reasoner.facts(predicate)).sheet(predicate)


def _write_everything(reasoner: AnyReasoning, out: Path) -> list[str]:
    sheets = [sheet_of(reasoner, p) for p in reasoner.counts()]
    format_: RdfFormat = "nq" if any(s.predicate.has_graph for s in sheets) else "nt"
    if str(out) == "-":
        _, left = write_triples([s for s in sheets if is_triple(s.predicate)], sys.stdout.buffer, format_)
        sys.stdout.buffer.flush()
        for sheet in (s for s in sheets if not is_triple(s.predicate)):
            _print_table(sheet, "\t", quotes=True)
        return [f"warning: left out: {line}" for line in left]
    path = out / f"materialised.{format_}"
    with write_whole(path) as file:
        count, left = write_triples([s for s in sheets if is_triple(s.predicate)], file, format_)
    lines = [f"{count:,} {'quads' if format_ == 'nq' else 'triples'} written to {path}"]
    tables = [s for s in sheets if not is_triple(s.predicate)]
    names = file_names([s.predicate for s in tables])
    lines += [
        f"{sheet.rows:,} facts of {sheet.predicate.name} written to {out / names[sheet.predicate]}.csv"
        for sheet in write_tables(tables, "csv", out)
    ]
    if not all(sheet.is_exact for sheet in tables):
        lines.append("IRIs, languages and datatypes are written as plain text in tables; a store keeps them")
    return lines + [f"warning: left out: {line}" for line in left]


def _write_output(file: TableFile, program: Program, reasoner: AnyReasoning, out: Path | None) -> None:
    """One `.output`, where it belongs: NAME.csv, tab-separated, or the screen."""
    predicate = reasoner.find(file.name)
    sheet = sheet_of(reasoner, predicate)
    if file.kind == "stdoutprintsize":
        print(f"{file.name}\t{sheet.rows}")
    elif file.kind == "stdout" or str(out) == "-":
        _print_table(sheet, file.delimiter, quotes=True)
    else:
        with write_whole((out or Path()) / _file_name(file)) as stream:
            _write_rows(file, sheet, stream)


def _print_table(sheet: Sheet, delimiter: str, quotes: bool) -> None:
    """On the screen, as Soufflé prints a relation."""
    rows = io.BytesIO()
    write_table(sheet, rows, delimiter, (), quotes, ordered=sheet.rows < _ORDERED)
    print(f"{'-' * 15}\n{sheet.predicate.name}\n{delimiter.join(sheet.names)}\n{'=' * 15}", flush=True)
    sys.stdout.buffer.write(rows.getbuffer())
    sys.stdout.buffer.flush()
    print("=" * 15)


def _file_name(file: TableFile) -> str:
    """The name of the file; of a predicate that is an IRI, the last part of it."""
    if file.filename.startswith(file.name) and ("/" in file.name or ":" in file.name):
        short = file.name.replace("#", "/").rstrip("/").rsplit("/", 1)[-1].rsplit(":", 1)[-1]
        return (short or "facts") + file.filename[len(file.name) :]
    return file.filename


def _write_rows(file: TableFile, sheet: Sheet, stream: IO[bytes]) -> None:
    header = sheet.headings if file.headers else ()
    write_table(sheet, stream, file.delimiter, header, file.rfc4180, ordered=sheet.rows < _ORDERED)
