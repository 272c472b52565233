"""What is kept between updates: a table for each predicate, a view or a table for each node of a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Generic, Protocol, TypeVar

from hdlog.engines.protocol import Engine, F, R, T
from hdlog.program.model import Predicate


class View(Generic[F, T]):
    """The rows of a view, each with the number of matches it stands for: a sum of sets with multiplicities.

    A view is a function of the facts that hold, so in overdeletion too its counts just follow them: no row of it is ever
    overdeleted and restored, as the paper's nodes are.
    """

    def __init__(self, nothing: T, find: Callable[[], tuple[F, ...]] | None = None) -> None:
        """`find` has the runs, where a store keeps them."""
        self.nothing = nothing
        """a table without facts: all of the view is in the runs"""
        self._runs: tuple[F, ...] | None = () if find is None else None
        self._find = find
        self.unsaved: tuple[F, ...] | None = None if find is None else ()
        """how it has changed since a store got it; None where none has it"""

    @property
    def runs(self) -> tuple[F, ...]:
        """Large ones first; found when first asked for."""
        if self._runs is None:
            assert self._find is not None, "they are here, or somebody has them"
            self._runs = self._find()
        return self._runs

    @runs.setter
    def runs(self, runs: tuple[F, ...]) -> None:
        self._runs = runs


F_co = TypeVar("F_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)


class TableSource(Protocol[F_co, T_co]):
    """Where tables are kept that nobody has asked for yet."""

    def find(self, predicate: Predicate) -> T_co | None:
        """The table of a predicate; None for one that is not known."""

    def find_runs(self, predicate: Predicate) -> tuple[F_co, ...]:
        """The rows of a view that is held."""

    def holds(self, predicate: Predicate) -> bool:
        """Whether a predicate has facts."""

    def sizes(self) -> Mapping[Predicate, int]:
        """How many facts each predicate has."""


class Materialisation(Generic[R, F, T]):
    def __init__(self, engine: Engine[R, F, T]) -> None:
        self.engine = engine
        self.source: TableSource[F, T] | None = None
        self.tables: dict[Predicate, T] = {}
        """of predicates, as far as somebody has asked for them, and of the paper's nodes"""
        self.views: dict[Predicate, View[F, T]] = {}

    def table(self, predicate: Predicate) -> T:
        table = self.find(predicate)
        if table is None:
            self.set_table(predicate, self.engine.table(predicate.arity, predicate.name))
        return self.tables[predicate]

    def find(self, predicate: Predicate) -> T | None:
        """The table of a predicate, if there is one."""
        if predicate not in self.tables and self.source is not None:
            kept = self.source.find(predicate)
            if kept is not None:
                self.tables[predicate] = kept
        return self.tables.get(predicate)

    def sizes(self) -> dict[Predicate, int]:
        """How many facts each predicate has."""
        kept = self.source.sizes() if self.source is not None else {}
        return {**kept, **{p: self.engine.size(t) for p, t in self.tables.items()}}

    def set_table(self, predicate: Predicate, table: T) -> None:
        set_noted(self.engine, self.tables, predicate, table)

    def add_view(self, predicate: Predicate, rows: F) -> None:
        view = View[F, T](self.engine.table(predicate.arity))
        view.runs = () if self.engine.is_empty(rows) else (rows,)
        set_noted(self.engine, self.views, predicate, view)

    def restore_view(self, predicate: Predicate) -> None:
        """A view that the source has."""
        assert self.source is not None, "somebody has it"
        find = partial(self.source.find_runs, predicate)
        self.views[predicate] = View[F, T](self.engine.table(predicate.arity), find)

    def change_view(self, predicate: Predicate, runs: tuple[F, ...], change: tuple[F, ...]) -> None:
        """A view has other runs, which differ by a change from those it had."""
        view = self.views[predicate]
        self.engine.note(partial(setattr, view, "runs", view.runs))
        view.runs = runs
        if view.unsaved is not None and change:
            self.engine.note(partial(setattr, view, "unsaved", view.unsaved))
            view.unsaved += change

    def drop(self, predicates: Iterable[Predicate]) -> None:
        for predicate in predicates:
            drop_noted(self.engine, self.tables, predicate)
            drop_noted(self.engine, self.views, predicate)

    def bytes(self) -> int:
        runs = (run for view in self.views.values() for run in view.runs)
        return sum(map(self.engine.bytes, self.tables.values())) + sum(map(self.engine.bytes, runs))

    def tidy(self) -> None:
        """Give back terms that only facts of the past have; nobody else may have facts of the engine."""
        views = self.views.values()
        self.engine.tidy(
            [*self.tables.values(), *(view.nothing for view in views)],
            [run for view in views for run in view.runs],
        )


Key = TypeVar("Key")
Value = TypeVar("Value")


def set_noted(engine: Engine[R, F, T], kept: dict[Key, Value], key: Key, value: Value) -> None:
    """Set an entry, as far as the update that does so is not taken back."""
    restore = partial(kept.__setitem__, key, kept[key]) if key in kept else partial(kept.pop, key, None)
    engine.note(restore)  # type: ignore[arg-type]
    kept[key] = value


def drop_noted(engine: Engine[R, F, T], kept: dict[Key, Value], key: Key) -> None:
    """Drop an entry, likewise."""
    if key in kept:
        engine.note(partial(kept.__setitem__, key, kept[key]))
        del kept[key]


def merge_runs(
    engine: Engine[R, F, T], runs: tuple[F, ...], more: Iterable[F], arity: int, small: int
) -> tuple[F, ...]:
    """Runs with more behind them, merged while one is not much larger than the next."""
    kept = list(runs)
    for run in more:
        kept.append(run)
        while len(kept) > 1 and engine.count(kept[-2]) <= max(small, 2 * engine.count(kept[-1])):
            kept[-2:] = [engine.keep(engine.plus(kept[-2:], arity))]
    return tuple(run for run in kept if not engine.is_empty(run))
