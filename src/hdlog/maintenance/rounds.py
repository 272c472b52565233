"""One round of a phase of DRed: its Delta, and how every literal and node changes by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

from hdlog.engines.protocol import F, R, T, Version
from hdlog.maintenance.changes import Change, Heads
from hdlog.maintenance.evaluation import Timed
from hdlog.maintenance.nodes import Node
from hdlog.plan.bodies import Read
from hdlog.program.model import Predicate

if TYPE_CHECKING:
    from hdlog.maintenance.dred import Run

FactSets = dict[Predicate, F]
"""Facts by predicate; predicates without facts are left out."""


Procedure = Callable[[Any, "Round[Any, F, T]"], Heads[F]]
"""Add^r, Del^r or Red^r: what a rule with a hypertree derives in a round."""


class Round(Mapping[Read, Change[F, T]], Generic[R, F, T]):
    """Changes by literal, found when they are asked for. A node has one once it is evaluated."""

    def __init__(
        self, run: Run[R, F, T], delta: FactSets[F], is_first: bool, procedure: Procedure[F, T]
    ) -> None:
        self.run = run
        self.procedure = procedure
        self.engine = run.engine
        self.delta = delta
        self.is_first = is_first
        """whether changes of finished predicates are in it"""
        self._changes: dict[Read, Change[F, T]] = {}

    def __getitem__(self, read: Read) -> Change[F, T]:
        if read not in self._changes:
            predicate, positive = read
            if predicate in self.run.members:
                self._changes[read] = self.find_change_inside(predicate, self.facts_of(predicate))
            else:
                self._changes[read] = self.find_change_outside(predicate, positive)
        return self._changes[read]

    def __iter__(self) -> Iterator[Read]:
        return iter(self._changes)

    def __len__(self) -> int:
        return len(self._changes)

    def facts_of(self, predicate: Predicate) -> F:
        return self.delta.get(predicate, self.engine.no_facts(predicate.arity))

    def evaluate(self, node: Node[R, F, T]) -> None:
        """In-node evaluation, once in a round; finished nodes were evaluated before their rules."""
        read = (node.predicate, True)
        if node.predicate in self.run.inner and read not in self._changes:
            rows = self.engine.no_facts(node.predicate.arity)
            if any(not self.engine.is_empty(self[r].delta) for r in node.reads):
                with Timed(self.run.evaluation.spent, node.rule):
                    rows = node.changed_rows(self)
            self._changes[read] = self.update(node, rows)

    def set_change(self, node: Node[R, F, T], change: Change[F, T]) -> None:
        """How a node changes that has come in the midst of the round."""
        self._changes[(node.predicate, True)] = change

    # What differs from phase to phase.

    grows = True
    """whether what is there after the round includes its delta"""

    def find_change_outside(self, predicate: Predicate, positive: bool) -> Change[F, T]:
        """How a finished predicate changes."""
        raise NotImplementedError

    def find_change_inside(self, predicate: Predicate, delta: F) -> Change[F, T]:
        """How a predicate of the component changes; its table has changed already."""
        raise NotImplementedError

    def update(self, node: Node[R, F, T], rows: F) -> Change[F, T]:
        """Have a node gain or lose matches, and say how its rows change."""
        raise NotImplementedError

    # Parts of these.

    def lose(self, predicate: Predicate, delta: F) -> Change[F, T]:
        """The table is without delta already: S \\ delta, then S."""
        table = self.run.kept.table(predicate)
        return Change(delta, _version(table), _version(table, (delta,)))

    def gain(self, predicate: Predicate, delta: F) -> Change[F, T]:
        """The table has delta already: I \\ delta, then I."""
        table = self.run.kept.table(predicate)
        return Change(delta, _version(table, (), (delta,)), _version(table))


def _version(table: T, plus: tuple[F, ...] = (), minus: tuple[F, ...] = ()) -> Callable[[], Version[F, T]]:
    return partial(Version, table, plus, minus)


class Overdeletion(Round[R, F, T]):
    grows = False

    def find_change_outside(self, predicate: Predicate, positive: bool) -> Change[F, T]:
        return self.run.moments.find_losses(predicate, positive, self.is_first)

    def find_change_inside(self, predicate: Predicate, delta: F) -> Change[F, T]:
        return self.lose(predicate, delta)

    def update(self, node: Node[R, F, T], rows: F) -> Change[F, T]:
        """Take matches from a node; overdelete each tuple that lost one, and remember it in inst_re.

        That other matches are left does not help a tuple: they may rest on what is being deleted.
        """
        moments = self.run.moments
        if node.counted:
            before = moments.view_now(node.predicate)
            moments.add_to_view(node.predicate, self.engine.negate(rows))
            after = moments.view_now(node.predicate)
            return Change(rows, lambda: after, lambda: before)
        delta = self.engine.shrink(self.run.kept.table(node.predicate), rows, "recursive")
        self.run.note(self.run.overdeleted, {node.predicate: delta})
        return self.lose(node.predicate, delta)


class Addition(Round[R, F, T]):
    def find_change_outside(self, predicate: Predicate, positive: bool) -> Change[F, T]:
        return self.run.moments.find_gains(predicate, positive, self.is_first)

    def find_change_inside(self, predicate: Predicate, delta: F) -> Change[F, T]:
        return self.gain(predicate, delta)

    def update(self, node: Node[R, F, T], rows: F) -> Change[F, T]:
        moments = self.run.moments
        if node.counted:
            before = moments.view_now(node.predicate)
            moments.add_to_view(node.predicate, rows)
            after = moments.view_now(node.predicate)
            return Change(rows, lambda: before, lambda: after)
        delta = self.engine.grow(self.run.kept.table(node.predicate), rows, "recursive")
        self.run.note(self.run.added, {node.predicate: delta})
        return self.gain(node.predicate, delta)


class Rederivation(Addition[R, F, T]):
    """Nothing changes but nodes, which get back the tuples of inst_re that still have a match."""

    def find_change_outside(self, predicate: Predicate, positive: bool) -> Change[F, T]:
        return self.run.moments.find_losses(predicate, positive, False)

    def update(self, node: Node[R, F, T], rows: F) -> Change[F, T]:
        if node.counted:
            return super().update(node, rows)
        restored = self.run.select_supported(node.predicate)
        if self.engine.is_empty(restored):
            return super().update(node, rows)
        self.engine.insert(self.run.kept.table(node.predicate), restored)
        self.run.note(self.run.added, {node.predicate: restored})
        gained = super().update(node, rows).delta
        delta = self.engine.disjoint_union([gained, restored], node.predicate.arity)
        return self.gain(node.predicate, delta)
