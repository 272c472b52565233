"""A store in the embedded engine: tables are mapped from its image when they are first asked for, and what came later is replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.columnar.facts import Counts, Facts, keys_of, primary_order
from hdlog.engines.columnar.kernels import Ids
from hdlog.engines.columnar.restoring import replay, restore
from hdlog.engines.columnar.table import Table
from hdlog.engines.columnar.tracking import Tracking
from hdlog.program.model import Predicate
from hdlog.reading.identifiers import StoreIds
from hdlog.store.catalogue import Catalogue, Line
from hdlog.store.disk import File
from hdlog.store.facts import Rows, add_up, read_rows, write_facts
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
from hdlog.store.store import Store
from hdlog.store.term_ids import TermIds, index_of

_PENDING, _SHARE = 50_000, 8
"""Rows that may wait to be replayed, and the share of all facts (one in so many) from which on the image is made anew."""
_WORTH_AN_INDEX = 100_000
"""Facts of a table from which on an index of it is worth keeping."""
_SHORT_TABLE = 10_000
"""Facts up to which a table is one of many."""
_TERMS = "terms"


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
        if image is not None:
            arrays = map_terms(store, image.files[_TERMS], engine)
            self._tables = MappedTables(store, image.files)
        self.ids = TermIds(store, engine.dictionary, arrays)
        known = image.terms if image is not None else ()
        self.ids.read(
            [f for f in manifest.terms if f.path not in known],
            [f for f in manifest.skolems if f.path not in known],
        )
        absorbed = image.absorbed if image is not None else ()
        self._waiting = [f for f in manifest.facts if f.path not in absorbed]
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
        columns = [self.ids.engine_ids(c) for c in rows.columns[: table.arity]]
        keys = keys_of(self.engine.pairs, columns, primary_order(table.arity), len(rows))
        order = np.argsort(keys)
        asserted, fixed, recursive, _ = (s[order] for s in rows.supports)
        if table.runs:
            replay(table, keys[order], (asserted, fixed, recursive))
        else:
            held = (asserted != 0) | (fixed != 0) | (recursive != 0)
            supports = (asserted[held].astype(np.uint8), fixed[held], recursive[held])
            restore(table, keys[order][held], supports)

    # Out.

    def save(self, tables: Mapping[Predicate, Table]) -> dict[str, Any]:
        manifest = self.store.manifest
        self.catalogue.forget_new()  # of a commit that failed
        changed = [(p, t) for p, t in tables.items() if t.tracking is None or t.tracking.has_notes]
        found = [(p, t, *self._changes_of(t)) for p, t in changed]
        # Terms of many small tables get their ids together.
        small = [facts for _, _, facts, _ in found if len(facts) < _SHORT_TABLE]
        ids = iter(self._store_ids([c for facts in small for c in facts.columns()]))
        parts = []
        for predicate, table, facts, supports in found:
            columns = facts.columns() if len(facts) >= _SHORT_TABLE else ()
            own = [self.ids.store_ids(c) for c in columns] or list(islice(ids, facts.arity))
            parts.append(self._rows_to_write(predicate, table, own, supports))
        parts = sorted((part for part in parts if len(part)), key=lambda part: part.number)
        total = manifest.counts.get("facts", 0) + sum(int(part.supports[3].sum()) for part in parts)
        waiting = sum(f.rows for f in self._waiting) + sum(map(len, parts))
        renews = self._image is None or waiting > max(_PENDING, total // _SHARE)
        index = index_of(self.ids.all_ids()) if renews else {}
        files = write_facts(self.store, parts)
        terms, skolems, typed = self.ids.write()
        changes = {
            "facts": (*manifest.facts, *files),
            "terms": (*manifest.terms, *terms),
            "skolems": (*manifest.skolems, *skolems),
            "catalogue": self.catalogue.write(),
            "clashes": self.ids.clashes,
            "typed": manifest.typed or typed,
            "counts": {
                "facts": total,
                "asserted": manifest.counts.get("asserted", 0) + sum(int(p.supports[0].sum()) for p in parts),
                "terms": manifest.counts.get("terms", 0) + sum(f.rows for f in terms),
                "skolems": manifest.counts.get("skolems", 0) + sum(f.rows for f in skolems),
                "predicates": len(self.catalogue),
            },
        }
        if renews:
            changes["image"] = self._write_image(tables, index, changes)
        else:
            changes["image"] = self._add_indexes(tables)
        self._settle = lambda: self._note_saved([t for _, t in changed], files, index)
        return changes

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
        if not made:
            return image
        name = f"{INDEXES}{len(image.files)}"
        return replace(image, files={**image.files, name: write_indexes(self.store, made)})

    def compact(self) -> dict[str, Any]:
        lines = sorted((line for line in self.catalogue.lines() if line.rows), key=lambda line: line.number)
        tables = {line.predicate: self._restore(line) for line in lines}
        parts = (self._all_rows(line.number, tables[line.predicate]) for line in lines)
        index = index_of(self.ids.all_ids())
        files = write_facts(self.store, parts)
        terms = self.ids.write_all()
        changes: dict[str, Any] = {"facts": files, "terms": terms, "skolems": self.store.manifest.skolems}
        changes["catalogue"] = self.catalogue.write_all()
        changes["image"] = self._write_image(tables, index, changes)
        self._settle = lambda: self._note_saved([], files, index)
        return changes

    def _all_rows(self, number: int, table: Table) -> Rows:
        facts = table.facts()
        supports = (*table.supports_of(facts.keys), np.ones(len(facts), np.int64))
        return Rows(number, [self.ids.store_ids(c) for c in facts.columns()], supports).sort()

    def settle(self) -> None:
        self._settle()

    def _note_saved(
        self, tables: Sequence[Table], files: Sequence[File], index: Mapping[str, NDArray[Any]]
    ) -> None:
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
            self._waiting, self._read = [], {}
        else:
            self._waiting += files

    def _changes_of(self, table: Table) -> tuple[Facts, Sequence[Counts]]:
        """What has changed of a table, or all of one that was never written."""
        if table.tracking is not None:
            return table.collect_changes()
        facts = table.facts()
        return facts, (*table.supports_of(facts.keys), np.ones(len(facts), np.int64))

    def _store_ids(self, columns: Sequence[Ids]) -> list[StoreIds]:
        """Of many short columns, all at once."""
        if not columns:
            return []
        return np.split(
            self.ids.store_ids(np.concatenate(columns)), np.cumsum([len(c) for c in columns])[:-1]
        )

    def _rows_to_write(
        self, predicate: Predicate, table: Table, columns: Sequence[StoreIds], supports: Sequence[Counts]
    ) -> Rows:
        changed = len(supports[0])
        line = self.catalogue.number(predicate) if changed or len(table) else Line(-1, *predicate)
        rows = Rows(line.number, columns, supports)
        if changed:
            asserted, live = int(supports[0].sum()), int(supports[3].sum())
            self.catalogue.set(
                replace(
                    line,
                    rows=line.rows + live,
                    asserted=line.asserted + asserted,
                    distinct=line.distinct or _count_distinct(table),
                )
            )
        return rows.sort()

    def _write_image(
        self,
        tables: Mapping[Predicate, Table],
        index: Mapping[str, NDArray[Any]],
        changes: Mapping[str, Any],
    ) -> Image:
        lines = sorted(self.catalogue.lines(), key=lambda line: line.number)
        everything = (
            (line.number, tables.get(line.predicate) or self._restore(line)) for line in lines if line.rows
        )
        files = {
            TABLES: write_tables(self.store, everything),
            _TERMS: write_terms(self.store, self.engine, index),
        }
        paths = {kind: tuple(f.path for f in changes[kind]) for kind in ("facts", "terms", "skolems")}
        return Image(files, paths["facts"], paths["terms"] + paths["skolems"])


def _find_image(store: Store) -> Image | None:
    """The image of a store, if all of it is there."""
    image = store.manifest.image
    if image is None or not all((store.folder / f.path).exists() for f in image.files.values()):
        return None
    return image


def _count_distinct(table: Table) -> tuple[float, ...]:
    if table.arity < 2:
        return (float(len(table)),) * table.arity
    return tuple(float(table.distinct((i,))) for i in range(table.arity))
