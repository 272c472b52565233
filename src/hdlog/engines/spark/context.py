"""What the groups of operations of the engine on Spark share: the session, kept frames, terms, the journal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeVar

from pyspark.sql import SparkSession

from hdlog.engines.protocol import Version
from hdlog.engines.spark.dictionary import Dictionary
from hdlog.engines.spark.frames import Frame, Keeper
from hdlog.engines.spark.own_session import find_session
from hdlog.engines.spark.relation import Facts
from hdlog.engines.spark.table import Table
from hdlog.journal import Journal
from hdlog.program.terms import Constant
from hdlog.tuning import Numbers

SparkVersion = Version[Facts, Table]


class Context:
    def __init__(
        self,
        spark: SparkSession | None = None,
        partitions: int | None = None,
        numbers: Numbers | None = None,
    ) -> None:
        """`partitions` of all shuffles: one for each core by default; more for more than some millions of facts a core."""
        self.numbers = numbers or Numbers()
        self.journal = Journal()
        self.session = find_session(spark)
        self.spark = self.session.spark
        self.say: Callable[[str], None] = lambda _: None
        """where to tell what goes on"""
        self.keeper = Keeper(self.session, self.numbers.interpreted)
        self.partitions = 0
        self.spread(partitions or self.session.cores)
        self.dictionary = Dictionary(self.keeper, self.numbers.unsent_terms)

    def spread(self, partitions: int) -> None:
        """Into how many parts data is shuffled from now on, at least."""
        if partitions > self.partitions:
            self.partitions = self.keeper.partitions = partitions

    def make_room(self, facts: int) -> None:
        """There are so many facts: data is shuffled into more parts, if that is many for a task."""
        self.spread(-(-facts // self.numbers.partition))

    def table(self, arity: int, name: str = "") -> Table:
        return Table(self.keeper, arity, self.numbers.most_spark_runs, name)

    def identify(self, term: Constant) -> int:
        return int(self.dictionary.encode_terms([term])[0])

    def estimate_facts(self, facts: Facts) -> int:
        """How many facts, without asking Spark."""
        return facts.rows if facts.rows is not None else self.numbers.broadcast + 1

    def parts_of(self, version: SparkVersion) -> list[tuple[Frame, int, int]]:
        """What adds up to a version: frames with keys and `m`, a sign, and how many rows."""
        table = version.table
        sets = [(f, 1) for f in version.plus] + [(f, -1) for f in version.minus]
        undone = find_undone(set(table.content.runs), sets)
        runs = {run for facts, _ in undone for run, _ in facts.origin}
        parts = [
            (table.live_part(run), 1, run.rows)
            for run in table.content.runs
            if (run.came or run.went) and run not in runs
        ]
        rest = [(f, sign) for f, sign in sets if f.frame is not None and (f, sign) not in undone]
        return parts + [(f.frame, sign, self.estimate_facts(f)) for f, sign in rest if f.frame is not None]

    def close(self) -> None:
        self.keeper.release()


class Part(Protocol):
    """A run of a table, or what is like it: facts came with it, or went."""

    @property
    def came(self) -> int: ...
    @property
    def went(self) -> int: ...


class HasOrigin(Protocol):
    """Facts that are just those that came or went with runs of a table, if they are."""

    @property
    def origin(self) -> Sequence[tuple[Part, int]]: ...


Set = TypeVar("Set", bound=HasOrigin)


def find_undone(parts: Collection[Part], sets: Sequence[tuple[Set, int]]) -> list[tuple[Set, int]]:
    """The sets of a version that take back whole runs of the table, which has these: what came with them, and what went.

    Such runs are left out; adding the sets would leave rows that cancel, twice as many after each join.
    """
    undone = [(f, s) for f, s in sets if f.origin and all(r in parts and sign == -s for r, sign in f.origin)]
    while True:
        covered = {o for facts, _ in undone for o in facts.origin}
        whole = {
            run
            for run, _ in covered
            if (not run.came or (run, 1) in covered) and (not run.went or (run, -1) in covered)
        }
        kept = [(f, s) for f, s in undone if all(run in whole for run, _ in f.origin)]
        if len(kept) == len(undone):
            return kept
        undone = kept


def distinct_metrics(arity: int) -> dict[str, str]:
    """Different values by column, in the same job; a single column has nothing but different values."""
    if arity < 2:
        return {}
    return {f"d{i}": f"approx_count_distinct(c{i})" for i in range(arity)}


def read_distinct(arity: int, figures: Mapping[str, int]) -> tuple[float, ...]:
    return tuple(max(1.0, float(figures[f"d{i}"])) for i in range(arity)) if arity > 1 else ()
