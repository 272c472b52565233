"""`hdlog generate` and `hdlog bench`."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hdlog.errors import UsageError

if TYPE_CHECKING:
    from hdlog.benchmarks.data.dataset import Dataset

generate = typer.Typer(
    no_args_is_help=True,
    help="Make the data of the paper's benchmarks anew: to a store, or to files with the rules beside them.",
)
Tell = Callable[[float], None]
StoreOption = Annotated[Path | None, typer.Option("--store", help="The folder to make a store in.")]
OutOption = Annotated[Path | None, typer.Option("--out", help="The folder to write files to.")]
FormatOption = Annotated[
    Literal["nt", "nt.gz", "parquet"], typer.Option("--format", help="Of the files in --out.")
]
SeedOption = Annotated[int, typer.Option(help="Other numbers give other facts of the same kind.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace the store that is there.")]


@generate.command()
def lubm(
    universities: Annotated[int, typer.Option(min=1, help="The paper has 500: 66.8 million facts.")] = 1,
    seed: SeedOption = 1,
    store: StoreOption = None,
    out: OutOption = None,
    format_: FormatOption = "nt.gz",
    overwrite: OverwriteOption = False,
) -> None:
    """Universities with departments, people, courses and publications, as LUBM has them."""
    from hdlog.benchmarks.data.lubm import generate as make

    _write(lambda tell: make(universities, seed, tell=tell), store, out, format_, overwrite)


@generate.command()
def exp(
    expressions: Annotated[int, typer.Option(min=1)] = 300,
    instances: Annotated[int, typer.Option(min=1, help="Values of each leaf.")] = 300,
    seed: SeedOption = 1,
    store: StoreOption = None,
    out: OutOption = None,
    format_: FormatOption = "nt.gz",
    overwrite: OverwriteOption = False,
) -> None:
    """Expression trees and numbers for their leaves; 3,362,280 facts by default, as in the paper."""
    from hdlog.benchmarks.data.exp import generate as make

    _write(lambda tell: make(expressions, instances, seed=seed, tell=tell), store, out, format_, overwrite)


@generate.command()
def yago(
    edges: Annotated[int, typer.Option(min=1, help="The paper has 58,276,868.")] = 1_000_000,
    labels: Annotated[int, typer.Option(min=59, help="The rules name labels up to 58.")] = 91,
    communities: Annotated[
        int | None, typer.Option(min=0, help="Dense sets of vertices, in which cycles close.")
    ] = None,
    seed: SeedOption = 1,
    store: StoreOption = None,
    out: OutOption = None,
    format_: FormatOption = "nt.gz",
    overwrite: OverwriteOption = False,
) -> None:
    """A graph with labels of very different sizes, hubs, and communities in which cycles close."""
    from hdlog.benchmarks.data.yago import generate as make

    _write(lambda tell: make(edges, labels, communities, seed, tell=tell), store, out, format_, overwrite)


@generate.command()
def collaborators(
    n: Annotated[int, typer.Option("-n", min=4, help="People.")] = 1000,
    k: Annotated[int, typer.Option("-k", min=1, help="Co-workers and co-authors of each.")] = 400,
    store: StoreOption = None,
    out: OutOption = None,
    format_: FormatOption = "nt.gz",
    overwrite: OverwriteOption = False,
) -> None:
    """The paper's running example: 4nk + 2 facts, from which nk + k follow."""
    from hdlog.benchmarks.data.collaborators import generate as make

    _write(lambda tell: make(n, k, tell), store, out, format_, overwrite)


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


Benchmarks = Annotated[str, typer.Option(help="With commas: lubm-l, lubm-l+c, exp, yago.")]


def bench(
    out: Annotated[Path, typer.Option(help="Where results go; a run that was cut off goes on.")] = Path(
        "bench-results"
    ),
    benchmarks: Benchmarks = "lubm-l,lubm-l+c,exp,yago",
    methods: Annotated[str, typer.Option(help="With commas.")] = "standard,hd,combined",
    tasks: Annotated[
        str, typer.Option(help="With commas.")
    ] = "materialisation,small deletions,large deletions,small additions",
    scale: Annotated[float, typer.Option(min=0, help="1 is the size of the paper.")] = 0.01,
    engine: Annotated[Literal["columnar", "spark"], typer.Option()] = "columnar",
    limit: Annotated[float, typer.Option(help="Seconds for a cell, reading its facts included.")] = 600,
    memory: Annotated[
        float | None, typer.Option(help="GB for a cell; most of the machine's unless given.")
    ] = None,
    repeat: Annotated[
        int, typer.Option(min=1, help="How often small updates are measured; the best counts.")
    ] = 3,
    seed: SeedOption = 1,
    peers: Annotated[
        bool, typer.Option("--peers", help="DuckDB, clingo and Soufflé too, where they are installed.")
    ] = False,
    data: Annotated[
        Path | None, typer.Option(help="Where generated facts are kept; in --out unless given.")
    ] = None,
) -> None:
    """Run the paper's evaluation: methods, benchmarks and tasks, with tables and plots beside the paper's figures."""
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
