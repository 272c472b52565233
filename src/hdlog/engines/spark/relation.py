"""Facts and relations on Spark: frames with a multiplicity, evaluated late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hdlog.engines.spark.frames import Frame
from hdlog.program.terms import Variable


def columns(arity: int) -> list[str]:
    """The names of a fact's columns; a fact without arguments has one with nothing in it."""
    return [f"c{i}" for i in range(max(1, arity))]


def column(variable: str) -> str:
    """The column of a variable; Spark does not tell x from X, and knows no quotes in some places."""
    return f"v_{variable.encode().hex()}"


@dataclass(eq=False)
class Facts:
    """Facts of one predicate with multiplicities in the column `m`.

    `frame` is None where there are none for certain. Unless `summed`, a fact may be in several rows, and the
    sum of them is what counts.
    """

    arity: int
    frame: Frame | None = None
    rows: int | None = 0
    """how many facts, if known"""
    positive: int | None = 0
    """how many of them have positive multiplicities, if known"""
    summed: bool = True
    kept: bool = True
    distinct: Sequence[float] = field(default=())
    """different values by column, about; nothing where not known"""
    origin: tuple[tuple[Any, int], ...] = ()
    """runs of a table, each with whether these are just the facts that came (1) or went (-1) with it"""

    @property
    def keys(self) -> list[str]:
        return columns(self.arity)

    def become(self, other: Facts) -> None:
        """The same facts, computed by now."""
        self.__dict__.update(other.__dict__)

    def sums(self) -> Frame:
        """One row for each fact."""
        assert self.frame is not None, "facts that do not exist have no frame"
        if self.summed:
            return self.frame
        return self.frame.totals(self.keys, "sum(m) AS m").where("m <> 0")


def defer(arity: int, frame: Frame, summed: bool, rows: int | None = None) -> Facts:
    """Facts that are not computed yet."""
    return Facts(arity, frame, rows, None, summed, False)


@dataclass(frozen=True, eq=False)
class Relation:
    """Rows over variables, with a multiplicity in the column `m`; no frame where there are none for certain."""

    names: tuple[str, ...]
    frame: Frame | None
    estimate: float
    bound: int | None = None
    """how many rows at most, if known"""
    kept: bool = False

    @property
    def columns(self) -> list[str]:
        return [column(n) for n in self.names]


def names_of(terms: Sequence[object]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t.name for t in terms if isinstance(t, Variable)))
