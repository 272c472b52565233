"""Sessions: those of users keep their settings, jobs say what they are for, and Spark Connect does what classic sessions do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hdlog.engines.mixed.engine import MixedEngine
from hdlog.engines.spark import session
from hdlog.engines.spark.engine import SparkEngine
from hdlog.engines.spark.session import is_connected
from hdlog.errors import UsageError
from hdlog.operations.stores import materialise
from hdlog.operations.stream import follow
from hdlog.operations.work import Settings
from tests.engines import CLASSIC, ENGINE
from tests.engines import OpenReasoner as Reasoner
from tests.unit.test_store import RULES, edge, write

REACH = "r[?x, ?y] :- e[?x, ?y] . r[?x, ?z] :- r[?x, ?y], e[?y, ?z] ."
OWN = {
    "spark.sql.shuffle.partitions": "7",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.ansi.enabled": "false",
}


@pytest.fixture
def users(spark: SparkSession) -> SparkSession:
    made = spark.newSession()
    for key, value in OWN.items():
        made.conf.set(key, value)
    return made


@pytest.mark.parametrize("make", [SparkEngine, MixedEngine])
def test_a_session_of_a_user_keeps_its_settings(users: SparkSession, make: Any) -> None:
    before = dict(users.conf.getAll)
    reasoner = Reasoner(REACH, engine=make(users))
    edges = users.createDataFrame([(1, 2), (2, 3)], "a BIGINT, b BIGINT")
    reasoner.update(add={"e": edges})
    found = reasoner.facts("r")
    assert dict(users.conf.getAll) == before
    # What comes out is the session's own: it joins with what else there is, and its views are seen.
    edges.createOrReplaceTempView("edges_of_mine")
    assert sorted(map(tuple, users.table("edges_of_mine").collect())) == [(1, 2), (2, 3)]
    if make is SparkEngine:
        assert found.sparkSession is users
        joined = found.join(edges, [found["c0"] == edges["a"], found["c1"] == edges["b"]], "left_anti")
        assert [tuple(row) for row in joined.collect()] == [(1, 3)]
        reasoner.update(delete={"e": edges.where("a = 2")})
        assert [tuple(row) for row in reasoner.facts("r").collect()] == [(1, 2)]
        assert sorted(map(tuple, found.collect())) == [(1, 2), (1, 3), (2, 3)]
    assert dict(users.conf.getAll) == before


def test_two_engines_of_one_session_do_not_disturb_each_other(users: SparkSession) -> None:
    one, two = (Reasoner(REACH, engine=SparkEngine(users)) for _ in range(2))
    one.update(add={"e": [(1, 2)]})
    two.update(add={"e": [(5, 6), (6, 7)]})
    one.update(add={"e": [(2, 3)]})
    assert one.facts("r").count() == two.facts("r").count() == 3


@CLASSIC
def test_jobs_say_what_they_are_for(spark: SparkSession, tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text(RULES)
    data = write(tmp_path / "in.nt", *(edge(i, i + 1) for i in range(6)))
    materialise([rules], [data], tmp_path / "store", Settings("spark-only", spark=spark))
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    told = [jobs.apply(i).description() for i in range(jobs.size())]
    said = [str(d.get()) for d in told if d.isDefined()]
    path = re.compile("component [0-9]+ of [0-9]+, http://e/path, add in round 2: http://e/path")
    assert any(map(path.fullmatch, said)), said
    assert "writing facts" in said
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None


def test_a_stream_by_connect_is_refused_by_name(tmp_path: Path, spark: SparkSession) -> None:
    if not is_connected(spark):
        return
    rules = tmp_path / "rules.dlog"
    rules.write_text(RULES)
    materialise([rules], [write(tmp_path / "in.nt", edge(1, 2))], tmp_path / "store", Settings("columnar"))
    with pytest.raises(UsageError, match="classic session"):
        follow(tmp_path / "store", tmp_path, None, Settings(spark=spark), True, 0.1, print)


def test_a_server_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    if ENGINE != "connect":
        return
    monkeypatch.setattr(session, "_PATIENCE", 1)
    with pytest.raises(UsageError, match="no server of Spark Connect answers"):
        session.start_session("sc://127.0.0.1:1")
