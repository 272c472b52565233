"""Relations, facts and tables that are near, in the process, or far, on Spark; what crossed over once is known on both sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.facts import Facts as NearFacts
from hdlog.engines.columnar.kernels import Keys
from hdlog.engines.columnar.relation import Relation as NearRelation
from hdlog.engines.columnar.table import Table as NearTable
from hdlog.engines.protocol import Version
from hdlog.engines.spark.relation import Facts as FarFacts
from hdlog.engines.spark.relation import Relation as FarRelation
from hdlog.engines.spark.table import Run
from hdlog.engines.spark.table import Table as FarTable

__all__ = [
    "LETTERS",
    "Changes",
    "Facts",
    "FarFacts",
    "FarRelation",
    "FarTable",
    "Known",
    "MixedVersion",
    "NearFacts",
    "NearRelation",
    "NearTable",
    "Recent",
    "Relation",
    "Run",
    "Table",
]


@dataclass(eq=False)
class Relation:
    near: NearRelation | None = None
    far: FarRelation | None = None

    @property
    def is_near(self) -> bool:
        return self.near is not None


@dataclass(eq=False)
class Facts:
    arity: int
    near: NearFacts | None = None
    far: FarFacts | None = None
    origin: tuple[tuple[Run | Recent, int], ...] = field(default=())
    """changes of a far table, each with whether these are just the facts that came (1) or went (-1) with it"""

    @property
    def is_near(self) -> bool:
        return self.near is not None


Changes = Mapping[str, NDArray[np.int64]]
"""Differences, by letters: of assertions, of supports without and with recursion, and of whether facts hold."""
LETTERS = ("a", "n", "r", "l")


@dataclass(eq=False)
class Recent:
    """A change of a far table that was worked out in the process: like a run of it, but here."""

    facts: NearFacts
    """each once"""
    changes: Changes
    run: Run | None = None
    """the same on Spark, where it was needed there"""

    @cached_property
    def live(self) -> NearFacts:
        """What came, once, and what went, minus once."""
        turned = self.changes["l"] != 0
        keys, counts = self.facts.keys[turned], self.changes["l"][turned]
        return NearFacts(self.facts.pairs, self.facts.arity, keys, None if (counts == 1).all() else counts)

    @property
    def came(self) -> int:
        return int((self.changes["l"] > 0).sum())

    @property
    def went(self) -> int:
        return int((self.changes["l"] < 0).sum())


@dataclass(frozen=True)
class Known:
    """What has been looked up in a far table, as long as that has the same content."""

    content: object
    keys: Keys
    changes: Changes
    """supports, and whether facts hold; zeros for those that are not there"""


class Table:
    """The maintained facts of a predicate, on one side at a time; of a far one, what changed a little since is here. It moves when it has become
    larger or smaller than what belongs there."""

    def __init__(
        self, arity: int, near: NearTable | None = None, far: FarTable | None = None, name: str = ""
    ) -> None:
        self.arity = arity
        self.name = name
        self.near = near
        self.far = far
        self.recent: tuple[Recent, ...] = ()
        """of a far table"""
        self.unsaved = 0
        """how many of these a store has not, the last ones"""
        self.known: Known | None = None
        self.sent: tuple[int, FarFacts] | None = None
        """a near table as it was when Spark last needed it: after how many changes, and its facts there"""
        self.noted = -1
        """the update in whose journal it is"""

    def __len__(self) -> int:
        if self.near is not None:
            return len(self.near)
        return len(self.far or ()) + sum(r.came - r.went for r in self.recent)


MixedVersion = Version[Facts, Table]
