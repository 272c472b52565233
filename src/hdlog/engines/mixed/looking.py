"""What far tables know of a few facts: looked up on Spark by one job for all of them, and remembered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdlog.engines.columnar.facts import columns_of, keys_of, primary_order
from hdlog.engines.columnar.kernels import Keys
from hdlog.engines.columnar.kernels.searching import locate
from hdlog.engines.columnar.kernels.sorting import order_of
from hdlog.engines.mixed.context import Context
from hdlog.engines.mixed.sides import LETTERS, Changes, Known, NearFacts, Table
from hdlog.engines.spark.frames import Frame, union
from hdlog.engines.spark.relation import columns


class Looking(Context):
    def look_up(self, table: Table, facts: NearFacts) -> dict[str, NDArray[np.int64]]:
        """What a far table knows of some facts, in their order; zeros for those that it does not."""
        self.learn([(table, facts.keys)])
        state = {s: np.zeros(len(facts), np.int64) for s in LETTERS}
        if table.known is not None:
            at = locate(table.known.keys, facts.keys)
            there = at >= 0
            for s in LETTERS:
                state[s][there] = table.known.changes[s][at[there]]
        for recent in table.recent:
            at = locate(recent.facts.keys, facts.keys)
            there = at >= 0
            for s in LETTERS:
                state[s][there] += recent.changes[s][at[there]]
        return state

    def learn(self, wanted: Sequence[tuple[Table, Keys]]) -> None:
        """Have far tables remember what Spark knows of some facts, by their sorted keys."""
        asked = [(table, self._find_unknown(table, keys)) for table, keys in wanted]
        asked = [(table, keys) for table, keys in asked if len(keys)]
        if not asked:
            return
        width = max(1, *(table.arity for table, _ in asked))
        found = self.far.keeper.collect(self._ask(asked, width), "facts looked up in large tables")
        for number, (table, keys) in enumerate(asked):
            mine = found if len(asked) == 1 else found.filter(pc.equal(found["t"], number))
            self._remember(table, keys, *self.read_states(mine, table.arity))

    def _find_unknown(self, table: Table, keys: Keys) -> Keys:
        far = table.far
        assert far is not None
        if not far.content.runs:
            return keys[:0]
        if table.known is None or table.known.content is not far.content:
            nothing = np.empty(0, np.int64)
            table.known = Known(far.content, np.empty(0, np.uint64), dict.fromkeys(LETTERS, nothing))
        return keys[locate(table.known.keys, keys) < 0]

    def _ask(self, asked: Sequence[tuple[Table, Keys]], width: int) -> Frame:
        """The rows of tables for the facts that are asked for, each with the number of its table."""
        names = columns(width)
        parts = []
        for number, (table, keys) in enumerate(asked):
            ids = [
                self.dictionary.store_ids(c)
                for c in columns_of(self.near.pairs, keys, primary_order(table.arity))
            ]
            padding = [np.zeros(len(keys), np.int64)] * (width - len(ids))
            parts.append([np.full(len(keys), number), *ids, *padding])
        arrays = dict(zip(["t", *names], map(np.concatenate, zip(*parts, strict=True)), strict=True))
        wanted = self.make_frame(arrays, len(arrays["t"]))
        frames = []
        for number, (table, _) in enumerate(asked):
            assert table.far is not None
            own = table.far.keys
            mine = wanted.where(f"t = {number}L").select(*own).with_hint("BROADCAST")
            known = union([run.frame for run in table.far.content.runs]).join(mine, own)
            rest = [f"0L AS {name}" for name in names if name not in own]
            frames.append(known.select(f"{number}L AS t", *own, *rest, *LETTERS))
        return union(frames)

    def read_states(self, rows: pa.Table, arity: int) -> tuple[Keys, Changes]:
        """Sorted keys, and what rows say of them, added up."""
        ids = [self.dictionary.near_ids(rows[c].to_numpy()) for c in columns(arity)[:arity]]
        keys = keys_of(self.near.pairs, ids, primary_order(arity), rows.num_rows)
        order = order_of(keys)
        keys = keys[order]
        starts = (
            np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.empty(0, np.int64)
        )
        sums = {
            s: np.add.reduceat(rows[s].to_numpy()[order], starts) if len(keys) else np.empty(0, np.int64)
            for s in LETTERS
        }
        return keys[starts], sums

    def _remember(self, table: Table, asked: Keys, found: Keys, changes: Changes) -> None:
        known = table.known
        assert known is not None
        states = {s: np.zeros(len(asked), np.int64) for s in LETTERS}
        at = locate(asked, found)
        for s in LETTERS:
            states[s][at] = changes[s]
        keys = np.concatenate([known.keys, asked])
        order = order_of(keys)
        both = {s: np.concatenate([known.changes[s], states[s]])[order] for s in LETTERS}
        table.known = Known(known.content, keys[order], both)
