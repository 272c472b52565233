"""The engine that tests run on: the embedded one, or Spark where HDLOG_TEST_ENGINE says so."""

from __future__ import annotations

import os
from typing import Any

from hdlog import api
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.protocol import Engine
from hdlog.operations.stores import Settings

ON_SPARK = os.environ.get("HDLOG_TEST_ENGINE") == "spark"


def make_engine() -> Engine[Any, Any, Any]:
    if not ON_SPARK:
        return ColumnarEngine()
    from hdlog.engines.spark.engine import SparkEngine
    from hdlog.engines.spark.session import start_session

    return SparkEngine(start_session("local[2]", "2g"))


def settings() -> Settings:
    """Of a command on a store."""
    if not ON_SPARK:
        return Settings()
    from hdlog.engines.spark.session import start_session

    return Settings("spark", spark=start_session("local[2]", "2g"))


class Reasoner(api.Reasoner):
    """On the engine of this test run."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        if ON_SPARK:
            options = {n: v for n, v in options.items() if n not in ("memory", "threads")}
            options.setdefault("engine", make_engine())
        super().__init__(*arguments, **options)
