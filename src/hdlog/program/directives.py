"""What `.input`, `.output` and `.printsize` say of files, in Soufflé's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hdlog.errors import Problem, did_you_mean
from hdlog.program.model import Directive

_KINDS: dict[str, tuple[str, ...]] = {
    "input": ("file", "stdin"),
    "output": ("file", "stdout", "stdoutprintsize"),
    "printsize": ("stdoutprintsize",),
}
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "input": ("IO", "filename", "delimiter", "headers", "rfc4180", "columns"),
    "output": ("IO", "filename", "delimiter", "headers", "rfc4180", "compress"),
    "printsize": ("IO",),
}
_SWITCHES = ("headers", "rfc4180", "compress")
_DELIMITERS = {"\\t": "\t", "\\n": "\n"}


@dataclass(frozen=True, slots=True)
class TableFile:
    """Where and how the facts of one predicate are read or written."""

    name: str
    kind: str
    """file, stdin, stdout or stdoutprintsize"""
    filename: str
    delimiter: str = "\t"
    headers: bool = False
    rfc4180: bool = False
    """whether values are put in quotes where needed; there is no other way to write a delimiter in a value"""
    compress: bool = False
    columns: tuple[int, ...] | None = None
    """which columns of the file, in the order of the attributes"""


def table_file(directive: Directive) -> TableFile:
    """What a directive says that `directive_problems` finds nothing wrong with."""
    parameters = dict(directive.parameters)
    rfc4180 = _is_on(parameters, "rfc4180")
    delimiter = parameters.get("delimiter", "," if rfc4180 else "\t")
    columns = parameters.get("columns")
    ending = "facts" if directive.kind == "input" else "csv"
    compress = _is_on(parameters, "compress")
    default = f"{directive.name}.{ending}{'.gz' if compress else ''}"
    return TableFile(
        directive.name,
        parameters.get("IO", _KINDS[directive.kind][0]),
        parameters.get("filename", default),
        _DELIMITERS.get(delimiter, delimiter),
        _is_on(parameters, "headers"),
        rfc4180,
        compress,
        None if columns is None else tuple(map(int, columns.split(":"))),
    )


def _is_on(parameters: Mapping[str, str], name: str) -> bool:
    return parameters.get(name, "false") == "true"


def directive_problems(directive: Directive) -> Iterator[Problem]:
    """Parameters that are not known, or not supported: none is ignored."""

    def problem(message: str, hint: str = "") -> Problem:
        return Problem("directive", f".{directive.kind} {directive.name}: {message}", directive.span, hint)

    known = _PARAMETERS[directive.kind]
    for name, value in directive.parameters:
        if name not in known:
            yield problem(
                f"the parameter {name} is not supported",
                did_you_mean(name, known) or f"supported: {', '.join(known)}",
            )
        elif name == "IO" and value not in _KINDS[directive.kind]:
            yield problem(f"IO={value} is not supported", f"supported: {', '.join(_KINDS[directive.kind])}")
        elif name in _SWITCHES and value not in ("true", "false"):
            yield problem(f"{name} is true or false, not {value}")
        elif name == "delimiter" and len(_DELIMITERS.get(value, value).encode()) != 1:
            yield problem(f"a delimiter is one character of ASCII, not {value!r}")
        elif name == "filename" and not value:
            yield problem("the filename is empty", f"leave it out for {directive.name} with an ending")
        elif name == "columns" and not all(part.isdecimal() and part.isascii() for part in value.split(":")):
            yield problem(f'columns are numbers with colons between, as in "0:2", not {value!r}')
