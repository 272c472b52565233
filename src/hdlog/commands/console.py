"""What commands print: progress, summaries, tables; and what they say of an interrupt."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from hdlog import interrupts
from hdlog.errors import INTERRUPTED
from hdlog.places import Place

if TYPE_CHECKING:
    from hdlog.report.progress import Progress

PIPE = 10_000
"""Columns of a table that nobody looks at."""


@contextmanager
def show_progress(store: Place | None = None, outcome: str = "") -> Iterator[Progress]:
    """Progress in the terminal; an interrupt is a word on what has become of the store, and an exit code."""
    from hdlog.report.progress import Progress

    before = version_of(store)
    with interrupts.Guard(), Progress(sys.stderr.isatty()) as progress:
        try:
            with interrupts.let_through():
                progress.say("loading the engine")
                spare_pandas()
                yield progress
            interrupted = interrupts.take()
        except KeyboardInterrupt:
            interrupted = True
            interrupts.take()  # one word for several of them
        progress.say("")
    if interrupted:
        print(f"interrupted: {outcome or _tell_outcome(store, before)}", file=sys.stderr)
        raise click.exceptions.Exit(INTERRUPTED)


def _tell_outcome(store: Place | None, before: int | None) -> str:
    if store is None:
        return "files that were written are whole, the others are not there"
    if version_of(store) == before:
        return "everything is as it was before"
    return f"that was too late, the change is in {store}"


def spare_pandas() -> None:
    """Have pyarrow believe that there is no pandas, unless somebody imported it.

    It looks for it with the first array that it makes, and importing it takes longer than most commands; none needs it.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow

    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pyarrow.array([True])
    finally:
        sys.meta_path.remove(hidden)


class _Hidden:
    """Finds no pandas."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def version_of(store: Place | None) -> int | None:
    """The number of a store's version, if there is one."""
    try:
        manifest = json.loads((store / "manifest.json").read_bytes()) if store is not None else {}
        return manifest["content"]["entry"]["version"]  # type: ignore[no-any-return]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def print_table(table: Any) -> None:
    """A table as wide as the terminal, or, in a pipe, as it is."""
    from rich.console import Console

    console = Console() if sys.stdout.isatty() else Console(width=PIPE)
    with console.capture() as captured:
        console.print(table, highlight=False)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def summarise(summary: dict[str, Any], as_json: bool) -> None:
    lines = summary.pop("lines")
    if as_json:
        print(json.dumps(summary))
    else:
        for line in lines:
            print(line, file=sys.stderr)
