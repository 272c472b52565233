"""Maintained facts of the mixed engine, each table where it belongs by its size.

Few changed facts of a large table are looked up there by one job, what becomes of them is worked out in the process, and the differences
are one more run of the table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.facts import Counts
from hdlog.engines.columnar.kernels import Keys
from hdlog.engines.columnar.kernels.searching import locate
from hdlog.engines.columnar.kernels.sorting import order_of
from hdlog.engines.columnar.restoring import restore
from hdlog.engines.columnar.tracking import Tracking
from hdlog.engines.mixed.fact_sets import FactSets
from hdlog.engines.mixed.sides import (
    LETTERS,
    Changes,
    Facts,
    FarFacts,
    FarTable,
    NearFacts,
    NearTable,
    Recent,
    Run,
    Table,
)
from hdlog.engines.protocol import Support
from hdlog.engines.spark.frames import union
from hdlog.engines.spark.relation import columns
from hdlog.engines.spark.table import SUPPORTS, Content


class Tables(FactSets):
    def table(self, arity: int, name: str = "") -> Table:
        return Table(arity, near=self.near.table(arity), name=name)

    def size(self, table: Table) -> int:
        return len(table)

    def bytes(self, kept: Table | Facts) -> int:
        if kept.near is not None:
            return self.near.bytes(kept.near)
        return 0 if kept.far is None else self.far.bytes(kept.far)

    def facts(self, table: Table) -> Facts:
        if table.near is not None:
            return Facts(table.arity, self.near.facts(table.near))
        return Facts(table.arity, far=self.far.facts(self._far_side(table)))

    # Changing.

    def adjust(self, table: Table, facts: Facts, support: Support) -> None:
        near = self._near_side(table, facts)
        if near is not None:
            return self.near.adjust(near, self.find_near_facts(facts), support)
        if not facts.is_near:
            return self.far.adjust(self._far_side(table), self.find_far_facts(facts), support)
        here = self.find_near_facts(facts)
        if len(here):
            self._append(table, here, {SUPPORTS[support]: here.weights()})
        return None

    def insert(self, table: Table, facts: Facts) -> None:
        self._flip(table, facts, 1)

    def delete(self, table: Table, facts: Facts) -> None:
        self._flip(table, facts, -1)

    def _flip(self, table: Table, facts: Facts, turn: int) -> None:
        near = self._near_side(table, facts)
        if near is not None:
            return (self.near.insert if turn > 0 else self.near.delete)(near, self.find_near_facts(facts))
        if not facts.is_near:
            far, there = self._far_side(table), self.find_far_facts(facts)
            (self.far.insert if turn > 0 else self.far.delete)(far, there)
            facts.origin = there.origin
            return None
        here = self.find_near_facts(facts)
        if len(here):
            run = self._append(table, here, {"l": np.full(len(here), turn)})
            facts.origin = ((run, turn),)
        return None

    def grow(self, table: Table, facts: Facts, support: Support) -> Facts:
        near = self._near_side(table, facts)
        if near is not None:
            came = Facts(table.arity, self.near.grow(near, self.find_near_facts(facts), support))
            self._move_out_if_large(table)
            return came
        if not facts.is_near:
            return self._take(self.far.grow(self._far_side(table), self.find_far_facts(facts), support))
        here = self.find_near_facts(facts)
        turn = np.where(self.look_up(table, here)["l"] == 0, 1, 0)
        came, _ = self._change(table, here, {SUPPORTS[support]: here.weights(), "l": turn})
        return came

    def shrink(self, table: Table, facts: Facts, support: Support) -> Facts:
        near = self._near_side(table, facts)
        if near is not None:
            return Facts(table.arity, self.near.shrink(near, self.find_near_facts(facts), support))
        if not facts.is_near:
            return self._take(self.far.shrink(self._far_side(table), self.find_far_facts(facts), support))
        here = self.find_near_facts(facts)
        state = self.look_up(table, here)
        dying = (state["l"] == 1) & (state["a"] == 0) & (state["n"] == 0)
        changes = {SUPPORTS[support]: -here.weights(), "l": np.where(dying, -1, 0)}
        _, went = self._change(table, here, changes)
        return went

    def recount(self, table: Table, asserted: Facts, signed: Facts) -> tuple[Facts, Facts]:
        near = self._near_side(table, asserted, signed)
        if near is not None:
            came, went = self.near.recount(near, self.find_near_facts(asserted), self.find_near_facts(signed))
            self._move_out_if_large(table)
            return Facts(table.arity, came), Facts(table.arity, went)
        if not (asserted.is_near and signed.is_near):
            there = self.find_far_facts(asserted), self.find_far_facts(signed)
            gained, lost = self.far.recount(self._far_side(table), *there)
            return self._take(gained), self._take(lost)
        here = self.find_near_facts(asserted), self.find_near_facts(signed)
        touched, changes, turn = self._weigh_foundations(table, *here)
        return self._change(table, touched, {**changes, "l": turn})

    def change_foundations(self, table: Table, asserted: Facts, signed: Facts) -> tuple[Facts, Facts]:
        near = self._near_side(table, asserted, signed)
        if near is not None:
            here = self.find_near_facts(asserted), self.find_near_facts(signed)
            lost, gained = self.near.change_foundations(near, *here)
            return Facts(table.arity, lost), Facts(table.arity, gained)
        if not (asserted.is_near and signed.is_near):
            there = self.find_far_facts(asserted), self.find_far_facts(signed)
            lost_there, gained_there = self.far.change_foundations(self._far_side(table), *there)
            return self._take(lost_there), self._take(gained_there)
        here = self.find_near_facts(asserted), self.find_near_facts(signed)
        touched, changes, turn = self._weigh_foundations(table, *here)
        if len(touched):
            self._append(table, touched, changes)
        lost, gained = (touched.take(turn == way).once() for way in (-1, 1))
        return Facts(table.arity, lost), Facts(table.arity, gained)

    def _weigh_foundations(
        self, table: Table, asserted: NearFacts, signed: NearFacts
    ) -> tuple[NearFacts, Changes, Counts]:
        """The facts whose foundations change, by how much, and whether they become live (1) or not live (-1) by it."""
        touched = self.near.union(asserted, signed)
        changes = {"a": _amounts(touched, asserted), "n": _amounts(touched, signed)}
        state = self.look_up(table, touched)
        founded = (state["a"] + changes["a"] != 0) | (state["n"] + changes["n"] != 0)
        turn = np.where(founded & (state["l"] == 0), 1, np.where(~founded & (state["l"] == 1), -1, 0))
        return touched, changes, turn

    def select_supported(self, table: Table, facts: Facts) -> Facts:
        near = self._near_side(table, facts)
        if near is not None:
            return Facts(table.arity, self.near.select_supported(near, self.find_near_facts(facts)))
        if not facts.is_near:
            return self._take(self.far.select_supported(self._far_side(table), self.find_far_facts(facts)))
        here = self.find_near_facts(facts)
        state = self.look_up(table, here)
        supported = (state["a"] != 0) | (state["n"] != 0) | (state["r"] != 0)
        return Facts(table.arity, here.take(supported).once())

    def select_asserted(self, table: Table, facts: Facts) -> Facts:
        near = self._near_side(table, facts)
        if near is not None:
            return Facts(table.arity, self.near.select_asserted(near, self.find_near_facts(facts)))
        if not facts.is_near:
            return self._take(self.far.select_asserted(self._far_side(table), self.find_far_facts(facts)))
        here = self.find_near_facts(facts)
        return Facts(table.arity, here.take(self.look_up(table, here)["a"] != 0).once())

    def _take(self, far: FarFacts) -> Facts:
        """Facts that an operation on Spark has given, here if there are few."""
        return self.bring_facts_home(Facts(far.arity, far=far, origin=far.origin))

    # On which side.

    def _near_side(self, table: Table, *changes: Facts) -> NearTable | None:
        """A table that is near and stays there, as what is done with it is small; all facts are near then."""
        room = 0 if table.near is None else self.room - len(table)
        for facts in changes:
            self.bring_facts_home(facts, room)
        return table.near if all(facts.is_near for facts in changes) else None

    def _far_side(self, table: Table) -> FarTable:
        """All of a table on Spark, for something large; it moves there if it is not."""
        if table.far is None:
            self.move_out(table)
        self.flush(table)
        assert table.far is not None
        return table.far

    def _move_out_if_large(self, table: Table) -> None:
        if len(table) > self.room:
            self.move_out(table)

    def move_out(self, table: Table) -> None:
        """To Spark. What a store has of it is apart from what has changed since."""
        near = table.near
        assert near is not None
        self._note(table)
        far = self.far.table(table.arity, table.name)
        facts = near.stored()
        recent: tuple[Recent, ...] = ()
        if near.tracking is None:
            state = _state_of(near, facts)
        else:
            changed, differences = near.collect_changes()
            change = dict(zip(LETTERS, differences, strict=True))
            facts = self.near.union(facts, changed)  # what has gone altogether is not stored any more
            state = _state_of(near, facts)
            at = locate(facts.keys, changed.keys)
            for s in LETTERS:
                state[s][at] -= change[s]
            recent = (Recent(changed, change),) if len(changed) else ()
        distinct = tuple(float(near.distinct((i,))) for i in range(near.arity)) if near.arity > 1 else ()
        live = int(state["l"].sum())
        far.content = Content((self._make_run(facts, state),) if len(facts) else (), live, distinct)
        if near.tracking is not None:
            far.persist()
        table.near, table.far, table.recent, table.unsaved = None, far, recent, len(recent)
        table.known = table.sent = None

    def move_in(self, table: Table) -> None:
        """Into the process."""
        far = table.far
        assert far is not None
        if far.has_changed and far.is_stored:
            return  # what a store has of it is not to be told from the rest
        self._note(table)
        near = self.near.table(table.arity)
        parts = [(r.facts.keys, r.changes) for r in table.recent]
        saved = len(parts) - table.unsaved
        if far.content.runs:
            whole = union([run.frame for run in far.content.runs])
            parts.insert(
                0,
                self.read_states(
                    self.far.keeper.collect(whole, f"{table.name} into the process"), table.arity
                ),
            )
            saved += 1
        keys, state = _add_up(parts)
        held = (state["a"] != 0) | (state["n"] != 0) | (state["r"] != 0)
        supports = (state["a"][held].astype(np.uint8), state["n"][held], state["r"][held])
        restore(near, keys[held], supports)
        near.set_distinct(far.content.distinct)
        if far.is_stored:
            near.tracking = Tracking()
            changed, change = _add_up(parts[saved:])
            a, n, r = near.supports_of(changed)
            near.tracking.note(changed, (a - change["a"], n - change["n"], r - change["r"]))
        table.near, table.far, table.recent, table.unsaved = near, None, (), 0
        table.known = table.sent = None

    def flush(self, table: Table) -> None:
        """Have Spark know the changes that were worked out here."""
        far = table.far
        assert far is not None
        if not table.recent:
            return
        self._note(table)
        self.far.note_table(far)
        recent, table.recent = table.recent, ()
        saved = len(recent) - table.unsaved
        table.unsaved = 0
        for number, change in enumerate(recent):
            change.run = self._make_run(change.facts, change.changes)
            values = [float(change.facts.distinct((i,))) for i in range(far.arity)] if change.came else []
            was_saved = not far.has_changed
            far.append(change.run, values)
            if number < saved and was_saved:
                far.persist()

    def merge_recent(self, table: Table) -> None:
        """Changes worked out here as one; many of them go to Spark."""
        if sum(len(r.facts) for r in table.recent) > self.numbers.near_result:
            self.flush(table)
            return
        saved = len(table.recent) - table.unsaved
        if saved < 2 and table.unsaved < 2:
            return
        self._note(table)
        parts = [self._merge(part) for part in (table.recent[:saved], table.recent[saved:])]
        table.recent = tuple(r for part in parts for r in part)
        table.unsaved = len(parts[1])

    def _merge(self, several: Sequence[Recent]) -> tuple[Recent, ...]:
        if len(several) < 2:
            return tuple(several)
        keys, changes = _add_up([(r.facts.keys, r.changes) for r in several])
        return (
            (Recent(NearFacts(self.near.pairs, several[0].facts.arity, keys), changes),) if len(keys) else ()
        )

    def _note(self, table: Table) -> None:
        """Before it changes."""
        if table.noted == self.near.journal.number:
            return
        table.noted = self.near.journal.number
        near, far, recent, unsaved = table.near, table.far, table.recent, table.unsaved

        def restore_sides() -> None:
            table.near, table.far, table.recent, table.unsaved = near, far, recent, unsaved
            table.known = table.sent = None

        self.near.note(restore_sides)

    # Large tables, and few facts.

    def _change(self, table: Table, facts: NearFacts, changes: Changes) -> tuple[Facts, Facts]:
        """Add differences; the facts that came and those that went by them."""
        if not len(facts):
            return self.no_facts(table.arity), self.no_facts(table.arity)
        recent = self._append(table, facts, changes)
        came, went = (
            Facts(table.arity, facts.take(changes["l"] == way).once(), origin=((recent, way),))
            for way in (1, -1)
        )
        return came, went

    def _append(self, table: Table, facts: NearFacts, changes: Changes) -> Recent:
        self._note(table)
        zeros = np.zeros(len(facts), np.int64)
        recent = Recent(facts.once(), {s: np.asarray(changes.get(s, zeros), np.int64) for s in LETTERS})
        table.recent += (recent,)
        table.unsaved += 1
        return recent

    def _make_run(self, facts: NearFacts, changes: Changes) -> Run:
        """Facts with differences, as a run of a far table."""
        ids = [self.dictionary.store_ids(c) for c in facts.columns()] or [np.zeros(len(facts), np.int64)]
        arrays = {**dict(zip(columns(facts.arity), ids, strict=True)), **changes}
        turn = changes["l"]
        frame = self.make_frame(arrays, len(facts))
        return Run(frame, len(facts), int((turn == 1).sum()), int((turn == -1).sum()))


def _add_up(parts: Sequence[tuple[Keys, Changes]]) -> tuple[Keys, Changes]:
    """Changes of facts, by their sorted keys, added up; what adds up to nothing is left out."""
    if not parts:
        return np.empty(0, np.uint64), dict.fromkeys(LETTERS, np.empty(0, np.int64))
    keys = np.concatenate([k for k, _ in parts])
    order = order_of(keys)
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.empty(0, np.int64)
    sums = {
        s: np.add.reduceat(np.concatenate([c[s] for _, c in parts])[order], starts)
        if len(keys)
        else keys.view(np.int64)
        for s in LETTERS
    }
    kept = np.logical_or.reduce([sums[s] != 0 for s in LETTERS])
    return keys[starts][kept], {s: sums[s][kept] for s in LETTERS}


def _amounts(touched: NearFacts, facts: NearFacts) -> NDArray[np.int64]:
    """The multiplicities of facts, for each of those that are touched."""
    amounts = np.zeros(len(touched), np.int64)
    amounts[locate(touched.keys, facts.keys)] = facts.weights()
    return amounts


def _state_of(near: NearTable, facts: NearFacts) -> dict[str, NDArray[np.int64]]:
    """All that a near table knows of some of its facts."""
    a, n, r = near.supports_of(facts.keys)
    return {"a": a, "n": n, "r": r, "l": near.contains(facts.keys).astype(np.int64)}
