"""What a program's directives, and its dialect, say of files: facts in, facts out."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hdlog.engines.decode import FactTable, plain_value
from hdlog.engines.load import InputError
from hdlog.program.model import Directive, Predicate, Program
from hdlog.program.terms import RDF_TYPE


@dataclass(frozen=True)
class FactFile:
    """One relation's file."""

    path: Path
    name: str
    delimiter: str
    header: bool


def input_files(program: Program, folder: Path) -> Iterator[FactFile]:
    """The files that `.input` names, in Soufflé's way: NAME.facts, tab-separated, unless it says otherwise."""
    for directive in program.directives:
        if directive.kind == "input":
            options = dict(directive.parameters)
            kind = options.get("IO", "file")
            if kind not in ("file", "stdin"):
                raise InputError(f"{directive.span}: IO={kind} is not supported; use IO=file")
            path = folder / options.get("filename", f"{directive.name}.facts")
            if not path.exists() and Path(f"{path}.gz").exists():
                path = Path(f"{path}.gz")
            delimiter = _delimiter(options.get("delimiter", "\t"))
            yield FactFile(path, directive.name, delimiter, options.get("headers", "false") == "true")


def _delimiter(text: str) -> str:
    return {"\\t": "\t", "\\n": "\n"}.get(text, text)


def write_relation(
    directive: Directive, program: Program, table: FactTable, folder: Path | None, out: IO[str]
) -> None:
    """One `.output`, where it belongs: NAME.csv, tab-separated, or the screen."""
    options = dict(directive.parameters)
    attributes = (
        [a.name for a in program.declared[directive.name].attributes]
        if directive.name in program.declared
        else []
    )
    delimiter = _delimiter(options.get("delimiter", "\t"))
    if folder is None or options.get("IO") == "stdout":
        rule = "-" * 15
        print(f"{rule}\n{directive.name}\n" + delimiter.join(attributes) + f"\n{'=' * 15}", file=out)
        write_rows(table, out, delimiter, None)
        print("=" * 15, file=out)
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / options.get("filename", f"{directive.name}.csv")
    with path.open("w", encoding="utf-8", newline="") as file:
        write_rows(table, file, delimiter, attributes if options.get("headers") == "true" else None)


def write_rows(table: FactTable, out: IO[str], delimiter: str, header: list[str] | None) -> None:
    rows = (
        sorted(tuple(plain_value(t) for t in row) for row in table.rows()) if len(table) < _SORTED else table
    )
    if delimiter == ",":
        writer = csv.writer(out, lineterminator="\n")
        if header:
            writer.writerow(header)
        writer.writerows(rows)
        return
    if header:
        out.write(delimiter.join(header) + "\n")
    out.writelines(delimiter.join(map(_plain, row)) + "\n" for row in rows)


_SORTED = 1_000_000


def _plain(value: Any) -> str:
    return str(value) if not isinstance(value, bool) else str(value).lower()


def write_triples(tables: dict[Predicate, FactTable], path: Path) -> int:
    """All facts of one and two arguments as N-Triples; how many there were."""
    count = 0
    with path.open("w", encoding="utf-8") as out:
        for predicate, table in tables.items():
            columns = table.texts()
            count += len(table)
            if predicate.arity == 2:
                p = f" <{predicate.name}> "
                out.writelines(f"{s}{p}{o} .\n" for s, o in zip(*columns, strict=True))
            else:
                rest = f" <{RDF_TYPE}> <{predicate.name}> .\n"
                out.writelines(f"{s}{rest}" for s in columns[0])
    return count
