"""The engine that tests run on: the embedded one, or one with Spark where HDLOG_TEST_ENGINE says so.

`mixed` has so little room in the process that tables and results of a few facts go to and fro; `spark` has everything on Spark;
`connect` likewise, by Spark Connect.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from hdlog import api
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.protocol import Engine
from hdlog.maintenance.trace import Trace
from hdlog.operations.work import EngineName, Settings
from hdlog.program.model import Predicate, Rule
from hdlog.reasoning import Reasoning, Row
from hdlog.tuning import Numbers, Tuning

ENGINE = os.environ.get("HDLOG_TEST_ENGINE", "columnar")
ON_SPARK = ENGINE != "columnar"
CLASSIC = pytest.mark.skipif(
    ENGINE == "connect", reason="Spark Connect has nothing of the kind, or refuses it: test_session.py"
)
_LITTLE_ROOM = {"near_rows": 4, "near_result": 3} if ENGINE == "mixed" else {}
NUMBERS = Numbers(**_LITTLE_ROOM)


def session() -> Any:
    """That tests share."""
    from hdlog.engines.spark.session import start_session

    if ENGINE == "connect":
        from tests.connect_server import start_server

        return start_session(start_server())
    return start_session("local[2]", "3g")


def make_engine() -> Engine[Any, Any, Any]:
    if not ON_SPARK:
        return ColumnarEngine()
    from hdlog.engines.mixed.engine import MixedEngine
    from hdlog.engines.spark.engine import SparkEngine

    if ENGINE == "mixed":
        return MixedEngine(session(), numbers=NUMBERS)
    return SparkEngine(session())


def settings(tuning: Tuning = Tuning()) -> Settings:
    """Of a command on a store."""
    if not ON_SPARK:
        return Settings(tuning=tuning)
    name: EngineName = "spark" if ENGINE == "mixed" else "spark-only"
    return Settings(name, spark=session(), tuning=tuning.steered(**_LITTLE_ROOM))


class OpenReasoner(api.Reasoner[Any]):
    """With what is behind it."""

    @property
    def core(self) -> Reasoning[Any, Any, Any]:
        return self._reasoning

    @property
    def trace(self) -> Trace:
        return self._reasoning.trace

    def tables(self) -> dict[Predicate, list[tuple[Row, bool, int]]]:
        return self._reasoning.supports()

    def nodes(self) -> dict[Predicate, tuple[Rule, dict[Row, int]]]:
        return self._reasoning.nodes()


class Reasoner(OpenReasoner):
    """On the engine of this test run."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        if ON_SPARK:
            options = {n: v for n, v in options.items() if n not in ("memory", "threads")}
            options.setdefault("engine", make_engine())
        super().__init__(*arguments, **options)
