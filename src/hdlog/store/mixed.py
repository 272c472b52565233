"""A store in the mixed engine: small tables are read into the process and written from there, large ones are frames over the store's files.

No job of Spark is started for what is small on its way in and out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hdlog.engines.columnar.tracking import Tracking
from hdlog.engines.mixed.engine import MixedEngine
from hdlog.engines.mixed.sides import LETTERS, Facts, Table
from hdlog.errors import SparkFailed
from hdlog.ingest.pipeline import Parsed
from hdlog.maintenance.materialisation import View
from hdlog.plan.nodes import is_node
from hdlog.plan.written import WrittenPlans
from hdlog.program.model import Predicate
from hdlog.store.catalogue import Line
from hdlog.store.changed import Changed, find_changes, number_rows, restore_sum, sort_rows
from hdlog.store.disk import File
from hdlog.store.facts import Rows, add_up, read_rows, write_facts
from hdlog.store.spark import SparkGate
from hdlog.store.store import Store

_OPEN_FILES = 8
"""Files of small tables that are kept in memory: tables that are asked for after each other are often in the same one."""


class _Ids:
    """Of the engine, by the names that the store has for them."""

    def __init__(self, engine: MixedEngine) -> None:
        self.store_ids = engine.dictionary.store_ids
        self.engine_ids = engine.dictionary.near_ids


class MixedGate:
    def __init__(self, store: Store, engine: MixedEngine) -> None:
        self.store = store
        self.engine = engine
        self.far = SparkGate(store, engine.far)
        self.catalogue = self.far.catalogue
        self._ids = _Ids(engine)
        self._read: OrderedDict[str, dict[int, Rows]] = OrderedDict()
        self._settle: Callable[[], None] = lambda: None

    # In.

    def sizes(self) -> dict[Predicate, int]:
        return self.far.sizes()

    def holds(self, predicate: Predicate) -> bool:
        return self.far.holds(predicate)

    def find(self, predicate: Predicate) -> Table | None:
        line = self.far.find_line(predicate)
        if line is None:
            return None
        if line.rows > self.engine.numbers.near_rows:
            return Table(line.arity, far=self.far.restore(line), name=line.name)
        return self._restore(line)

    def _restore(self, line: Line) -> Table:
        near = self.engine.near.table(line.arity)
        parts = [
            rows for file in self.store.manifest.facts if (rows := self._rows_of(file, line)) is not None
        ]
        if parts:
            restore_sum(near, *sort_rows(self.engine.near.pairs, self._ids, line.arity, add_up(parts)))
        assert len(near) == line.rows, f"{line.name}: the store has {line.rows:,} facts, not {len(near):,}"
        near.set_distinct(line.distinct)
        near.tracking = Tracking()
        return Table(line.arity, near=near, name=line.name)

    def _rows_of(self, file: File, line: Line) -> Rows | None:
        """What a file has of a predicate."""
        if not file.first <= line.number <= file.last:
            return None
        if file.first == file.last or file.rows > self.engine.numbers.near_rows:
            return next(read_rows(self.store, file, line.number), None)
        if file.path not in self._read:
            self._read[file.path] = {rows.number: rows for rows in read_rows(self.store, file)}
            if len(self._read) > _OPEN_FILES:
                self._read.popitem(last=False)
        self._read.move_to_end(file.path)
        return self._read[file.path].get(line.number)

    def plans(self) -> None:
        """Rules are planned anew, as by the engine on Spark."""

    def find_runs(self, predicate: Predicate) -> tuple[Facts, ...]:
        raise AssertionError("without plans there are no views")

    # Out.

    def save(
        self,
        tables: Mapping[Predicate, Table],
        views: Mapping[Predicate, View[Facts, Table]],
        plans: WrittenPlans | None,
    ) -> dict[str, Any]:
        own = {p: t for p, t in tables.items() if not is_node(p.name)}
        for table in own.values():
            if table.far is not None and table.recent and table.far.unsaved_runs() is None:
                self.engine.flush(table)  # it will be compared with all that the store has
        far = {p: t.far for p, t in own.items() if t.far is not None}
        found = [change for p, table in own.items() for change in self._find_changes(p, table)]
        terms, skolems, tell = self._write_new_terms()
        changes = self.far.save(far, {}, plans)
        tell()
        parts = number_rows(self.catalogue, self._ids, found)
        files = write_facts(self.store, _add_up(parts))
        counts = changes["counts"]
        changes |= {
            "facts": (*changes["facts"], *files),
            "terms": (*changes["terms"], *terms),
            "skolems": (*changes["skolems"], *skolems),
            "catalogue": self.catalogue.write(),
            "counts": {
                "facts": counts["facts"] + sum(part.live for part in parts),
                "asserted": counts["asserted"] + sum(part.asserted for part in parts),
                "terms": counts["terms"] + sum(f.rows for f in terms),
                "skolems": counts["skolems"] + sum(f.rows for f in skolems),
                "predicates": len(self.catalogue),
            },
        }
        self._settle = lambda: self._note_saved(list(own.values()))
        return changes

    def _find_changes(self, predicate: Predicate, table: Table) -> Iterator[Changed]:
        """What has changed of a table that was worked out in the process."""
        if table.near is not None:
            if table.near.tracking is None or table.near.tracking.has_notes:
                yield find_changes(predicate, table.near)
            return
        for recent in table.recent[len(table.recent) - table.unsaved :]:
            yield Changed(predicate, recent.facts, [recent.changes[s] for s in LETTERS], recent.facts)

    def _write_new_terms(self) -> tuple[list[File], list[File], Callable[[], None]]:
        """Files of terms and Skolem terms that came up in the process, if nothing came up on Spark; otherwise Spark writes all of them.

        And what has Spark know them, which is to be done once it cannot take them for terms that it has to write.
        """
        dictionary = self.engine.far.dictionary
        if dictionary.has_new:
            return [], [], lambda: None
        terms, skolems = self.engine.take_new_terms()
        new = _without_known(terms, dictionary.find_stored(terms["id"].to_numpy()), self._refuse_text)
        made = _without_known(
            skolems, dictionary.find_stored_skolems(skolems["id"].to_numpy()), _refuse_skolem
        )
        return (
            [self.store.write_table("terms", new, use_dictionary=False)] if len(new) else [],
            [self.store.write_table("skolems", made)] if len(made) else [],
            lambda: self.engine.tell_terms(terms, skolems),
        )

    def _refuse_text(self, text: str, identifier: int) -> None:
        self.engine.dictionary.set_apart(text, identifier)
        self.far.note_clashes()

    def load(self, parsed: Parsed) -> dict[str, Any]:
        changes = self.far.load(parsed)
        self._settle = lambda: None
        return changes

    def compact(self) -> dict[str, Any]:
        changes = self.far.compact()
        self._settle = self.far.settle
        return changes

    def settle(self) -> None:
        self._settle()

    def _note_saved(self, tables: Sequence[Table]) -> None:
        self.far.settle()
        for table in tables:
            table.unsaved = 0
            if table.near is not None:
                table.near.tracking = table.near.tracking or Tracking()
                table.near.tracking.forget()
        paths = {file.path for file in self.store.manifest.facts}
        for path in [path for path in self._read if path not in paths]:
            del self._read[path]


def _add_up(parts: Sequence[Rows]) -> Iterator[Rows]:
    """Changes of a predicate that came one after the other, as one."""
    for _, several in groupby(parts, key=attrgetter("number")):
        yield add_up(list(several))


def _without_known(new: pa.Table, known: pa.Table, refuse: Callable[[Any, int], None]) -> pa.Table:
    """The terms that a store has not got yet; one whose id belongs to another term there is refused."""
    if not len(known):
        return new
    there = {row["id"]: row for row in known.to_pylist()}
    for row in new.filter(pc.is_in(new["id"], known["id"])).to_pylist():
        if row != there[row["id"]]:
            refuse(row.get("text"), row["id"])
    return new.filter(pc.invert(pc.is_in(new["id"], known["id"])))


def _refuse_skolem(_: object, identifier: int) -> None:
    raise SparkFailed("two Skolem terms have the same hash; give one SKOLEM another name and run again")
