"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import click

from hdlog.dialects import Dialect
from hdlog.tuning import METHODS

DATA_HELP = (
    "Files, folders or globs of facts: .nt, .nq, .ttl, .trig, .rdf, .csv, .tsv, .facts, .parquet, .jsonl, "
    "each also .gz or .zst; table:NAME is a table of Spark."
)
PATH = click.Path(path_type=Path)
EngineName = Literal["auto", "columnar", "spark", "spark-only"]
ExportFormat = Literal["nt", "nq", "trig", "csv", "tsv", "facts", "parquet"]

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]


def one_of(choices: Any) -> click.Choice[str]:
    """A choice of the values of a Literal type."""
    return click.Choice(get_args(choices))


def with_options(*options: Decorator[Any]) -> Decorator[Any]:
    """Several options, shown in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


store_folder = click.argument("store", type=PATH)
new_store = click.option(
    "--store", type=PATH, required=True, metavar="FOLDER", help="The folder to make a store in."
)
fact_folder = click.option(
    "-F",
    "--fact-dir",
    "facts",
    type=PATH,
    default=Path(),
    metavar="FOLDER",
    help="Where .input relations are read from.",
)
rule_dialect = click.option("--dialect", type=one_of(Dialect), help="The dialect of the rule files.")


class _Gigabytes(click.FloatRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail("not a number of GB", param, ctx)
        return number


memory_budget = click.option(
    "--memory",
    type=_Gigabytes(min=0.001, max=1e6),
    metavar="GB",
    help="Memory budget in GB; 80 % of the machine by default.",
)
limits = with_options(
    click.option("--max-rounds", type=click.IntRange(min=1), help="Stop a component that takes more rounds."),
    click.option("--max-facts", type=click.IntRange(min=1), help="Stop an update that finds more facts."),
)
evaluation = with_options(
    click.option(
        "--method",
        type=click.Choice(METHODS),
        default="combined",
        show_default=True,
        help="How rules are evaluated: join plans, hypertree decompositions, for each rule the cheaper (combined), "
        "or just the paper's system.",
    ),
    click.option(
        "--without",
        default="",
        metavar="NAMES",
        help="Improvements to switch off, with commas between: views, sharing, ... (see docs/engine.md).",
    ),
)
summary_as_json = click.option("--json", "json_", is_flag=True, help="Print the summary as JSON.")
lenient = click.option(
    "--lenient", is_flag=True, help="Skip malformed lines and count them, in place of refusing the file."
)
engine_choice = with_options(
    click.option(
        "--engine",
        type=one_of(EngineName),
        default="auto",
        show_default=True,
        help="The embedded engine, Spark, or the one that suits the number of facts and the memory.",
    ),
    click.option(
        "--master",
        default="local[*]",
        show_default=True,
        help="Spark's master: local[N], spark://host:port, yarn, ...",
    ),
)
at_version = click.option(
    "--at",
    "version",
    type=int,
    metavar="VERSION",
    help="An older version of the store, as `hdlog log` lists them.",
)
overwrite = click.option("--overwrite", is_flag=True, help="Replace the store that is there.")
