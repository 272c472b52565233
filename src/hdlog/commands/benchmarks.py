"""`hdlog generate` and `hdlog bench`."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from hdlog.commands.options import PATH, PLACE, Decorator, one_of, overwrite, with_options
from hdlog.errors import UsageError

if TYPE_CHECKING:
    from hdlog.benchmarks.data.dataset import Dataset

Tell = Callable[[float], None]
FileFormat = Literal["nt", "nt.gz", "parquet"]
BenchedEngine = Literal["columnar", "spark"]
seed_option = click.option(
    "--seed", type=int, default=1, show_default=True, help="Other numbers give other facts of the same kind."
)
places = with_options(
    click.option("--store", type=PLACE, metavar="FOLDER", help="The folder to make a store in."),
    click.option("--out", type=PATH, metavar="FOLDER", help="The folder to write files to."),
    click.option(
        "--format",
        "format_",
        type=one_of(FileFormat),
        default="nt.gz",
        show_default=True,
        help="Of the files in --out.",
    ),
    overwrite,
)


@click.group()
def generate() -> None:
    """Make the data of the paper's benchmarks anew.

    It goes to a store, or to files with the rules beside them.
    """


def _number(name: str, default: int | None, least: int, text: str) -> Decorator[Any]:
    number = click.IntRange(min=least)
    return click.option(name, type=number, default=default, show_default=default is not None, help=text)


@generate.command()
@_number("--universities", 1, 1, "The paper has 500: 66.8 million facts.")
@seed_option
@places
def lubm(universities: int, seed: int, **place: Any) -> None:
    """Universities with departments, people, courses and publications, as LUBM has them."""
    from hdlog.benchmarks.data.lubm import generate as make

    _write(lambda tell: make(universities, seed, tell=tell), **place)


@generate.command()
@_number("--expressions", 300, 1, "Trees.")
@_number("--instances", 300, 1, "Values of each leaf.")
@seed_option
@places
def exp(expressions: int, instances: int, seed: int, **place: Any) -> None:
    """Expression trees and numbers for their leaves; 3,362,280 facts by default, as in the paper."""
    from hdlog.benchmarks.data.exp import generate as make

    _write(lambda tell: make(expressions, instances, seed=seed, tell=tell), **place)


@generate.command()
@_number("--edges", 1_000_000, 1, "The paper has 58,276,868.")
@_number("--labels", 91, 59, "The rules name labels up to 58.")
@_number("--communities", None, 0, "Dense sets of vertices, in which cycles close.")
@seed_option
@places
def yago(edges: int, labels: int, communities: int | None, seed: int, **place: Any) -> None:
    """A graph with labels of very different sizes, hubs, and communities in which cycles close."""
    from hdlog.benchmarks.data.yago import generate as make

    _write(lambda tell: make(edges, labels, communities, seed, tell=tell), **place)


@generate.command()
@_number("-n", 1000, 4, "People.")
@_number("-k", 400, 1, "Co-workers and co-authors of each.")
@places
def collaborators(n: int, k: int, **place: Any) -> None:
    """The paper's running example: 4nk + 2 facts, from which nk + k follow."""
    from hdlog.benchmarks.data.collaborators import generate as make

    _write(lambda tell: make(n, k, tell), **place)


def _write(
    make: Callable[[Tell], Dataset], store: Path | None, out: Path | None, format_: str, overwrite: bool
) -> None:
    if (store is None) == (out is None):
        raise UsageError("name one place for the facts: --store FOLDER or --out FOLDER")
    from rich.console import Console
    from rich.progress import Progress

    from hdlog.benchmarks.data.writing import write_files, write_store

    start = time.perf_counter()
    with Progress(console=Console(stderr=True), transient=True) as progress:
        drawing, writing = (progress.add_task(text, total=1.0) for text in ("drawing facts", "writing"))
        try:
            data = make(lambda share: progress.update(drawing, completed=share))
        except ValueError as error:
            raise UsageError(str(error)) from None
        tell = lambda share: progress.update(writing, completed=share)  # noqa: E731
        if store is not None:
            write_store(data, store, overwrite, tell=tell)
        elif out is not None:
            write_files(data, out, format_, tell)
    print(
        f"{data.facts:,} facts and {data.terms:,} terms in {store or out}, {time.perf_counter() - start:.1f} s"
    )


@click.command()
@click.option(
    "--out",
    type=PATH,
    default=Path("bench-results"),
    show_default=True,
    help="Where results go; a run that was cut off goes on.",
)
@click.option("--benchmarks", default="lubm-l,lubm-l+c,exp,yago", show_default=True, help="With commas.")
@click.option("--methods", default="standard,hd,combined", show_default=True, help="With commas.")
@click.option(
    "--tasks",
    default="materialisation,small deletions,large deletions,small additions",
    show_default=True,
    help="With commas.",
)
@click.option(
    "--scale",
    type=click.FloatRange(min=0),
    default=0.01,
    show_default=True,
    help="1 is the size of the paper.",
)
@click.option("--engine", type=one_of(BenchedEngine), default="columnar", show_default=True)
@click.option(
    "--limit",
    type=float,
    default=600.0,
    show_default=True,
    help="Seconds for a cell, reading its facts included.",
)
@click.option("--memory", type=float, metavar="GB", help="GB for a cell; most of the machine's unless given.")
@_number("--repeat", 3, 1, "How often small updates are measured; the best counts.")
@seed_option
@click.option("--peers", is_flag=True, help="DuckDB, clingo and Soufflé too, where they are installed.")
@click.option(
    "--data", type=PATH, metavar="FOLDER", help="Where generated facts are kept; in --out unless given."
)
def bench(
    out: Path,
    benchmarks: str,
    methods: str,
    tasks: str,
    scale: float,
    engine: str,
    limit: float,
    memory: float | None,
    repeat: int,
    seed: int,
    peers: bool,
    data: Path | None,
) -> None:
    """Run the paper's evaluation.

    Methods, benchmarks and tasks, with tables and plots beside the paper's figures.
    """
    from hdlog.benchmarks.paper import figures as paper
    from hdlog.benchmarks.paper.runner import Bench, requests
    from hdlog.benchmarks.peers.run import PEERS, explain_absence
    from hdlog.engines.columnar.budget import Budget

    chosen = [
        _parse_names(text, known)
        for text, known in ((benchmarks, paper.BENCHMARKS), (methods, paper.METHODS), (tasks, paper.TASKS))
    ]
    from rich.console import Console

    console = Console(stderr=True)
    room = memory or Budget().memory / 1e9
    say = lambda text: console.print(text, highlight=False)  # noqa: E731
    runner = Bench(out, data or out / "data", limit, room, say, repeat)
    others = {peer: explain_absence(peer) for peer in PEERS} if peers else {}
    for peer, why in others.items():
        if why:
            console.print(f"without {peer}: {why}", highlight=False)
    there = [peer for peer, why in others.items() if not why]
    runner.run(requests(chosen[0], chosen[1], chosen[2], engine, scale, seed, there))
    for line in report(out):
        print(line)


def report(out: Path) -> list[str]:
    """Tables and plots of the results that are there; where they are."""
    from hdlog.benchmarks.paper.runner import read_results
    from hdlog.benchmarks.paper.tables import markdown, write_csv

    results = read_results(out / "results.jsonl")
    write_csv(results, out / "results.csv")
    (out / "tables.md").write_text(markdown(results))
    lines = [f"tables in {out / 'tables.md'}, all cells in {out / 'results.csv'}"]
    if find_spec("matplotlib") is None:
        return [*lines, "no plots, for matplotlib is not installed: pip install 'hdlog[bench]'"]
    from hdlog.benchmarks.paper.plots import draw

    return [*lines, *(f"plot {path}" for path in draw(results, out) if path.suffix == ".png")]


def _parse_names(text: str, known: tuple[str, ...]) -> list[str]:
    asked = [part.strip() for part in text.split(",")]
    for part in asked:
        if part not in known:
            raise UsageError(f"there is no {part!r}; there are {', '.join(known)}")
    return asked
