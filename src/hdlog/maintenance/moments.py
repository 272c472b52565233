"""The moments of an update: what held before it, what holds now, what lasts, and how each literal changes from one to another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import Generic, Literal

from hdlog.engines.protocol import Engine, F, R, T, Version
from hdlog.maintenance.changes import Change, Changes, Module
from hdlog.maintenance.materialisation import Materialisation, merge_runs
from hdlog.plan.bodies import Read
from hdlog.program.model import Predicate
from hdlog.tuning import Numbers

Moment = Literal["old", "new", "lasting"]


class NetChange(Generic[F]):
    """Facts that came and facts that went, disjoint; the table has the new state already.

    Worked out when first asked for: after the last component nobody may ask.
    """

    def __init__(self, find: Callable[[], tuple[F, F]], is_empty: bool) -> None:
        self._find = find
        self.is_empty = is_empty

    @cached_property
    def _both(self) -> tuple[F, F]:
        return self._find()

    @property
    def added(self) -> F:
        return self._both[0]

    @property
    def removed(self) -> F:
        return self._both[1]


def net_change(engine: Engine[R, F, T], added: F, removed: F) -> NetChange[F]:
    return NetChange(lambda: (added, removed), engine.is_empty(added) and engine.is_empty(removed))


class ViewChange(Generic[F]):
    """How a view has changed so far in an update: sets with signed multiplicities."""

    def __init__(self) -> None:
        self.runs: tuple[F, ...] = ()
        self.finished = False
        """whether it is all there"""


class Moments(Generic[R, F, T]):
    """Of one update. A predicate is *finished* when its component is; only then it has a net change."""

    def __init__(self, kept: Materialisation[R, F, T], numbers: Numbers) -> None:
        self.kept = kept
        self.engine = kept.engine
        self.numbers = numbers
        self.net: dict[Predicate, NetChange[F]] = {}
        self._views: dict[Predicate, ViewChange[F]] = {}
        self._pieces: dict[tuple[Moment, Predicate, bool], Version[F, T]] = {}
        """versions that were brought into one piece, where much has changed"""

    # What has changed.

    def net_of(self, predicate: Predicate) -> NetChange[F]:
        if predicate in self.net:
            return self.net[predicate]
        nothing = self.engine.no_facts(predicate.arity)
        return net_change(self.engine, nothing, nothing)

    def has_changed(self, predicate: Predicate) -> bool:
        """Whether a finished predicate or view has changed in this update."""
        if predicate in self._views:
            return self._views[predicate].finished and bool(self._views[predicate].runs)
        return predicate in self.net and not self.net[predicate].is_empty

    def touches(self, module: Module[F, T]) -> bool:
        """Whether a finished predicate that the module reads has changed."""
        return any(self.has_changed(p) for p, _ in module.sources)

    # Views.

    def add_to_view(self, predicate: Predicate, signed: F) -> None:
        change = self._views.setdefault(predicate, ViewChange())
        if not self.engine.is_empty(signed):
            change.runs = self._merge(predicate, change.runs, [signed])

    def finish_view(self, predicate: Predicate) -> None:
        self._views.setdefault(predicate, ViewChange()).finished = True

    def forget(self, predicates: Iterable[Predicate]) -> None:
        """Views that are kept no more."""
        for predicate in predicates:
            self._views.pop(predicate, None)
        self._pieces = {
            key: version for key, version in self._pieces.items() if key[1] not in set(predicates)
        }

    def view_now(self, predicate: Predicate) -> Version[F, T]:
        view = self.kept.views[predicate]
        change = self._views.get(predicate)
        return Version(view.nothing, view.runs + (change.runs if change is not None else ()))

    def _view_total(self, predicate: Predicate) -> F:
        """All of its change as one set."""
        change = self._views.get(predicate)
        if change is None or not change.runs:
            return self.engine.no_facts(predicate.arity)
        if len(change.runs) > 1:
            change.runs = (self.engine.keep(self.engine.plus(change.runs, predicate.arity)),)
        return change.runs[0]

    def _find_lasting_view(self, predicate: Predicate) -> Version[F, T]:
        """In each row the smaller of the two counts."""
        change = self._views.get(predicate)
        if change is None or not change.finished:
            return self.view_now(predicate)
        view = self.kept.views[predicate]
        return Version(view.nothing, view.runs, (self._select_fallen(predicate),))

    def _select_fallen(self, predicate: Predicate) -> F:
        return self.engine.positive(self.engine.negate(self._view_total(predicate)))

    def absorb_views(self) -> None:
        """The update is over: views are what they are now."""
        for predicate, change in self._views.items():
            if predicate in self.kept.views and change.runs:
                runs = self.kept.views[predicate].runs
                self.kept.change_view(predicate, self._merge(predicate, runs, change.runs), change.runs)

    def _merge(self, predicate: Predicate, runs: tuple[F, ...], more: Iterable[F]) -> tuple[F, ...]:
        return merge_runs(self.engine, runs, more, predicate.arity, self.numbers.small_view_run)

    # The three moments of a finished predicate.

    def find_old(self, predicate: Predicate, positive: bool = True) -> Version[F, T]:
        """Before the update."""
        return self._find_in_one_piece("old", predicate, True, self._find_old)

    def find_new(self, predicate: Predicate, positive: bool = True) -> Version[F, T]:
        """After the update."""
        return self._find_in_one_piece("new", predicate, True, self._find_new)

    def find_lasting(self, predicate: Predicate, positive: bool = True) -> Version[F, T]:
        """What holds before and after; for a negative literal, what does not hold before and after: the facts of either."""
        return self._find_in_one_piece("lasting", predicate, positive, self._find_lasting)

    def _find_in_one_piece(
        self,
        moment: Moment,
        predicate: Predicate,
        positive: bool,
        find: Callable[[Predicate, bool], Version[F, T]],
    ) -> Version[F, T]:
        """What has changed a lot, and does not change any more, is brought into one piece once."""
        key = (moment, predicate, positive)
        if key in self._pieces:
            return self._pieces[key]
        version = find(predicate, positive)
        if not self._has_changed_much(predicate):
            return version
        self._pieces[key] = self.engine.hints.in_one_piece(version)
        return self._pieces[key]

    def _has_changed_much(self, predicate: Predicate) -> bool:
        if not self.has_changed(predicate):
            return False
        count, much = self.engine.count, self.numbers.much_changed
        if predicate in self._views:
            return much * count(self._view_total(predicate)) > sum(
                map(count, self.kept.views[predicate].runs)
            )
        net = self.net[predicate]
        return much * (count(net.added) + count(net.removed)) > self.engine.size(self.kept.table(predicate))

    def _find_old(self, predicate: Predicate, _: bool) -> Version[F, T]:
        if predicate in self.kept.views:
            view = self.kept.views[predicate]
            return Version(view.nothing, view.runs)
        net, table = self.net_of(predicate), self.kept.table(predicate)
        if self.engine.hints.was_empty(table, net.added, net.removed):
            # Nothing held, and a sum that cancels out is dear to join.
            return Version(self.engine.table(predicate.arity))
        return Version(table, (net.removed,), (net.added,))

    def _find_new(self, predicate: Predicate, _: bool) -> Version[F, T]:
        if predicate in self.kept.views:
            return self.view_now(predicate)
        return Version(self.kept.table(predicate))

    def _find_lasting(self, predicate: Predicate, positive: bool) -> Version[F, T]:
        if predicate in self.kept.views:
            return self._find_lasting_view(predicate)
        net, table = self.net_of(predicate), self.kept.table(predicate)
        return Version(table, (), (net.added,)) if positive else Version(table, (net.removed,), ())

    # How a literal over a finished predicate changes, in each of the three kinds of step.

    def find_signed_changes(self, literals: Iterable[Read]) -> Changes[F, T]:
        """All at once, signed: from the old to the new."""
        return {key: self._find_signed_change(*key) for key in literals}

    def _find_signed_change(self, predicate: Predicate, positive: bool) -> Change[F, T]:
        sides = partial(self.find_old, predicate), partial(self.find_new, predicate)
        if predicate in self.kept.views:
            return Change(self._view_total(predicate), *sides)
        came, went = self._find_came_and_went(predicate, positive)
        delta = came
        if not self.engine.is_empty(went):
            delta = self.engine.plus([came, self.engine.negate(went)], predicate.arity)
        return Change(delta, *sides)

    def find_losses(self, predicate: Predicate, positive: bool, first_round: bool) -> Change[F, T]:
        """From the old to what lasts: only losses, all in the first round."""
        rest = partial(self.find_lasting, predicate, positive)
        if not first_round:
            return Change(self.engine.no_facts(predicate.arity), rest, rest)
        _, went = self._find_came_and_went(predicate, positive)
        return Change(went, rest, partial(self.find_old, predicate))

    def find_gains(self, predicate: Predicate, positive: bool, first_round: bool) -> Change[F, T]:
        """From what lasts to the new: only gains, all in the first round."""
        new = partial(self.find_new, predicate)
        if not first_round:
            return Change(self.engine.no_facts(predicate.arity), new, new)
        came, _ = self._find_came_and_went(predicate, positive)
        return Change(came, partial(self.find_lasting, predicate, positive), new)

    def _find_came_and_went(self, predicate: Predicate, positive: bool) -> tuple[F, F]:
        if predicate in self.kept.views:
            return self.engine.positive(self._view_total(predicate)), self._select_fallen(predicate)
        net = self.net_of(predicate)
        return (net.added, net.removed) if positive else (net.removed, net.added)
