"""Sorted keys that live and die together: the runs that tables and their indexes are made of."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.facts import CHECKED, Order
from hdlog.engines.columnar.kernels import Flags, Keys, Rows
from hdlog.engines.columnar.kernels.merging import merge_order
from hdlog.engines.columnar.kernels.searching import locate
from hdlog.journal import Journal

_NONE = np.empty(0, np.uint8)


@dataclass(eq=False)
class Run:
    """Sorted keys; `dead` is empty while all are live."""

    keys: Keys
    dead: Flags = field(default_factory=lambda: _NONE)
    born: int = 0

    def __post_init__(self) -> None:
        if CHECKED:
            assert (self.keys[1:] > self.keys[:-1]).all(), "keys of a run are sorted, each once"
            assert len(self.dead) in (0, len(self.keys)), "all keys have marks, or none has"

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        arrays = (getattr(self, f.name) for f in fields(self))
        return sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))

    def live_keys(self) -> Keys:
        return self.keys[self.dead == 0] if len(self.dead) else self.keys

    def with_keys(self, keys: Keys, order: Rows | None) -> Self:
        """The same rows with other keys, in another order."""
        changes: dict[str, Any] = {"keys": keys}
        if order is not None:
            for name in (f.name for f in fields(self) if f.name not in ("keys", "born")):
                values = getattr(self, name)
                changes[name] = values[order] if len(values) else values
        return replace(self, **changes)

    def mark(self, at: Rows, dead: bool, journal: Journal) -> None:
        if not len(self.dead):
            if not dead:
                return
            self.dead = np.zeros(len(self), np.uint8)
        journal.save(self.dead, at, self.born)
        self.dead[at] = dead

    def find_dead(self, at: Rows) -> NDArray[np.bool_]:
        return self.dead[at] != 0 if len(self.dead) else np.zeros(len(at), np.bool_)

    def set_dead(self, at: Rows, dead: NDArray[np.bool_]) -> None:
        """Whether some are dead, for good."""
        if not len(self.dead):
            if not dead.any():
                return
            self.dead = np.zeros(len(self), np.uint8)
        self.dead[at] = dead


@dataclass(eq=False)
class SupportedRun(Run):
    asserted: Flags = field(default_factory=lambda: _NONE)
    nonrecursive: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    recursive: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    @staticmethod
    def without_support(keys: Keys, dead: Flags, born: int) -> SupportedRun:
        rows = len(keys)
        asserted, counts = np.zeros(rows, np.uint8), (np.zeros(rows, np.int64) for _ in range(2))
        return SupportedRun(keys, dead, born, asserted, *counts)

    def arrays(self) -> tuple[Keys, Flags, Flags, NDArray[np.int64], NDArray[np.int64]]:
        return self.keys, self.dead, self.asserted, self.nonrecursive, self.recursive


class Index:
    """Runs of keys in one order of the columns."""

    def __init__(self, order: Order, journal: Journal, runs: list[Run], small_run: int) -> None:
        self.small_run = small_run
        self.order = order
        self.journal = journal
        self.runs = runs
        self._saved = -1

    def save(self) -> None:
        """Before the first change of an update: remember the runs there are."""
        if self._saved != self.journal.number:
            self._saved = self.journal.number
            runs = list(self.runs)

            def restore() -> None:
                self.runs = runs

            self.journal.note(restore)

    def insert(self, keys: Keys) -> None:
        """Sorted keys become live; those stored as dead are woken."""
        self.save()
        for run in self.runs:
            if len(run.dead) and len(keys):
                at = locate(run.keys, keys)
                run.mark(at[at >= 0], False, self.journal)
                keys = keys[at < 0]
        if len(keys):
            self.runs.append(Run(keys, born=self.journal.number))
            self._merge()

    def delete(self, keys: Keys) -> None:
        self.save()
        for run in self.runs:
            at = locate(run.keys, keys)
            if (at >= 0).any():
                run.mark(at[at >= 0], True, self.journal)
                keys = keys[at < 0]
            if not len(keys):
                return

    def replay(self, added: Keys, removed: Keys) -> None:
        """Sorted keys that came and that went before anybody has seen the index."""
        for keys, dead in ((removed, True), (added, False)):
            for run in self.runs:
                at = locate(run.keys, keys)
                run.set_dead(at[at >= 0], np.full(int((at >= 0).sum()), dead))
                keys = keys[at < 0]
            if len(keys) and not dead:
                self.runs.append(Run(keys, born=-1))

    def _merge(self) -> None:
        while len(self.runs) > 1 and len(self.runs[-2]) <= max(self.small_run, len(self.runs[-1])):
            b, a = self.runs.pop(), self.runs.pop()
            order = merge_order(a.keys, b.keys)
            keys = np.concatenate([a.keys, b.keys])[order]
            if len(a.dead) or len(b.dead):
                dead = np.concatenate([_marks(a), _marks(b)])[order]
                keys = keys[dead == 0]
            self.runs.append(Run(keys, born=self.journal.number))

    @property
    def nbytes(self) -> int:
        return sum(r.nbytes for r in self.runs)


def _marks(run: Run) -> Flags:
    return run.dead if len(run.dead) else np.zeros(len(run), np.uint8)
