"""The pipeline and a change stream on Spark, with a session of this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hdlog.engines.spark.engine import SparkEngine
from hdlog.errors import ClashingTerms, InputError
from hdlog.ingest.intake import Intake
from hdlog.ingest.pipeline import Parsed
from hdlog.operations.stores import build_store, info, load, materialise, open_for_update, update, verify
from hdlog.operations.stream import follow
from hdlog.operations.work import Settings
from hdlog.program.model import Program
from hdlog.reading import identifiers
from hdlog.reading.splits import find_splits
from hdlog.store.spark import SparkGate
from hdlog.store.store import open_store
from hdlog.tuning import Tuning
from tests.engines import CLASSIC
from tests.unit.test_store import RULES, XSD, edge, exported, triples, write


def test_many_splits_give_the_same_triples(spark: SparkSession, tmp_path: Path) -> None:
    """Equal facts of different splits come together, whatever task they are in."""
    lines = [edge(i % 97, i % 89) for i in range(2000)] + [
        f'<http://e/{i}> <http://e/v> "{i % 50}"' for i in range(500)
    ]
    lines += [f'<http://e/{i}> <http://e/w> "{i}"^^<{XSD}integer>' for i in range(50)] * 2
    given = write(tmp_path / "in.nt", *lines)
    with build_store(tmp_path / "store", False) as store:
        engine = SparkEngine(spark)
        gate = SparkGate(store, engine)
        intake = Intake(Program())
        parsed = Parsed(engine, find_splits([given], size=8000), intake, {}, False)
        parsed.note_terms()
        changes = gate.load(parsed)
        store.commit(**changes)
        parsed.release()
    assert intake.rows == 2600
    assert exported(tmp_path / "store") == triples(Path(given).read_text())
    distinct = {p["name"]: p["about_distinct"] for p in info(tmp_path / "store")["predicates"]}
    assert 450 < distinct["http://e/v"][0] < 550
    assert 45 <= distinct["http://e/v"][1] <= 55
    verify(tmp_path / "store", Settings(), deep=True)


def test_skolem_terms_of_files_are_known(spark: SparkSession, tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text(RULES)
    materialise(
        [rules], [write(tmp_path / "in.nt", edge(1, 2), edge(2, 3))], tmp_path / "a", Settings("columnar")
    )
    first = exported(tmp_path / "a")
    tuning = Tuning().steered(small_input=0)
    load(tmp_path / "b", [str(tmp_path / "exported.nt")], Settings("spark", spark=spark, tuning=tuning))
    assert exported(tmp_path / "b") == first


def test_two_texts_with_the_same_hash_are_told_apart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hashes are cut to a few bits here, in the driver and in Spark's own expressions, so that some clash."""
    monkeypatch.setattr(identifiers, "HASHED", 0x3F)
    facts = [(f"t{i}", i) for i in range(40)]
    rules = tmp_path / "rules.dlog"
    rules.write_text('q[?x, ?y] :- p[?x, ?y] . r[?z] :- p[?x, ?y], BIND(CONCAT(?x, "!") AS ?z) .')
    for number, part in enumerate((facts[:15], facts[15:])):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "p.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in part))
    settings = Settings("spark-only", spark=spark)
    materialise([rules], [str(tmp_path / "0" / "p.csv")], tmp_path / "store", settings)
    while True:
        try:
            update(tmp_path / "store", [str(tmp_path / "1" / "p.csv")], [], settings)
            break
        except ClashingTerms:
            continue  # with one more of them noted
    assert open_store(tmp_path / "store").manifest.clashes
    for engine in (settings, Settings("columnar")):
        with open_for_update(tmp_path / "store", engine) as living:
            found = {
                p.name: set(living.work.reasoner.decode(p, living.work.reasoner.facts(p)))
                for p in living.work.reasoner.counts()
            }
        assert found["q"] == set(facts)
        assert found["r"] == {(f"{a}!",) for a, _ in facts}


def test_a_malformed_line_on_an_executor_is_told_as_one_in_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "bad.nt").write_text(f"{edge(1, 2)} .\nnonsense\n")
    settings = Settings("spark", spark=spark, tuning=Tuning().steered(small_input=0))
    with pytest.raises(InputError, match=r"bad\.nt:2: "):
        load(tmp_path / "store", [str(tmp_path / "bad.nt")], settings)
    assert not (tmp_path / "store").exists()


@CLASSIC
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
    snapshot = open_store(tmp_path / "store").manifest.version
    (commit,) = (tmp_path / "store" / "streams").glob("*/commits/0")
    commit.unlink()
    (commit.parent / ".0.crc").unlink(missing_ok=True)
    assert [line for line in run() if "already" in line]
    assert open_store(tmp_path / "store").manifest.version == snapshot
    write(changes / "3.delete.nt", edge(1, 2))
    run()
    assert edge(1, 2) not in exported(tmp_path / "store")
    write(changes / "3.delete.nt", edge(2, 3))  # the same name, another change
    assert len(run()) == 1
    assert edge(2, 3) not in exported(tmp_path / "store")


@CLASSIC
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
