"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hdlog.dialects import Dialect
from hdlog.tuning import Method

METHOD_HELP = "How rules are evaluated: join plans, hypertree decompositions, for each rule the cheaper (combined), or just the paper's system."
WITHOUT_HELP = "Improvements to switch off, with commas between: views, sharing, ... (see docs/engine.md)."
DATA_HELP = (
    "Files, folders or globs of facts: .nt, .nq, .ttl, .rdf, .csv, .tsv, .facts, .parquet, .jsonl, "
    "each also .gz or .zst; table:NAME is a table of Spark."
)
FactFolder = Annotated[Path, typer.Option("-F", "--fact-dir", help="Where .input relations are read from.")]
RuleDialect = Annotated[Dialect | None, typer.Option(help="The dialect of the rule files.")]
MemoryBudget = Annotated[
    float | None, typer.Option(min=0.001, help="Memory budget in GB; 80 % of the machine by default.")
]
MaxRounds = Annotated[int | None, typer.Option(help="Stop a component that takes more rounds.")]
MaxFacts = Annotated[int | None, typer.Option(help="Stop an update that finds more facts.")]
RuleMethod = Annotated[Method, typer.Option(help=METHOD_HELP)]
Without = Annotated[str, typer.Option(help=WITHOUT_HELP)]
SummaryAsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
Lenient = Annotated[
    bool,
    typer.Option("--lenient", help="Skip malformed lines and count them, in place of refusing the file."),
]
EngineOption = Annotated[
    Literal["auto", "columnar", "spark"],
    typer.Option(
        help="The embedded engine, Spark, or the one that suits the number of facts and the memory."
    ),
]
Master = Annotated[str, typer.Option(help="Spark's master: local[N], spark://host:port, yarn, ...")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the store that is there.")]
StoreFolder = Annotated[Path, typer.Argument(help="The folder of the store.")]
NewStore = Annotated[Path, typer.Option(help="The folder to make a store in.")]
ExportFormat = Literal["nt", "csv", "tsv", "facts", "parquet"]
