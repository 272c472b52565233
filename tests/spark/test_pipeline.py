"""The pipeline and a change stream on Spark, with a session of this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hdlog.errors import InputError
from hdlog.ingest.ingest import ingest
from hdlog.ingest.jobs import OnSpark
from hdlog.operations.stores import info, load, materialise
from hdlog.operations.stream import follow
from hdlog.operations.work import Settings
from hdlog.reading.splits import find_splits
from hdlog.store.store import create_store, open_store
from tests.unit.test_store import RULES, edge, exported, triples, write


def test_many_splits_buckets_and_shards_give_the_same_triples(spark: SparkSession, tmp_path: Path) -> None:
    lines = [edge(i % 97, i % 89) for i in range(2000)] + [
        f'<http://e/{i}> <http://e/v> "{i % 50}"' for i in range(500)
    ]
    given = write(tmp_path / "in.nt", *lines)
    store = create_store(tmp_path / "store")
    said: list[str] = []
    loaded = ingest(store, find_splits([given], size=8000), OnSpark(spark, said.append), parallel=3)
    store.commit(facts=loaded.facts, terms=loaded.terms, term_files=loaded.term_files, buckets=loaded.buckets)
    assert loaded.read == 2500
    assert loaded.buckets == 3
    assert {f.bucket for f in loaded.term_files} == {0, 1, 2}
    assert exported(tmp_path / "store") == triples(Path(given).read_text())
    exact = {f.name: f.distinct for f in loaded.facts}
    assert exact["http://e/v"] == (500, 50)
    assert any("reading" in line for line in said)


def test_a_malformed_line_on_an_executor_is_told_as_one_in_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "bad.nt").write_text(f"{edge(1, 2)} .\nnonsense\n")
    with pytest.raises(InputError, match=r"bad\.nt:2: "):
        load(tmp_path / "store", [str(tmp_path / "bad.nt")], Settings(spark=spark))
    assert not (tmp_path / "store").exists()


def test_a_stream_takes_each_file_once_across_restarts(spark: SparkSession, tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text(RULES)
    changes = tmp_path / "changes"
    changes.mkdir()
    materialise([rules], [write(tmp_path / "in.nt", edge(1, 2))], tmp_path / "store", Settings("columnar"))

    def run() -> list[str]:
        told: list[str] = []
        follow(
            tmp_path / "store",
            changes,
            tmp_path / "out",
            Settings("columnar", spark=spark),
            True,
            0.1,
            told.append,
        )
        return [line for line in told if line.startswith("batch")]

    write(changes / "1.add.nt", edge(2, 3), edge(3, 4))
    write(changes / "2.delete.nt", edge(3, 4))
    (changes / "readme.txt").write_text("no change")
    assert len(run()) == 1
    assert run() == []
    assert {f"{edge(1, 2)}", f"{edge(2, 3)}"} <= exported(tmp_path / "store")
    (first,) = sorted((tmp_path / "out").glob("*.changes"))
    lines = first.read_text().splitlines()[1:]
    assert f"+ {edge(2, 3)} ." in lines
    assert not any(edge(3, 4) in line for line in lines)  # came and went in one batch
    # A crash after the commit of the store and before Spark's own note: the batch comes again, and is not taken again.
    snapshot = open_store(tmp_path / "store").manifest.snapshot
    (commit,) = (tmp_path / "store" / "streams").glob("*/commits/0")
    commit.unlink()
    (commit.parent / ".0.crc").unlink(missing_ok=True)
    assert [line for line in run() if "already" in line]
    assert open_store(tmp_path / "store").manifest.snapshot == snapshot
    write(changes / "3.delete.nt", edge(1, 2))
    run()
    assert edge(1, 2) not in exported(tmp_path / "store")
    write(changes / "3.delete.nt", edge(2, 3))  # the same name, another change
    assert len(run()) == 1
    assert edge(2, 3) not in exported(tmp_path / "store")


def test_a_bad_file_stops_a_stream_and_nothing_of_its_batch_is_taken(
    spark: SparkSession, tmp_path: Path
) -> None:
    changes = tmp_path / "changes"
    changes.mkdir()
    load(tmp_path / "store", [write(tmp_path / "in.nt", edge(1, 2))], Settings())
    write(changes / "1.add.nt", edge(2, 3))
    (changes / "2.add.nt").write_text("nonsense\n")
    settings = Settings("columnar", spark=spark)
    with pytest.raises(InputError, match=r"2\.add\.nt:1: "):
        follow(tmp_path / "store", changes, None, settings, True, 0.1, lambda _: None)
    assert exported(tmp_path / "store") == {edge(1, 2)}
    write(changes / "2.add.nt", edge(3, 4))  # mended: the batch is taken whole
    follow(tmp_path / "store", changes, None, settings, True, 0.1, lambda _: None)
    assert exported(tmp_path / "store") == {edge(1, 2), edge(2, 3), edge(3, 4)}


def test_tables_of_spark_and_dataframes_are_loaded(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("ann", 3), ("bob", 4), ("ann", 3)], "who STRING, what INT")
    frame.createOrReplaceTempView("likes_view")
    load(tmp_path / "store", ["table:likes_view", {"likes": frame}], Settings(spark=spark))
    found = {p["name"]: p["facts"] for p in info(tmp_path / "store")["predicates"]}
    assert found == {"likes_view": 2, "likes": 2}
