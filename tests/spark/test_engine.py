"""What is particular to the engine on Spark: jobs, memory, plans, DataFrames in and out."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.mixed.engine import MixedEngine
from hdlog.engines.spark.engine import SparkEngine
from hdlog.engines.spark.frames import Keeper
from hdlog.errors import InputError, LimitReached, TooManyDerivations
from hdlog.maintenance.trace import Event
from hdlog.program.model import Predicate
from hdlog.report.explain import as_text
from hdlog.tuning import Numbers
from tests.engines import CLASSIC
from tests.engines import OpenReasoner as Reasoner

REACH = "r[?y] :- r[?x], e[?x, ?y] . r[?x] :- s[?x] ."


@pytest.fixture
def engine(spark: SparkSession) -> Iterator[SparkEngine]:
    made = SparkEngine(spark)
    yield made
    made.close()


def stored(spark: SparkSession) -> int:
    """Bytes of the frames that Spark holds in memory and on disk."""
    found = spark.sparkContext._jsc.sc().getRDDStorageInfo()
    return sum(info.memSize() + info.diskSize() for info in found)


@CLASSIC
def test_memory_and_plans_stay_flat_over_120_rounds(spark: SparkSession) -> None:
    """A chain of 120 steps: one round each; what a round made is forgotten, and plans do not grow."""
    sizes: list[int] = []
    plans: list[int] = []
    frames: list[int] = []

    class Watched(Keeper):
        def keep_data(self, data: Any, metrics: Any, what: str = "") -> Any:
            plans.append(len(data._jdf.queryExecution().analyzed().toString()))
            return super().keep_data(data, metrics, what)

    made = SparkEngine(spark)

    def listen(event: Event) -> None:
        if event.round % 25 == 0:
            frames.append(persisted() - before)
            sizes.append(stored(spark))

    def persisted() -> int:
        gc.collect()
        made.keeper.release()
        return int(spark.sparkContext._jsc.sc().getPersistentRDDs().size())

    before = persisted()
    made.keeper.__class__ = Watched
    reasoner = Reasoner(REACH, engine=made, progress=listen)
    reasoner.update(add={"e": [(i, i + 1) for i in range(120)], "s": [(0,)]})
    assert len(reasoner.trace.events) > 120
    assert reasoner.counts()[next(p for p in reasoner.counts() if p.name == "r")] == 121
    rounds = plans[20:]
    assert max(rounds[-40:]) < 1.1 * max(rounds[:40])  # numbers in it get longer
    assert max(frames) < 30  # at most 16 deltas that wait to be put together, and 6 runs of each table
    assert max(sizes) < 4 * max(sizes[:4])
    made.close()


def test_a_round_is_one_job_whatever_the_number_of_rules(spark: SparkSession, engine: SparkEngine) -> None:
    rules = " ".join(f"p[?y, ?x] :- p[?x, ?y], e{i}[?x, ?y] ." for i in range(12))
    reasoner = Reasoner(rules + " p[?x, ?y] :- s[?x, ?y] .", engine=engine)
    jobs: list[int] = []
    reasoner.trace.listen = lambda event: jobs.append(engine.keeper.jobs) if event.phase == "add" else None
    reasoner.update(add={"s": [(1, 2), (3, 4)], **{f"e{i}": [(1, 2), (2, 1)] for i in range(12)}})
    rounds = [b - a for a, b in pairwise(jobs)]
    assert rounds
    assert max(rounds) <= 1


def test_dataframes_go_in_and_come_out(spark: SparkSession, engine: SparkEngine) -> None:
    edges = spark.createDataFrame([("a", 1), ("b", 2), ('q"\t\\', 1), ("a", 1)], "name STRING, number INT")
    reasoner = Reasoner("same[?x, ?y] :- e[?x, ?n], e[?y, ?n], FILTER(?x != ?y) .", engine=engine)
    change = reasoner.update(add={"e": edges})
    assert str(change) == "5 facts added, 0 facts removed"
    found = reasoner.facts("same")
    assert sorted(map(tuple, found.collect())) == sorted([("a", 'q"\t\\'), ('q"\t\\', "a")])
    numbers = reasoner.facts("e")
    assert dict(numbers.dtypes) == {"c0": "string", "c1": "bigint"}
    reasoner.update(delete={"e": edges.where("name = 'a'")})
    assert reasoner.facts("same").count() == 0
    assert sorted(map(tuple, found.collect()))  # what was handed out stays readable
    nothing = spark.createDataFrame([("a", None)], "name STRING, number INT")
    with pytest.raises(InputError, match="a value is missing in 1 rows"):
        reasoner.update(add={"e": nothing})
    assert len(reasoner) == 2


def test_the_embedded_engine_takes_dataframes_of_spark_too(spark: SparkSession) -> None:
    reasoner = Reasoner("p[?y, ?x] :- e[?x, ?y] .")
    reasoner.update(add={"e": spark.createDataFrame(pa.table({"a": [1, 2], "b": ["x", "y"]}))})
    assert set(reasoner.facts("p")) == {("x", 1), ("y", 2)}


def test_an_error_in_mid_update_leaves_everything_as_it_was(engine: SparkEngine) -> None:
    reasoner = Reasoner(REACH, engine=engine, max_rounds=5)
    reasoner.update(add={"e": [(1, 2)], "s": [(1,)]})
    before = {p: sorted(t, key=str) for p, t in reasoner.tables().items()}
    with pytest.raises(LimitReached):
        reasoner.update(add={"e": [(i, i + 1) for i in range(1, 30)]})
    assert {p: sorted(t, key=str) for p, t in reasoner.tables().items() if t} == before


def test_more_derivations_than_can_be_counted_are_an_error(engine: SparkEngine) -> None:
    atoms = ", ".join(f"p{i}[?k, ?x{i}]" for i in range(11))
    reasoner = Reasoner(f"big[?k] :- {atoms} .", engine=engine, method="hd")
    with pytest.raises(TooManyDerivations):
        reasoner.update(add={f"p{i}": [(0, n) for n in range(64)] for i in range(11)})
    assert len(reasoner) == 0


def test_values_of_a_dataframe_are_the_same_terms_on_both_engines(
    spark: SparkSession, engine: SparkEngine
) -> None:
    frame = spark.createDataFrame(
        [
            (
                1e10,
                "a",
                True,
                date(2024, 2, 29),
                Decimal("1.50"),
                datetime(2024, 2, 29, 1, 2, 3, 500_000),
                2**62,
            ),
            (float("inf"), '"\n', False, date(1999, 1, 1), Decimal("-2"), datetime(1999, 1, 1), -(2**63)),
            (float("nan"), "<http://a>", True, date(1, 1, 1), Decimal("0"), datetime(2000, 1, 1), 7),
            (-0.0, "5", True, date(1, 1, 1), Decimal("0"), datetime(2000, 1, 1), 7),
            (1e-300, "", True, date(1, 1, 1), Decimal("0"), datetime(2000, 1, 1), 7),
        ],
        "d DOUBLE, s STRING, b BOOLEAN, t DATE, e DECIMAL(9, 2), m TIMESTAMP, i BIGINT",
    )
    found = []
    for chosen in (engine, ColumnarEngine()):
        reasoner = Reasoner(engine=chosen)
        reasoner.update(add={"v": frame})
        found.append({row for row, _, _ in reasoner.tables()[Predicate("v", 7)]})
    assert found[0] == found[1]
    assert len(found[0]) == 5


def test_explain_says_where_tables_are(spark: SparkSession) -> None:
    reasoner = Reasoner(REACH, engine=MixedEngine(spark, numbers=Numbers(near_rows=3, near_result=3)))
    reasoner.update(add={"e": [(i, i + 1) for i in range(9)], "s": [(7,)]})
    told = as_text(reasoner.explain())
    assert "in the process: " in told
    assert "on Spark: e/2" in told
    reasoner.update(delete={"e": [(i, i + 1) for i in range(9)]})
    assert "on Spark" not in as_text(reasoner.explain())
