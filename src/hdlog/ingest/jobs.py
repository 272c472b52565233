"""Where the tasks of the pipeline run: in this process, or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from hdlog.engines.spark.progress import Say, watch_jobs
from hdlog.errors import HdlogError

Item = TypeVar("Item")
Result = TypeVar("Result")


class Jobs(Protocol):
    def map(self, what: str, task: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """`task` on each item, results in order; `what` tells a user what goes on. A task may run twice."""


class InProcess:
    """One after the other; for inputs that are read before a Spark session would have started."""

    def __init__(self, say: Say = lambda _: None) -> None:
        self.say = say

    def map(self, what: str, task: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        results = []
        for number, item in enumerate(items):
            self.say(f"{what}: {number:,} of {len(items):,} parts")
            results.append(task(item))
        return results


class OnSpark:
    """One task for each item; the executors have this package, and see the store's folder and the input."""

    def __init__(self, spark: Any, say: Say = lambda _: None) -> None:
        self.spark = spark
        self.say = say

    def map(self, what: str, task: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        if not items:
            return []
        context = self.spark.sparkContext
        with watch_jobs(context, what, self.say):
            results = context.parallelize(list(items), len(items)).map(_Guarded(task)).collect()
        for result in results:
            if isinstance(result, HdlogError):
                raise result
        return results  # type: ignore[no-any-return]


class _Guarded:
    """A task whose errors that a user can cause are results: they would come back as the text of a traceback."""

    def __init__(self, task: Callable[[Any], Any]) -> None:
        self.task = task

    def __call__(self, item: Any) -> Any:
        try:
            return self.task(item)
        except HdlogError as error:
            return error
