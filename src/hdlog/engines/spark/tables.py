"""Maintained facts, as the engine on Spark changes them: one job for each change, which also counts."""

from __future__ import annotations

from collections.abc import Mapping

from hdlog.engines.protocol import Support
from hdlog.engines.spark.context import distinct_metrics, read_distinct
from hdlog.engines.spark.fact_sets import FactSets
from hdlog.engines.spark.frames import Frame, union
from hdlog.engines.spark.relation import Facts, columns, defer
from hdlog.engines.spark.table import SUPPORTS, Run, Table, state_columns

_FOUNDED = "(a + da <> 0 OR n + dn <> 0)"
_FOUNDATION = f"CASE WHEN {_FOUNDED} AND l = 0 THEN 1L WHEN NOT {_FOUNDED} AND l = 1 THEN -1L ELSE 0L END"


class Tables(FactSets):
    def size(self, table: Table) -> int:
        return len(table)

    def bytes(self, kept: Table | Facts) -> int:
        rows = sum(r.rows for r in kept.content.runs) if isinstance(kept, Table) else self.count(kept)
        return rows * 8 * (kept.arity + (4 if isinstance(kept, Table) else 1))

    def facts(self, table: Table) -> Facts:
        frames = table.list_live_parts()
        if not frames:
            return Facts(table.arity)
        one = len(frames) == 1
        rows = len(table)
        return Facts(table.arity, union(frames), rows, rows, one, one, table.content.distinct)

    def adjust(self, table: Table, facts: Facts, support: Support) -> None:
        if facts.frame is not None:
            kept = self.keep(facts)
            if kept.frame is not None:
                self._append(table, kept, state_columns(**{SUPPORTS[support]: "m"}))

    def insert(self, table: Table, facts: Facts) -> None:
        kept = self.keep(facts)
        if kept.frame is not None:
            run = self._append(table, kept, state_columns(l="1L"), came=self.count(kept))
            facts.origin = ((run, 1),)

    def delete(self, table: Table, facts: Facts) -> None:
        kept = self.keep(facts)
        if kept.frame is not None:
            run = self._append(table, kept, state_columns(l="-1L"), went=self.count(kept))
            facts.origin = ((run, -1),)

    def _append(self, table: Table, facts: Facts, state: list[str], came: int = 0, went: int = 0) -> Run:
        assert facts.frame is not None, "only facts are appended"
        self.note_table(table)
        run = Run(facts.frame.select(*table.keys, *state), self.count(facts), came, went)
        table.append(run, facts.distinct if came else ())
        return run

    def note_table(self, table: Table) -> None:
        """Before it changes."""
        self.make_room(len(table))
        if table.noted != self.journal.number:
            table.noted = self.journal.number
            content = table.content

            def restore() -> None:
                table.content = content

            self.journal.note(restore)

    def select_supported(self, table: Table, facts: Facts) -> Facts:
        return self._look_up(table, facts, "(a <> 0 OR n <> 0 OR r <> 0)")

    def select_asserted(self, table: Table, facts: Facts) -> Facts:
        return self._look_up(table, facts, "a <> 0")

    def _look_up(self, table: Table, facts: Facts, condition: str, unknown: bool = False) -> Facts:
        """The facts for whose state a condition holds; `unknown`: whether it does for one that is not stored."""
        if facts.frame is None:
            return facts
        if not table.content.runs:
            return self.distinct(facts) if unknown else Facts(facts.arity)
        states = table.states(facts.sums().select(*facts.keys, "1L AS m"))
        return defer(facts.arity, states.where(condition).select(*facts.keys, "m"), summed=True)

    def grow(self, table: Table, facts: Facts, support: Support) -> Facts:
        came, _ = self._change(table, {support: facts}, "CASE WHEN l = 0 THEN 1L ELSE 0L END")
        return came

    def shrink(self, table: Table, facts: Facts, support: Support) -> Facts:
        dying = f"CASE WHEN l = 1 AND NOT {_FOUNDED} THEN -1L ELSE 0L END"
        _, went = self._change(table, {support: self.negate(facts)}, dying)
        return went

    def recount(self, table: Table, asserted: Facts, signed: Facts) -> tuple[Facts, Facts]:
        return self._change(table, {"asserted": asserted, "nonrecursive": signed}, _FOUNDATION)

    def change_foundations(self, table: Table, asserted: Facts, signed: Facts) -> tuple[Facts, Facts]:
        gained, lost = self._change(
            table, {"asserted": asserted, "nonrecursive": signed}, _FOUNDATION, apply=False
        )
        return lost, gained

    def _change(
        self, table: Table, changes: Mapping[Support, Facts], turn: str, apply: bool = True
    ) -> tuple[Facts, Facts]:
        """Change supports in one job; the facts that `turn` says become live (1) and not live (-1).

        Unless it is to `apply`, they are only told.
        """
        filled = {s: f for s, f in changes.items() if f.frame is not None}
        if not filled:
            return Facts(table.arity), Facts(table.arity)
        if apply and not table.content.runs and len(filled) == 1:
            ((support, facts),) = filled.items()
            return self._load(table, facts, support)
        frame, figures = self.keeper.keep(
            table.states(self._differences(table, filled)).select("*", f"{turn} AS turn"),
            {
                "came": "count_if(turn = 1)",
                "went": "count_if(turn = -1)",
                **distinct_metrics(table.arity),
            },
            table.name,
        )
        if figures["rows"]:
            self.note_table(table)
            distinct = read_distinct(table.arity, figures)
            state = state_columns(a="da", n="dn", r="dr", **({"l": "turn"} if apply else {}))
            turned = (figures["came"], figures["went"]) if apply else (0, 0)
            run = Run(frame.select(*table.keys, *state), figures["rows"], *turned)
            table.append(run, distinct if figures["came"] else ())
        came, went = (
            self._select_turned(table.arity, frame, figures[k], v) for k, v in (("came", 1), ("went", -1))
        )
        if figures["rows"] and apply:
            came.origin, went.origin = ((run, 1),), ((run, -1),)
        return came, went

    def _differences(self, table: Table, filled: Mapping[Support, Facts]) -> Frame:
        """One row for each fact whose supports change: keys, da, dn, dr."""
        parts = []
        for support, facts in filled.items():
            assert facts.frame is not None, "only facts are changes"
            frame = facts.sums() if len(filled) == 1 else facts.frame
            amounts = [f"{'m' if s == support else '0L'} AS d{c}" for s, c in SUPPORTS.items()]
            parts.append(frame.select(*table.keys, *amounts))
        if len(parts) == 1:
            return parts[0]
        return union(parts).totals(table.keys, *(f"sum(d{c}) AS d{c}" for c in SUPPORTS.values()))

    def _load(self, table: Table, facts: Facts, support: Support) -> tuple[Facts, Facts]:
        """The first facts of a table."""
        kept = self.keep(facts)
        nothing = Facts(table.arity)
        if kept.frame is None:
            return nothing, nothing
        state = state_columns(**{SUPPORTS[support]: "m", "l": "1L"})
        run = self._append(table, kept, state, came=self.count(kept))
        came = self.distinct(kept)
        came.origin = ((run, 1),)
        return came, nothing

    def _select_turned(self, arity: int, frame: Frame, rows: int, turn: int) -> Facts:
        if not rows:
            return Facts(arity)
        return Facts(arity, frame.where(f"turn = {turn}").select(*columns(arity), "1L AS m"), rows, rows)
