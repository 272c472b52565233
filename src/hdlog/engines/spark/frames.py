"""Frames that are computed once, and forgotten when nothing refers to them."""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from hdlog import interrupts
from hdlog.engines.protocol import RunAgain
from hdlog.engines.spark.own_session import Handle, OwnSession
from hdlog.errors import SparkFailed, TooManyDerivations

CARE = "hdlog: a value that is no integer of 61 bits"
_TOO_LARGE = (
    "maxResultSize",
    "Cannot broadcast",
    "larger than 8",
    "Not enough memory to build and broadcast",
)
"""What Spark says of a side of a join that was not as small as it seemed."""


class View:
    """A name for a DataFrame in queries; name and memory are given back once no relation and no table uses it."""

    def __init__(
        self, name: str, rows: int, handle: Handle | None, released: deque[tuple[str, Handle | None]]
    ) -> None:
        self.name = name
        self.rows = rows
        self._handle = handle
        self._released = released
        self.pinned = False
        """whether somebody else has the frame; Spark's own cleaner looks after its memory then"""

    def __del__(self) -> None:
        # No call into Java here, and no object of Java: Python may collect in the middle of another call, and py4j
        # may have forgotten the object before.
        self._released.append((self.name, None if self.pinned else self._handle))


@dataclass(frozen=True)
class Frame:
    """A query, and the views it reads. Spark sees it when it is to be computed, and so analyses it once."""

    sql: str
    names: tuple[str, ...]
    """its columns"""
    uses: frozenset[View] = frozenset()
    hint: str = ""

    def select(self, *expressions: str) -> Frame:
        """`*` stands for all columns there are."""
        chosen = [e for x in expressions for e in (self.names if x == "*" else (x,))]
        if tuple(chosen) == self.names:
            return self
        names = tuple(e.rsplit(" AS ", 1)[-1] for e in chosen)
        return Frame(f"SELECT {', '.join(chosen)} FROM ({self.sql})", names, self.uses)

    def where(self, condition: str) -> Frame:
        return Frame(f"SELECT * FROM ({self.sql}) WHERE {condition}", self.names, self.uses)

    def totals(self, keys: Sequence[str], *sums: str) -> Frame:
        """One row for each combination of keys, with aggregates over the others."""
        chosen = (*keys, *sums)
        names = tuple(e.rsplit(" AS ", 1)[-1] for e in chosen)
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        return Frame(f"SELECT {', '.join(chosen)} FROM ({self.sql}){group}", names, self.uses)

    def distinct(self, *names: str) -> Frame:
        return Frame(f"SELECT DISTINCT {', '.join(names)} FROM ({self.sql})", names, self.uses)

    def join(self, other: Frame, on: Sequence[str], how: str = "inner") -> Frame:
        """Columns of `on` once, then those of both sides."""
        kind = f"{how.upper().replace('_', ' ')} JOIN" if on else "CROSS JOIN"
        hints = [f"{frame.hint}({name})" for name, frame in (("l", self), ("r", other)) if frame.hint]
        hint = f"/*+ {', '.join(hints)} */ " if hints else ""
        using = f" USING ({', '.join(on)})" if on else ""
        rest = [n for n in self.names if n not in on]
        if how not in ("left_semi", "left_anti"):
            rest += [n for n in other.names if n not in on]
        names = (*on, *rest)
        sql = f"SELECT {hint}{', '.join(names)} FROM ({self.sql}) l {kind} ({other.sql}) r{using}"
        return Frame(sql, names, self.uses | other.uses)

    def with_hint(self, hint: Literal["BROADCAST", "SHUFFLE_HASH"]) -> Frame:
        return replace(self, hint=hint)


def union(frames: Sequence[Frame]) -> Frame:
    if len(frames) == 1:
        return frames[0]
    assert len({f.names for f in frames}) == 1, "rows of the same columns are put together"
    sql = " UNION ALL ".join(f"({f.sql})" for f in frames)
    return Frame(sql, frames[0].names, frozenset().union(*(f.uses for f in frames)))


_numbers = itertools.count()
_released: weakref.WeakKeyDictionary[SparkSession, deque[tuple[str, Handle | None]]] = (
    weakref.WeakKeyDictionary()
)
"""What nobody uses any more in each session: the next job gives it back, whoever made it."""


class Keeper:
    """Runs jobs: the only place where Spark is made to compute."""

    def __init__(self, session: OwnSession, interpreted: int) -> None:
        """Plans over up to so many rows are interpreted, not compiled."""
        self.session = session
        self.spark = session.spark
        self.interpreted = interpreted
        self.jobs = 0
        self.phase = ""
        """what goes on, for Spark's pages"""
        self._released = _released.setdefault(self.spark, deque())
        self._prepared: tuple[bool, int] = (True, 0)
        self.partitions = 1
        self._waiting: list[Callable[[], None]] = []
        """what is to be given back when the update is over"""
        self.careful = False
        """whether nothing is taken for granted: neither that values are integers of 61 bits, so that each built-in looks
        first, nor that what seems small is"""

    @contextmanager
    def doing(self, phase: str) -> Iterator[None]:
        """What goes on for a while."""
        before, self.phase = self.phase, phase
        try:
            yield
        finally:
            self.phase = before

    def frame(self, data: DataFrame, rows: int = 0, handle: Handle | None = None) -> Frame:
        """A DataFrame of this session as something to ask questions about."""
        view = View(f"hdlog_{next(_numbers)}", rows, handle, self._released)
        data.createOrReplaceTempView(view.name)
        return Frame(f"SELECT * FROM {view.name}", tuple(data.columns), frozenset([view]))

    def data(self, frame: Frame) -> DataFrame:
        """The DataFrame that a query stands for, not computed yet."""
        self._prepare(frame)
        return self.spark.sql(frame.sql)

    def keep(self, frame: Frame, metrics: Mapping[str, str], what: str = "") -> tuple[Frame, dict[str, int]]:
        """The frame, computed now and cut off from what it was computed from; and figures about it from the same job:
        how many rows, and the given ones. `what` it is, for Spark's pages."""
        return self.keep_data(self.data(frame), metrics, what)

    def keep_data(
        self, data: DataFrame, metrics: Mapping[str, str], what: str = ""
    ) -> tuple[Frame, dict[str, int]]:
        self.release()
        counted = {"rows": "count(1)", **metrics}
        kept, handle, figures = self.run(lambda: self.session.compute(data, counted), what)
        return self.frame(kept, figures["rows"], handle), figures

    def _prepare(self, frame: Frame) -> None:
        """Small rounds: no Java code made of the plan, which takes longer than running it, and one task, not several."""
        large = sum(v.rows for v in frame.uses) > self.interpreted
        wanted = (large, self.partitions if large else 1)
        if wanted != self._prepared:
            self._prepared = wanted
            self.spark.conf.set("spark.sql.codegen.wholeStage", str(large).lower())
            self.spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if large else "NO_CODEGEN")
            self.spark.conf.set("spark.sql.shuffle.partitions", str(wanted[1]))

    def run(self, job: Any, what: str = "") -> Any:
        self.jobs += 1
        try:
            with interrupts.let_through(), self.session.named(self._describe(what)):
                return job()
        except (Py4JNetworkError, ConnectionError) as error:
            raise SparkFailed(
                "Spark has ended in the middle of a job, most likely for lack of memory; give it more (--memory), or more executors"
            ) from error
        except (PySparkException, Py4JJavaError) as error:
            if CARE in str(error) or (not self.careful and any(text in str(error) for text in _TOO_LARGE)):
                self.careful = True
                raise RunAgain from None
            if "ARITHMETIC_OVERFLOW" in str(error):
                raise TooManyDerivations from None
            raise SparkFailed(f"Spark could not run a job: {error}") from error

    def _describe(self, what: str) -> str:
        return ": ".join(text for text in (self.phase, what) if text) or "hdlog"

    def collect(self, frame: Frame, what: str = "") -> Any:
        """A small frame as an Arrow table."""
        return self.run(self.data(frame).toArrow, what)

    def until_commit(self, give_back: Callable[[], None]) -> None:
        """Have something given back when the update is over."""
        self._waiting.append(give_back)

    def finish(self) -> None:
        """The update is over."""
        while self._waiting:
            self._waiting.pop()()
        self.release()

    def release(self) -> None:
        """Give back the names and the memory of frames that nobody uses any more."""
        while self._released:
            name, handle = self._released.popleft()
            self.spark.catalog.dropTempView(name)
            if handle is not None:
                self.session.give_back(handle)

    def pin(self, views: Iterable[View]) -> None:
        for view in views:
            view.pinned = True
