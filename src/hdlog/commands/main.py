"""The command line: each command reads arguments, calls one function, and prints what it returns."""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from typing import Any

import click

import hdlog
from hdlog.commands import benchmarks, programs, queries, stores
from hdlog.errors import INTERRUPTED, OPERATING_SYSTEM, HdlogError

COMMANDS = (
    programs.check,
    programs.run,
    programs.explain,
    programs.owl,
    stores.load,
    stores.materialise,
    stores.update,
    stores.rules,
    queries.query,
    queries.sql,
    queries.why,
    queries.why_not,
    queries.what_if,
    stores.export,
    stores.info,
    stores.log,
    stores.rollback,
    stores.compact,
    stores.verify,
    stores.stream,
    benchmarks.generate,
    benchmarks.bench,
)


_RARELY = (100_000, 50, 100)
"""Objects after which Python looks for garbage."""


class _InOrder(click.Group):
    """Lists its commands in the order in which they came, and stops quietly when nobody reads on."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            # Whoever reads has enough, which click takes for an error. What is left in the buffer goes nowhere, without a word.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return result


@click.group(cls=_InOrder, help=hdlog.__doc__, context_settings={"max_content_width": 110})
@click.version_option(hdlog.__version__, message="hdlog %(version)s")
def app() -> None:
    pass


for command in COMMANDS:
    app.add_command(command)


def main() -> None:
    """Run the command; an error a user can cause is a message and an exit code, not a traceback."""
    # Much of what a command makes lives to its end: there is little for the collector to find.
    gc.set_threshold(*_RARELY)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        sys.exit(app(standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except HdlogError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"{place}{error.strerror or error}", file=sys.stderr)
        sys.exit(OPERATING_SYSTEM)
