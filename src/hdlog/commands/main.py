"""The command line: each command reads arguments, calls one function, and prints what it returns."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Annotated

import typer

import hdlog
from hdlog.commands import benchmarks, programs, stores
from hdlog.errors import OPERATING_SYSTEM, HdlogError

app = typer.Typer(
    help=hdlog.__doc__,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(programs.check)
app.command()(programs.run)
app.command()(programs.explain)
app.command()(stores.load)
app.command()(stores.materialise)
app.command()(stores.update)
app.command()(stores.export)
app.command()(stores.info)
app.command()(stores.stream)
app.add_typer(benchmarks.generate, name="generate")
app.command()(benchmarks.bench)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(f"hdlog {hdlog.__version__}")
        raise typer.Exit


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
    except OSError as error:
        if error.errno == errno.EPIPE:
            # Whoever reads has enough. What is left in the buffer goes nowhere, without a word.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        place = f"{error.filename}: " if error.filename else ""
        print(f"{place}{error.strerror or error}", file=sys.stderr)
        sys.exit(OPERATING_SYSTEM)
