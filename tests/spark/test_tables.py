"""Tables of Spark's catalog in and out, with columns that are chosen, values that are missing, and types that stay."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hdlog.engines.spark.engine import SparkEngine
from hdlog.errors import InputError, UsageError
from hdlog.operations.stores import export_to_catalog, info, load, materialise, update
from hdlog.operations.work import Settings
from hdlog.reading.mapping import read_mapping
from hdlog.tuning import Tuning
from tests.engines import OpenReasoner as Reasoner
from tests.shell import call

PEOPLE = [(1, "ann", None, 3.5), (2, "bob", 1, 2.0), (3, None, 1, 1.0), (4, "dan", 2, None)]
COLUMNS = "id BIGINT, name STRING, boss BIGINT, pay DOUBLE"


def facts(store: Path) -> dict[str, int]:
    return {p["name"]: p["facts"] for p in info(store)["predicates"]}


def test_columns_of_a_table_become_predicates(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame(PEOPLE, COLUMNS).createOrReplaceTempView("people_view")
    mapped = [
        read_mapping(t) for t in ("called(id, name)=table:people_view", "under(boss, id)=table:people_view")
    ]
    told = load(tmp_path / "store", mapped, Settings(spark=spark))
    assert facts(tmp_path / "store") == {"called": 3, "under": 3}
    assert told["dropped"] == 2
    assert "2 rows were left out for lack of a value" in told["lines"]
    with pytest.raises(UsageError, match="there is no column salary; there are id, name, boss, pay"):
        load(tmp_path / "other", [read_mapping("p(salary)=table:people_view")], Settings(spark=spark))


def test_two_tables_of_one_name_are_both_read(spark: SparkSession, tmp_path: Path) -> None:
    for number in (1, 2):
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS schema_{number} LOCATION '{tmp_path}/schema_{number}'")
        spark.createDataFrame([(number, number)], "a INT, b INT").write.saveAsTable(f"schema_{number}.edge")
    load(tmp_path / "store", ["table:schema_1.edge", "table:schema_2.edge"], Settings(spark=spark))
    assert facts(tmp_path / "store") == {"edge": 2}
    told = update(tmp_path / "store", [], ["table:schema_1.edge"], Settings(spark=spark))
    assert told["removed"] == {"edge/2": 1}
    for number in (1, 2):
        spark.sql(f"DROP SCHEMA schema_{number} CASCADE")


@pytest.mark.parametrize("small_input", [1 << 20, 0])
def test_columns_of_files_become_predicates(spark: SparkSession, tmp_path: Path, small_input: int) -> None:
    names = ["id", "name", "boss", "pay"]
    for day in (1, 2):
        folder = tmp_path / "people.parquet" / f"day={day}"
        folder.mkdir(parents=True)
        columns = [pa.array(c) for c in zip(*PEOPLE, strict=True)]
        pq.write_table(pa.table(columns, names=names), folder / "part-00000.parquet")
    (tmp_path / "people.csv").write_text("id,name,boss\n1,ann,7\n2,bob,8\n")
    maps = (
        f"called(name, id)={tmp_path}/people.parquet",
        f"seen(day, boss)={tmp_path}/people.parquet",
        f"under(boss, id)={tmp_path}/people.csv",
    )
    settings = Settings("spark", spark=spark, tuning=Tuning().steered(small_input=small_input))
    told = load(tmp_path / "store", [read_mapping(text) for text in maps], settings)
    assert facts(tmp_path / "store") == {"called": 3, "seen": 4, "under": 2}
    assert told["dropped"] == 4
    with pytest.raises(InputError, match=r"people\.csv:1: there is no column pay"):
        load(tmp_path / "other", [read_mapping(f"p(pay)={tmp_path}/people.csv")], settings)
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(InputError, match="only the columns of Parquet"):
        load(tmp_path / "other", [read_mapping(f"p(a)={tmp_path}/x.jsonl")], settings)
    for wrong in ("p=x.csv", "p()=x.csv", "p(a,)=x.csv", "p(a)"):
        with pytest.raises(UsageError):
            read_mapping(wrong)


def test_values_of_one_type_come_out_as_they_came_in(spark: SparkSession) -> None:
    rows: list[tuple[Any, ...]] = [
        (1, 2.5, True, date(2026, 11, 19), datetime(2026, 11, 19, 12, 30), "a"),
        (2, float("inf"), False, date(1999, 1, 1), datetime(1999, 1, 1), "2026-11-19"),
    ]
    schema = "i INT, d DOUBLE, b BOOLEAN, e DATE, t TIMESTAMP_NTZ, s STRING"
    reasoner = Reasoner(
        "q[?d, ?s] :- p[?i, ?d, ?b, ?e, ?t, ?s] . any[?d] :- q[?d, ?s] . any[?s] :- q[?d, ?s] .",
        engine=SparkEngine(spark),
    )
    reasoner.update(add={"p": spark.createDataFrame(rows, schema)})
    found = reasoner.facts("p")
    assert [t for _, t in found.dtypes] == ["bigint", "double", "boolean", "date", "timestamp_ntz", "string"]
    assert sorted(map(tuple, found.collect())) == rows
    zoned = spark.sql("SELECT TIMESTAMP '2026-11-19 12:30:00+02:00' AS t")
    reasoner.update(add={"z": zoned})
    assert reasoner.facts("z").dtypes == [("c0", "timestamp")]
    assert reasoner.facts("z").collect()[0][0].timestamp() == zoned.collect()[0][0].timestamp()
    assert dict(reasoner.facts("any").dtypes) == {"c0": "string"}
    assert sorted(row.c0 for row in reasoner.facts("any").collect()) == ["2.5", "2026-11-19", "INF", "a"]


def test_a_store_becomes_tables_of_the_catalog(spark: SparkSession, tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text(
        "<http://e/under>[?x, ?y] :- boss[?x, ?y] . <http://e/under>[?x, ?z] :- boss[?x, ?y], <http://e/under>[?y, ?z] ."
    )
    (tmp_path / "boss.csv").write_text("a,b\n1,2\n2,3\n")
    store = tmp_path / "store"
    materialise([rules], [str(tmp_path / "boss.csv")], store, Settings("spark", spark=spark))
    with pytest.raises(UsageError, match="no schema nowhere"):
        export_to_catalog(store, "nowhere", Settings(spark=spark))
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS made LOCATION '{tmp_path}/made'")
    told = export_to_catalog(store, "made", Settings(spark=spark))
    assert told["tables"] == {"boss/2": "made.boss", "http://e/under/2": "made.under"}
    assert sorted(map(tuple, spark.table("made.under").collect())) == [(1, 2), (1, 3), (2, 3)]
    with pytest.raises(UsageError, match="is there already; say --overwrite"):
        export_to_catalog(store, "made", Settings(spark=spark))
    call("export", store, "--table", "made", "--overwrite", "--engine", "spark")
    spark.sql("DROP SCHEMA made CASCADE")
