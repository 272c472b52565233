"""The session that an engine works in, and the one place that knows whether it is a classic one or one by Spark Connect.

A session of a user keeps its settings: beside it there is one of our own, on the same cluster. Nothing here needs more than Spark Connect has;
what a classic session can do besides is to give back memory at once, and to name its jobs.
"""

from __future__ import annotations

import atexit
import itertools
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, cast

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from hdlog.engines.spark.progress import Say, watch_jobs
from hdlog.engines.spark.session import SETTINGS, is_connected, is_ours, start_session

Handle = Any
"""What is to be given back of a frame that is kept: the number of its RDD, or the frame itself."""
_beside: weakref.WeakKeyDictionary[SparkSession, SparkSession] = weakref.WeakKeyDictionary()
"""Our own sessions, by those of users."""
_numbers = itertools.count()
_MANY = 1 << 16
_TAG = 120
"""Characters of a description, where Spark has only tags for it."""


class OwnSession(Protocol):
    spark: SparkSession
    cores: int

    def adopt(self, data: DataFrame) -> DataFrame:
        """A frame of the user's session, in this one."""

    def hand_over(self, data: DataFrame) -> DataFrame:
        """A frame of this session, in the user's."""

    def compute(
        self, data: DataFrame, metrics: Mapping[str, str]
    ) -> tuple[DataFrame, Handle, dict[str, int]]:
        """The rows of a frame, computed now and kept, and figures about them."""

    def give_back(self, handle: Handle) -> None: ...

    def named(self, text: str) -> Any:
        """A context in which jobs have a description, for Spark's pages."""

    def watched(self, what: str, say: Say) -> Any:
        """A context in which it is told how far the jobs of Spark are."""


def find_session(given: SparkSession | None) -> OwnSession:
    session = given or start_session()
    own = session if is_ours(session) else _beside.get(session)
    if own is None:
        own = _beside[session] = session.newSession()
        if is_connected(own):
            atexit.register(own.stop)
        _copy_settings(session, own)
    for key, value in SETTINGS.items():
        own.conf.set(key, value)
    return Connected(session, own) if is_connected(session) else Classic(session, own)


def _copy_settings(session: SparkSession, own: SparkSession) -> None:
    """Those that the user made, of catalogs and file systems for example."""
    there = own.conf.getAll
    for key, value in session.conf.getAll.items():
        if there.get(key) != value and own.conf.isModifiable(key):
            own.conf.set(key, value)


class _Session:
    """What both kinds have alike."""

    def __init__(self, given: SparkSession, own: SparkSession) -> None:
        self.given = given
        self.spark = own
        local = str(own.conf.get("spark.master", "local")).startswith("local")
        # On a cluster a second copy, so that the loss of an executor loses nothing.
        self.level = StorageLevel.MEMORY_AND_DISK if local else StorageLevel.MEMORY_AND_DISK_2

    def adopt(self, data: DataFrame) -> DataFrame:
        if self.spark is data.sparkSession:
            return data
        return _move(data, self.spark)[0]

    @contextmanager
    def watched(self, what: str, say: Say) -> Iterator[None]:
        say(what)
        yield


class Classic(_Session):
    def __init__(self, given: SparkSession, own: SparkSession) -> None:
        super().__init__(given, own)
        self._context = own.sparkContext
        self.cores = self._context.defaultParallelism

    def hand_over(self, data: DataFrame) -> DataFrame:
        if self.spark is self.given:
            return data
        moved, forget = _move(data, self.given)
        forget()
        return moved

    def compute(
        self, data: DataFrame, metrics: Mapping[str, str]
    ) -> tuple[DataFrame, Handle, dict[str, int]]:
        observation = Observation()
        watched = data.observe(observation, *(F.expr(e).alias(n) for n, e in metrics.items()))
        kept = cast(Any, watched.localCheckpoint(eager=True, storageLevel=self.level))
        figures = {name: int(value or 0) for name, value in observation.get.items()}
        return kept, kept._jdf.queryExecution().logical().rdd().id(), figures

    def give_back(self, handle: Handle) -> None:
        cast(Any, self._context)._jsc.sc().unpersistRDD(handle, False)

    @contextmanager
    def named(self, text: str) -> Iterator[None]:
        before = self._context.getLocalProperty("spark.job.description")
        self._context.setJobDescription(text)
        try:
            yield
        finally:
            self._context.setLocalProperty("spark.job.description", cast(str, before))

    def watched(self, what: str, say: Say) -> Any:
        return watch_jobs(self._context, what, say)


class Connected(_Session):
    def __init__(self, given: SparkSession, own: SparkSession) -> None:
        super().__init__(given, own)
        parts = own.range(_MANY).selectExpr("spark_partition_id() AS p").selectExpr("1 + max(p)").first()
        assert parts is not None
        self.cores = int(parts[0])

    def hand_over(self, data: DataFrame) -> DataFrame:
        moved, forget = _move(data, self.given)
        # The server looks for the view whenever the frame is used, or one that is made of it.
        weakref.finalize(cast(Any, moved)._plan, forget)
        return moved

    def compute(
        self, data: DataFrame, metrics: Mapping[str, str]
    ) -> tuple[DataFrame, Handle, dict[str, int]]:
        # Figures that are observed do not come back from a checkpoint, so they are asked for.
        with self._active():
            kept = data.localCheckpoint(eager=True, storageLevel=self.level)
        row = kept.selectExpr(*(f"{e} AS {n}" for n, e in metrics.items())).first()
        assert row is not None
        return kept, kept, {name: int(value or 0) for name, value in row.asDict().items()}

    @contextmanager
    def _active(self) -> Iterator[None]:
        """A checkpoint is taken for one of the session that is active in this thread, whoever asked for it (pyspark 4.3)."""
        held = cast(Any, type(self.spark))._active_session
        before = getattr(held, "session", None)
        held.session = self.spark
        try:
            yield
        finally:
            held.session = before

    def give_back(self, handle: Handle) -> None:
        """The server forgets a frame when nobody has it any more."""

    @contextmanager
    def named(self, text: str) -> Iterator[None]:
        tag = "hdlog " + text.replace(",", " ")[:_TAG]
        self.spark.addTag(tag)
        try:
            yield
        except BaseException as error:
            if not isinstance(error, Exception):
                self.spark.interruptTag(tag)  # the server would go on
            raise
        finally:
            self.spark.removeTag(tag)


def _move(data: DataFrame, target: SparkSession) -> tuple[DataFrame, Callable[[], None]]:
    """A frame in another session of the same cluster, by a view that all of them see; and what removes that."""
    name = f"hdlog_shared_{next(_numbers)}"
    data.createOrReplaceGlobalTempView(name)
    return target.table(f"global_temp.{name}"), lambda: _forget(target, name)


def _forget(session: SparkSession, name: str) -> None:
    session.catalog.dropGlobalTempView(name)
