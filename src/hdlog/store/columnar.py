"""A store in the embedded engine: tables are mapped from its image when they are first asked for, and what came later is replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.columnar.facts import Facts, Order, keys_of, primary_order
from hdlog.engines.columnar.kernels.searching import locate
from hdlog.engines.columnar.kernels.sorting import order_of
from hdlog.engines.columnar.restoring import replay, restore
from hdlog.engines.columnar.table import Table
from hdlog.engines.columnar.tracking import Tracking
from hdlog.maintenance.materialisation import View
from hdlog.plan.nodes import is_view
from hdlog.plan.written import WrittenPlans, write_plans
from hdlog.program.model import Predicate
from hdlog.store.catalogue import Catalogue, Line
from hdlog.store.changed import Changed, find_changes, number_rows, restore_sum, sort_rows
from hdlog.store.disk import File
from hdlog.store.facts import Rows, add_up, read_rows, write_facts
from hdlog.store.gate import stored_plans
from hdlog.store.image import (
    INDEXES,
    TABLES,
    MappedTables,
    map_terms,
    write_indexes,
    write_tables,
    write_terms,
)
from hdlog.store.manifest import Image
from hdlog.store.merging import Merge, merge_facts, merge_piled
from hdlog.store.store import Store
from hdlog.store.term_ids import TermIds, index_of, merge_skolems, merge_terms
from hdlog.store.views import VIEWS, MappedViews, write_orders, write_views

_PENDING, _SHARE = 50_000, 8
"""Rows that may wait to be replayed, and the share of all facts (one in so many) from which on the image is made anew."""
_WORTH_AN_INDEX = 100_000
"""Facts of a table from which on an index of it is worth keeping."""
_TERMS = "terms"
_COUNTS = 1
"""Which of the supports counts the matches that a row of a view stands for."""
ColumnarView = View[Facts, Table]


class EmbeddedGate:
    def __init__(self, store: Store, engine: ColumnarEngine) -> None:
        self.store = store
        self.engine = engine
        engine.keeps_ids = True
        self.catalogue = Catalogue(store)
        manifest = store.manifest
        image = self._image = _find_image(store)
        arrays = None
        self._tables: MappedTables | None = None
        self._views: MappedViews | None = None
        if image is not None:
            arrays = map_terms(store, image.files[_TERMS], engine)
            self._tables = MappedTables(store, image.files)
            self._views = MappedViews(store, image.files)
        self._mapped: dict[Predicate, tuple[Facts, set[Order]]] = {}
        """views of the image that somebody has asked for, and the orders that it has of them"""
        plans = stored_plans(store)
        self._nodes = set() if plans is None else set(plans.nodes)
        """what the store has of the trees of rules"""
        self._plans = plans
        self.ids = TermIds(store, engine.dictionary, arrays)
        self.ids.read(self._not_in_image(manifest.terms), self._not_in_image(manifest.skolems))
        self._waiting = self._not_in_image(manifest.facts)
        """files of facts that are not in the image"""
        self._read: dict[str, dict[int, Rows]] = {}
        self._settle: Callable[[], None] = lambda: None

    # In.

    def sizes(self) -> dict[Predicate, int]:
        return self.catalogue.sizes()

    def holds(self, predicate: Predicate) -> bool:
        return self.catalogue.holds(predicate)

    def find(self, predicate: Predicate) -> Table | None:
        line = self.catalogue.find(predicate)
        return None if line is None else self._restore(line)

    def plans(self) -> WrittenPlans | None:
        return self._plans

    def find_runs(self, predicate: Predicate) -> tuple[Facts, ...]:
        line = self.catalogue.find(predicate)
        if line is None:
            return ()
        runs = []
        mapped = self._views.find(line.number, self.engine.pairs, line.arity) if self._views else None
        if mapped is not None:
            self._mapped[predicate] = (mapped, set(mapped.indexes))
            runs.append(mapped)
        parts = list(self._later_rows(line))
        if parts:
            runs.append(self._read_view(line.arity, add_up(parts)))
        return tuple(run for run in runs if len(run))

    def _read_view(self, arity: int, rows: Rows) -> Facts:
        """Rows of a view, with how their counts differ from those of the image."""
        columns = [self.ids.engine_ids(c) for c in rows.columns[:arity]]
        keys = keys_of(self.engine.pairs, columns, primary_order(arity), len(rows))
        order = order_of(keys)
        counts = rows.supports[_COUNTS][order]
        return Facts(self.engine.pairs, arity, keys[order][counts != 0], counts[counts != 0])

    def _restore(self, line: Line) -> Table:
        table = self.engine.table(line.arity)
        image = self._tables.find(line.number) if self._tables is not None else None
        if image is not None:
            restore(table, image.keys, image.supports, image.indexes)
        parts = list(self._later_rows(line))
        if parts:
            self._replay(table, add_up(parts))
        assert len(table) == line.rows, f"{line.name}: the store has {line.rows:,} facts, not {len(table):,}"
        table.set_distinct(line.distinct)
        table.tracking = Tracking()
        return table

    def _later_rows(self, line: Line) -> Iterator[Rows]:
        for file in self._waiting:
            if file.first <= line.number <= file.last:
                rows = self._rows_of(file).get(line.number)
                if rows is not None:
                    yield rows

    def _rows_of(self, file: File) -> dict[int, Rows]:
        """What is in a file, by the numbers of the predicates; read once."""
        if file.path not in self._read:
            self._read[file.path] = {rows.number: rows for rows in read_rows(self.store, file)}
        return self._read[file.path]

    def _replay(self, table: Table, rows: Rows) -> None:
        keys, supports = sort_rows(self.engine.pairs, self.ids, table.arity, rows)
        if table.runs:
            replay(table, keys, supports)
        else:
            restore_sum(table, keys, supports)

    # Out.

    def save(
        self,
        tables: Mapping[Predicate, Table],
        views: Mapping[Predicate, ColumnarView],
        plans: WrittenPlans | None,
    ) -> dict[str, Any]:
        manifest = self.store.manifest
        self.catalogue.forget_new()  # of a commit that failed
        nodes = self._nodes if plans is None else set(plans.nodes)
        self._drop_nodes(nodes, tables, views)
        changed = {p: t for p, t in tables.items() if t.tracking is None or t.tracking.has_notes}
        found = [find_changes(p, t) for p, t in changed.items()]
        found += [_change_of_view(self.engine, p, v) for p, v in views.items() if v.unsaved != ()]
        parts = number_rows(self.catalogue, self.ids, found)
        of_views = self._view_numbers(views)
        total = manifest.counts.get("facts", 0) + sum(p.live for p in parts if p.number not in of_views)
        waiting = sum(f.rows for f in self._waiting) + sum(map(len, parts))
        renews = self._image is None or waiting > max(_PENDING, total // _SHARE)
        index = index_of(self.ids.all_ids()) if renews else {}
        files = write_facts(self.store, parts)
        terms, skolems, typed = self.ids.write()
        asserted = sum(p.asserted for p in parts)
        changes: dict[str, Any] = {
            "facts": self._merge((*manifest.facts, *files), renews, merge_facts),
            "terms": self._merge((*manifest.terms, *terms), renews, merge_terms),
            "skolems": self._merge((*manifest.skolems, *skolems), renews, merge_skolems),
            "catalogue": self.catalogue.write(),
            "clashes": self.ids.clashes,
            "typed": manifest.typed or typed,
            "counts": {
                "facts": total,
                "asserted": manifest.counts.get("asserted", 0) + asserted,
                "terms": manifest.counts.get("terms", 0) + sum(f.rows for f in terms),
                "skolems": manifest.counts.get("skolems", 0) + sum(f.rows for f in skolems),
                "predicates": len(self.catalogue),
            },
        }
        if plans is not None:
            changes["plans"] = self.store.write_bytes("plans", "json", write_plans(plans), len(plans.plans))
        if renews:
            changes["image"] = self._write_image(tables, views, index, changes)
        else:
            changes["image"] = self._add_indexes(tables)

        def settle() -> None:
            self._nodes = nodes
            for view in views.values():
                view.unsaved = ()
            self._note_saved(list(changed.values()), changes["facts"], index)

        self._settle = settle
        return changes

    def _merge(self, files: Sequence[File], renews: bool, merge: Merge) -> tuple[File, ...]:
        """Files of which an image knows the content; they may be merged when another one is made, or if it does not know them yet."""
        return merge_piled(self.store, files, files if renews else self._not_in_image(files), merge)

    def _not_in_image(self, files: Sequence[File]) -> list[File]:
        known = set() if self._image is None else {*self._image.absorbed, *self._image.terms}
        return [file for file in files if file.path not in known]

    def _drop_nodes(
        self,
        nodes: set[Predicate],
        tables: Mapping[Predicate, Table],
        views: Mapping[Predicate, ColumnarView],
    ) -> None:
        """What nodes that are gone have kept, and those that were made anew."""
        gone = self._nodes - nodes
        gone |= {p for p in self._nodes if p in views and views[p].unsaved is None}
        gone |= {p for p in self._nodes if p in tables and tables[p].tracking is None}
        for predicate in gone:
            self.catalogue.drop(predicate)

    def _view_numbers(self, views: Iterable[Predicate]) -> set[int]:
        lines = (self.catalogue.find(p) for p in views)
        return {line.number for line in lines if line is not None}

    def _add_indexes(self, tables: Mapping[Predicate, Table]) -> Image | None:
        """The image with indexes of large tables that had to be made, so that the next one need not."""
        image = self._image
        assert image is not None, "another one would have been made"
        made = []
        for predicate, table in tables.items():
            if table.made_indexes and table.mapped and len(table) > _WORTH_AN_INDEX:
                line = self.catalogue.find(predicate)
                assert line is not None, "it is mapped"
                made += [(line.number, order, keys) for order, keys in table.made_indexes.items()]
            table.made_indexes = {}
        files = dict(image.files)
        if made:
            files[f"{INDEXES}{len(files)}"] = write_indexes(self.store, made)
        orders = [
            (self.catalogue.number(predicate).number, facts, set(facts.indexes) - known)
            for predicate, (facts, known) in self._mapped.items()
            if len(facts) > _WORTH_AN_INDEX and set(facts.indexes) - known
        ]
        if orders:
            files[f"{VIEWS}-{len(files)}"] = write_orders(self.store, orders)
            for facts, known in self._mapped.values():
                known |= set(facts.indexes)
        return replace(image, files=files)

    def compact(self) -> dict[str, Any]:
        lines = sorted((line for line in self.catalogue.lines() if line.rows), key=lambda line: line.number)
        tables = {line.predicate: self._restore(line) for line in lines}
        parts = (self._all_rows(line.number, tables[line.predicate]) for line in lines)
        index = index_of(self.ids.all_ids())
        files = write_facts(self.store, parts)
        terms = self.ids.write_all()
        changes: dict[str, Any] = {"facts": files, "terms": terms, "skolems": self.store.manifest.skolems}
        changes["catalogue"] = self.catalogue.write_all()
        changes["image"] = self._write_image(tables, {}, index, changes)
        self._settle = lambda: self._note_saved([], files, index)
        return changes

    def _all_rows(self, number: int, table: Table) -> Rows:
        facts = table.facts()
        supports = (*table.supports_of(facts.keys), np.ones(len(facts), np.int64))
        return Rows(number, [self.ids.store_ids(c) for c in facts.columns()], supports)

    def settle(self) -> None:
        self._settle()

    def _note_saved(
        self, tables: Sequence[Table], files: Sequence[File], index: Mapping[str, NDArray[Any]]
    ) -> None:
        """Something is on disk, and these are the files of facts now."""
        for table in tables:
            table.tracking = table.tracking or Tracking()
            table.tracking.forget()
        self.ids.settle()
        self.catalogue.renew()
        if index:
            self.ids.rest_on(index)
            self._image = self.store.manifest.image
            assert self._image is not None, "it was just made"
            self._tables = MappedTables(self.store, self._image.files)
            self._views = MappedViews(self.store, self._image.files)
            self._mapped = {}
            self._waiting, self._read = [], {}
        else:
            self._waiting = self._not_in_image(files)
            paths = {file.path for file in self._waiting}
            self._read = {path: rows for path, rows in self._read.items() if path in paths}

    def _write_image(
        self,
        tables: Mapping[Predicate, Table],
        views: Mapping[Predicate, ColumnarView],
        index: Mapping[str, NDArray[Any]],
        changes: Mapping[str, Any],
    ) -> Image:
        lines = sorted((line for line in self.catalogue.lines() if line.rows), key=lambda line: line.number)
        everything = (
            (line.number, tables.get(line.predicate) or self._restore(line))
            for line in lines
            if not is_view(line.name)
        )
        counted = (self._whole_view(line, views) for line in lines if is_view(line.name))
        files = {
            TABLES: write_tables(self.store, everything),
            VIEWS: write_views(self.store, counted),
            _TERMS: write_terms(self.store, self.engine, index),
        }
        paths = {kind: tuple(f.path for f in changes[kind]) for kind in ("facts", "terms", "skolems")}
        return Image(files, paths["facts"], paths["terms"] + paths["skolems"])

    def _whole_view(
        self, line: Line, views: Mapping[Predicate, ColumnarView]
    ) -> tuple[int, Facts, set[Order]]:
        """A view in one piece, with the orders that are worth keeping."""
        view = views.get(line.predicate)
        runs = self.find_runs(line.predicate) if view is None else view.runs
        return (
            line.number,
            self.engine.plus(runs, line.arity),
            {order for run in runs for order in run.indexes},
        )


def _change_of_view(engine: ColumnarEngine, predicate: Predicate, view: ColumnarView) -> Changed:
    """How the counts of a view have changed since they were written, or all of one that never was."""
    runs = view.runs
    change = engine.plus(runs if view.unsaved is None else view.unsaved, predicate.arity)
    after = np.zeros(len(change), np.int64)
    for run in runs:
        at = locate(run.keys, change.keys)
        after[at >= 0] += run.weights()[at[at >= 0]]
    before = after - change.weights()
    live = (after != 0).astype(np.int64) - (before != 0)
    nothing = np.zeros(len(change), np.int64)
    supports = (nothing, change.weights(), nothing, live)
    return Changed(predicate, change, supports, max(runs, key=len, default=change))


def _find_image(store: Store) -> Image | None:
    """The image of a store, if all of it is there."""
    image = store.manifest.image
    if image is None or not all(store.folder.has(f.path) for f in image.files.values()):
        return None
    return image
