"""A materialisation on Spark that is killed goes on from what was finished, and ends with the same store."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hdlog.errors import StoreError, UsageError
from hdlog.operations import stepwise
from hdlog.operations.stores import info, load, materialise, resume, update, verify
from hdlog.operations.work import Settings
from hdlog.program.model import Program
from hdlog.store.store import UNFINISHED, open_unfinished
from hdlog.text import parse
from tests.shell import call
from tests.unit.test_store import edge, exported, write

RULES = """
prefix : <http://e/>
:path[?x, ?y] :- :edge[?x, ?y] .
:path[?x, ?z] :- :path[?x, ?y], :edge[?y, ?z] .
:twice[?x, ?z] :- :edge[?x, ?y], :edge[?y, ?z] .
:far[?x, ?y] :- :path[?x, ?y], NOT :edge[?x, ?y], NOT :twice[?x, ?y] .
:reach[?x, ?n] :- AGGREGATE(:far[?x, ?y] ON ?x BIND COUNT(?y) AS ?n) .
:even[?x, ?y] :- :twice[?x, ?y] .
:even[?x, ?z] :- :even[?x, ?y], :twice[?y, ?z] .
:named[?k, ?x] :- :reach[?x, ?n], BIND(SKOLEM("way", ?x, ?n) AS ?k) .
:edge[:n7, :n8] .
"""


class Killed(BaseException):
    """As if the process had ended there."""


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, str, set[str]]:
    """Rules, data, and what follows."""
    rules = tmp_path / "rules.dlog"
    rules.write_text(RULES)
    data = write(tmp_path / "in.nt", *(edge(i, i + 1) for i in range(7)))
    materialise([rules], [data], tmp_path / "whole", Settings("columnar"))
    return rules, data, exported(tmp_path / "whole")


def settings(spark: SparkSession, engine: Any = "spark") -> Settings:
    return Settings(engine, spark=spark, note_every=0.0)


@pytest.mark.parametrize("engine", ["spark", "spark-only", "columnar"])
def test_whatever_was_noted_is_gone_on_from(
    spark: SparkSession,
    made: tuple[Path, str, set[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: Any,
) -> None:
    rules, data, whole = made
    assert len(stepwise.order_rules(parse(RULES))) > 4
    store = tmp_path / "store"
    monkeypatch.setattr(stepwise, "choose_rules", _killing(CHOOSE, 3))
    with pytest.raises(Killed):
        materialise([rules], [data], store, settings(spark))
    assert (store / UNFINISHED).exists()
    with pytest.raises(StoreError, match="no store there"):
        info(store)
    noted = open_unfinished(store).manifest.unfinished
    assert noted
    monkeypatch.setattr(stepwise, "choose_rules", _killing(CHOOSE, 1))
    if engine != "columnar":
        with pytest.raises(Killed):
            resume(store, settings(spark, engine))
        again = open_unfinished(store).manifest.unfinished
        assert again is not None
        assert len(again) > len(noted)
    monkeypatch.setattr(stepwise, "choose_rules", CHOOSE)
    told = resume(store, settings(spark, engine))
    assert told["lines"][0].startswith("gone on after ")
    assert exported(store) == whole
    assert not (store / UNFINISHED).exists()
    verify(store, Settings(), deep=True)
    more = write(tmp_path / "more.nt", edge(3, 1))
    update(store, [more], [data], settings(spark, engine))
    update(tmp_path / "whole", [more], [data], Settings("columnar"))
    assert exported(store) == exported(tmp_path / "whole")


CHOOSE = stepwise.choose_rules


def _killing(choose: Any, after: int) -> Any:
    """Ends the process, as far as it goes, when rules are chosen once more than so often."""
    count = 0

    def chosen(program: Program, numbers: Any) -> Program:
        nonlocal count
        count += 1
        if count > after:
            raise Killed
        return choose(program, numbers)  # type: ignore[no-any-return]

    return chosen


def test_a_store_that_is_replaced_stays_until_the_new_one_is_whole(
    spark: SparkSession, made: tuple[Path, str, set[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, data, whole = made
    store = tmp_path / "store"
    load(store, [write(tmp_path / "old.nt", edge(50, 51))], Settings("columnar"))
    monkeypatch.setattr(stepwise, "choose_rules", _killing(CHOOSE, 3))
    with pytest.raises(Killed):
        materialise([rules], [data], store, settings(spark), overwrite=True)
    monkeypatch.undo()
    assert info(store)["facts"] == 1
    update(store, [write(tmp_path / "old2.nt", edge(51, 52))], [], Settings("columnar"))  # and it lives on
    assert info(store)["facts"] == 2
    resume(store, settings(spark))
    assert exported(store) == whole
    with pytest.raises(StoreError, match="no unfinished materialisation"):
        resume(store, settings(spark))


def test_what_is_not_to_be_resumed_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no unfinished materialisation"):
        resume(tmp_path / "nothing", Settings("columnar"))
    assert not (tmp_path / "nothing").exists()
    for more in (["a.nt"], ["--method", "hd"], ["--map", "p(a)=x.csv"], ["--overwrite"]):
        named = more[0] if more[0].startswith("-") else "files"
        with pytest.raises(UsageError, match=f"leave out {named}"):
            call("materialise", *more, "--store", tmp_path / "x", "--resume")


_CHILD = """
import sys
from pathlib import Path
from hdlog.operations.stores import materialise, resume
from hdlog.operations.work import Settings
settings = Settings("spark", "local[2]", 3.0, note_every=0.0)
store, rules, data = map(Path, sys.argv[1:])
if (store / "unfinished.json").exists():
    resume(store, settings)
else:
    materialise([rules], [str(data)], store, settings, overwrite=True)
"""


@pytest.mark.slow
def test_a_driver_that_is_killed_at_any_moment(made: tuple[Path, str, set[str]], tmp_path: Path) -> None:
    rules, data, whole = made
    store, chance = tmp_path / "store", random.Random(5)
    kills = 0
    for attempt in range(3):
        child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _CHILD, str(store), str(rules), data],
            start_new_session=True,
            stderr=subprocess.DEVNULL,
        )
        noted = store / UNFINISHED
        before = noted.stat().st_mtime_ns if noted.exists() else 0
        while (
            attempt < 2
            and child.poll() is None
            and (not noted.exists() or noted.stat().st_mtime_ns == before)
        ):
            time.sleep(0.05)  # a note more than before, and then some
        if attempt < 2:
            time.sleep(chance.random())
        if attempt < 2 and child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            kills += 1
        child.wait()
    assert kills
    assert exported(store) == whole
    verify(store, Settings(), deep=True)
