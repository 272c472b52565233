"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

import click

from hdlog.dialects import Dialect
from hdlog.places import Place, place
from hdlog.tuning import METHODS

if TYPE_CHECKING:
    from hdlog.operations.work import Settings

DATA_HELP = (
    "Files, folders or globs of facts, here or by a URI (s3://, gs://, hdfs://, abfs://): .nt, .nq, .ttl, .trig, .rdf, .csv, .tsv, .facts, .parquet, .jsonl, "
    "each also .gz or .zst; table:NAME is a table of Spark."
)
PATH = click.Path(path_type=Path)


class _PlaceType(click.ParamType):  # type: ignore[type-arg] # generic since click 8.5
    """A path, or the URI of a file or folder elsewhere."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        return place(value)


PLACE = _PlaceType()
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


store_folder = click.argument("store", type=PLACE)
new_store = click.option(
    "--store",
    type=PLACE,
    required=True,
    metavar="FOLDER",
    help="The folder to make a store in; s3://BUCKET/FOLDER and the like, too.",
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


@dataclass(frozen=True)
class EngineChoice:
    """Where a command is to run."""

    engine: EngineName
    master: str
    spark_settings: Mapping[str, str]

    def settings(self, memory: float | None, **more: Any) -> Settings:
        from hdlog.operations.work import Settings

        return Settings(self.engine, self.master, memory, spark_settings=dict(self.spark_settings), **more)


def _split_setting(
    context: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> dict[str, str]:
    for value in values:
        if not value.partition("=")[0] or "=" not in value:
            raise click.BadParameter(f"{value!r} is no KEY=VALUE", context, parameter)
    return dict(value.split("=", 1) for value in values)


def engine_choice(command: Command) -> Command:
    """Options that say where a command is to run, as its parameter `where`."""

    @wraps(command)
    def with_choice(
        *arguments: Any, engine: EngineName, master: str, spark_settings: Mapping[str, str], **rest: Any
    ) -> Any:
        return command(*arguments, where=EngineChoice(engine, master, spark_settings), **rest)

    options = with_options(
        click.option(
            "--engine",
            type=one_of(EngineName),
            default="auto",
            show_default=True,
            help="The embedded engine; Spark, with what is small in the process; Spark for everything; or what suits the number of facts and the memory.",
        ),
        click.option(
            "--master",
            default="local[*]",
            show_default=True,
            help="Spark's master: local[N], spark://HOST:PORT, yarn, k8s://URL; or sc://HOST:PORT, a server of Spark Connect.",
        ),
        click.option(
            "--conf",
            "spark_settings",
            multiple=True,
            metavar="KEY=VALUE",
            callback=_split_setting,
            help="A setting of the Spark session that is started; several times for several.",
        ),
    )
    return cast(Command, options(with_choice))


mapping = click.option(
    "--map",
    "mapped",
    multiple=True,
    metavar="PREDICATE(COLUMN,...)=SOURCE",
    help="Take some columns of a table for the arguments of a predicate; SOURCE is a file or folder of Parquet, CSV or TSV, or table:NAME. Rows that "
    "lack a value are left out, and counted.",
)
at_version = click.option(
    "--at",
    "version",
    type=int,
    metavar="VERSION",
    help="An older version of the store, as `hdlog log` lists them.",
)
overwrite = click.option("--overwrite", is_flag=True, help="Replace the store that is there.")
