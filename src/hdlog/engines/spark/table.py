"""The maintained facts of a predicate: a sum of runs, so that a change is one more run."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from hdlog.engines.protocol import Support
from hdlog.engines.spark.frames import Frame, Keeper, union
from hdlog.engines.spark.relation import columns

SUPPORTS: dict[Support, str] = {"asserted": "a", "nonrecursive": "n", "recursive": "r"}
_STATE = ("a", "n", "r", "l")


@dataclass(frozen=True, eq=False)
class Run:
    """Differences, to be added up: of assertions, of the two supports, and of being live."""

    frame: Frame
    rows: int
    came: int = 0
    """facts that became live"""
    went: int = 0


@dataclass(frozen=True)
class Content:
    runs: tuple[Run, ...] = ()
    size: int = 0
    """live facts"""
    distinct: tuple[float, ...] = ()

    def without(self, runs: Container[object]) -> Content:
        """What is left of it."""
        left = tuple(run for run in self.runs if run not in runs)
        return Content(left, sum(run.came - run.went for run in left), self.distinct)


class Table:
    def __init__(self, keeper: Keeper, arity: int, most_runs: int, name: str = "") -> None:
        self.keeper = keeper
        self.name = name
        self.most_runs = most_runs
        self.arity = arity
        self.keys = columns(arity)
        self.content = Content()
        self._saved: tuple[Run, ...] | None = ()
        """the runs that a store has"""
        self.noted = -1
        """the update in whose journal the content is"""

    def __len__(self) -> int:
        return self.content.size

    # What a store has of it.

    def persist(self) -> None:
        """A store has all of it now."""
        self._saved = self.content.runs

    @property
    def is_stored(self) -> bool:
        """Whether a store has any of it."""
        return bool(self._saved)

    @property
    def has_changed(self) -> bool:
        """Whether there may be something that the store has not."""
        return self.content.runs != self._saved

    def unsaved_runs(self) -> tuple[Run, ...] | None:
        """The runs that the store has not; None where old ones were put together with new ones."""
        saved = self._saved or ()
        return self.content.runs[len(saved) :] if self.content.runs[: len(saved)] == saved else None

    def list_live_parts(self) -> list[Frame]:
        """The live facts, as rows that add up: keys and `m`."""
        return [self.live_part(run) for run in self.content.runs if run.came or run.went]

    def live_part(self, run: Run) -> Frame:
        return run.frame.where("l <> 0").select(*self.keys, "l AS m")

    def states(self, touched: Frame) -> Frame:
        """Some facts, each in one row, with what the table knows of them; zeros for those it does not."""
        if not self.content.runs:
            return touched.select("*", *(f"0L AS {s}" for s in _STATE))
        known = union([r.frame for r in self.content.runs])
        # In this order: what is the same on both sides gets new names, and loses its partitions, on the right.
        joined = known.join(touched.with_hint("SHUFFLE_HASH"), self.keys, "right")
        rest = [c for c in touched.names if c not in self.keys]
        return joined.totals(
            self.keys,
            *(f"first({c}) AS {c}" for c in rest),
            *(f"coalesce(sum({s}), 0L) AS {s}" for s in _STATE),
        )

    def append(self, run: Run, distinct: Sequence[float] = ()) -> None:
        """One more run; it stays by itself for now: the facts in it are likely to be asked for."""
        if len(self.content.runs) >= self.most_runs:
            self._compact()
        old = self.content
        size = old.size + run.came - run.went
        self.content = Content((*old.runs, run), size, _estimate_distinct(old.distinct, distinct, size))

    def _compact(self) -> None:
        """Merge the runs after the first, or all if they have become as many as half of it."""
        runs = self.content.runs
        start = 1 if 2 * sum(r.rows for r in runs[1:]) < runs[0].rows else 0
        merged = union([r.frame for r in runs[start:]]).totals(
            self.keys, *(f"sum({s}) AS {s}" for s in _STATE)
        )
        kept, figures = self.keeper.keep(
            merged.where(" OR ".join(f"{s} <> 0" for s in _STATE)),
            {"came": "count_if(l = 1)", "went": "count_if(l = -1)"},
            f"{self.name}, runs merged",
        )
        self.content = Content(
            (*runs[:start], Run(kept, figures["rows"], figures["came"], figures["went"])),
            self.content.size,
            self.content.distinct,
        )

    def add_up_runs(self) -> Frame | None:
        """One row for each stored fact: keys, supports, and whether it is live."""
        runs = self.content.runs
        return add_up([run.frame for run in runs], self.keys) if runs else None


def add_up(frames: Sequence[Frame], keys: Sequence[str]) -> Frame:
    """One row for each fact of runs: keys, and what the runs say of it in all."""
    if len(frames) == 1:
        return frames[0]
    return union(frames).totals(keys, *(f"sum({s}) AS {s}" for s in _STATE))


def _estimate_distinct(old: Sequence[float], new: Sequence[float], size: int) -> tuple[float, ...]:
    """Different values by column when runs are added up: at least the most in one, at most all."""
    if not old or not new:
        return tuple(new or old)
    return tuple(min(max(a, b) + 0.5 * min(a, b), float(size)) for a, b in zip(old, new, strict=True))


def state_columns(**expressions: str) -> list[str]:
    """A run's columns: the given expressions, and zeros."""
    return [f"{expressions.get(s, '0L')} AS {s}" for s in _STATE]
