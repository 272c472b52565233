"""These tests start Spark; `make test` runs them in a run of their own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engines import ON_SPARK, session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/spark" in str(item.path) and not ON_SPARK:
            item.add_marker(pytest.mark.skip(reason="needs HDLOG_TEST_ENGINE=spark; make test runs it"))


@pytest.fixture(scope="session")
def spark() -> Any:
    return session()
