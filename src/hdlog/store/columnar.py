"""A store in the embedded engine: its 64-bit ids to the engine's own and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.columnar.kernels import Ids
from hdlog.engines.columnar.table import Table
from hdlog.program.model import Predicate
from hdlog.program.ntriples import is_typed
from hdlog.reading.identifiers import INTEGER_LIMIT, INTEGERS, SKOLEMS, StoreIds, inline_integer, skolem_ids
from hdlog.store.files import write_new_terms, write_predicate, write_skolems
from hdlog.store.store import Facts, File, Store
from hdlog.store.terms import StoredTerms
from hdlog.store.written import Written

_UNSET = np.int64(-1 << 63)


class EmbeddedGate:
    def __init__(self, store: Store, engine: ColumnarEngine) -> None:
        self.store = store
        self.engine = engine
        self.dictionary = engine.dictionary
        self._base = 0  # below it, ids of the engine are those of the store
        self._of_texts = np.empty(
            0, np.uint32
        )  # engine's id by store id from the base on, for terms with a text
        self._skolems: tuple[StoreIds, Ids] = (np.empty(0, np.int64), np.empty(0, np.uint32))
        self._store_ids = np.empty(0, np.int64)  # store id by engine's id from the base on
        self._new_texts: list[str] = []
        self._new_skolems: tuple[list[int], list[str], list[list[int]]] = ([], [], [])
        self._terms = 0
        self._written = Written()

    # In.

    def read_terms(self, files: Sequence[File], skolem_files: Sequence[File]) -> None:
        """Make terms known to the engine; ids go on from those that are."""
        if files and not len(self.dictionary):
            source = StoredTerms(self.store, files)
            if not source.has_large_integers():
                self.dictionary.lean_on(source)
                self._base = self._terms = len(source)
                files = ()
        if files:
            tables = [self.store.read(f, ["id", "text"]) for f in files]
            whole = pa.concat_tables(tables)
            ids = whole["id"].to_numpy()
            order = np.argsort(ids)
            texts = whole["text"].take(pa.array(order)).to_pylist()
            assert int(ids[order[0]]) == self._terms, "ids go on without a gap"
            encoded = self.dictionary.encode(texts)
            self._of_texts = np.concatenate([self._of_texts, encoded])
            self._note(encoded, ids[order])
            self._terms += len(ids)
        if skolem_files:
            self._read_skolems(skolem_files)

    def _note(self, ids: Ids, store_ids: StoreIds) -> None:
        """Remember which id of the store an id of the engine stands for."""
        missing = len(self.dictionary) - self._base - len(self._store_ids)
        self._store_ids = np.concatenate([self._store_ids, np.full(missing, _UNSET)])
        self._store_ids[ids - np.uint32(self._base)] = store_ids

    def _read_skolems(self, files: Sequence[File]) -> None:
        table = pa.concat_tables(self.store.read(f) for f in files)
        ids = table["id"].to_numpy()
        _, first = np.unique(ids, return_index=True)
        rows = table.take(pa.array(first))
        waiting = list(
            zip(rows["id"].to_pylist(), rows["name"].to_pylist(), rows["args"].to_pylist(), strict=True)
        )
        while waiting:
            known = set(self._skolems[0].tolist())
            ready = [s for s in waiting if all(a < SKOLEMS or a in known for a in s[2])]
            assert ready, "arguments of Skolem terms are in the store"
            waiting = [s for s in waiting if not all(a < SKOLEMS or a in known for a in s[2])]
            groups: dict[tuple[str, int], list[tuple[int, list[int]]]] = {}
            for identifier, name, arguments in ready:
                groups.setdefault((name, len(arguments)), []).append((identifier, arguments))
            for (name, width), members in groups.items():
                columns = [self.engine_ids(np.array([m[1][i] for m in members])) for i in range(width)]
                made = self.dictionary.encode_skolems(name, columns, len(members))
                self._add_skolems(np.array([m[0] for m in members]), made)

    def _add_skolems(self, store_ids: StoreIds, ids: Ids) -> None:
        both = np.concatenate([self._skolems[0], store_ids])
        order = np.argsort(both)
        self._skolems = (both[order], np.concatenate([self._skolems[1], ids])[order])
        self._note(ids, store_ids)

    def engine_ids(self, ids: StoreIds) -> Ids:
        encoded = ids.astype(np.uint32)
        integers, skolems = ids < 0, ids >= SKOLEMS
        texts = ~(integers | skolems) & (ids >= self._base)
        encoded[texts] = self._of_texts[ids[texts] - self._base]
        if integers.any():
            encoded[integers] = self.dictionary.encode_integers(ids[integers] - np.int64(INTEGERS))
        if skolems.any():
            at = np.searchsorted(self._skolems[0], ids[skolems])
            encoded[skolems] = self._skolems[1][at]
        return encoded

    def read_facts(self, facts: Iterable[Facts]) -> dict[Predicate, Any]:
        """Facts in files, for the engine."""
        engine_facts = {}
        for stored in facts:
            columns, _ = self._columns(stored)
            engine_facts[stored.predicate] = self.engine.facts_from_columns(columns, stored.rows)
        return engine_facts

    def _columns(self, stored: Facts) -> tuple[list[Ids], pa.Table]:
        table = pa.concat_tables(self.store.read(f) for f in stored.files)
        return [self.engine_ids(table[f"c{i}"].to_numpy()) for i in range(stored.arity)], table

    def fill(self, tables: Mapping[Predicate, Table]) -> None:
        """Tables of the engine from the store's snapshot."""
        for stored in self.store.manifest.facts:
            columns, table = self._columns(stored)
            supports = [table[s].to_numpy() for s in ("asserted", "nonrecursive", "recursive")]
            tables[stored.predicate].restore(columns, *supports)
        self._written.note(tables)

    # Out.

    def save(self, tables: Mapping[Predicate, Table]) -> dict[str, Any]:
        """Write what has changed since `fill`; what a commit of the store is to say."""
        manifest = self.store.manifest
        facts = self._written.facts(self.store, tables, self._write)
        buckets, new = manifest.buckets or 1, self._new_texts
        term_files = (*manifest.term_files, *self._write_terms(buckets))
        skolem_files = manifest.skolem_files
        if self._new_skolems[0]:
            skolem_files = (*skolem_files, write_skolems(self.store, *self._new_skolems))
        self._new_texts, self._new_skolems = [], ([], [], [])
        return {
            "facts": facts,
            "terms": self._terms,
            "term_files": term_files,
            "skolem_files": skolem_files,
            "buckets": buckets,
            "typed": manifest.typed or any(map(is_typed, new)),
        }

    def _write(self, predicate: Predicate, number: int, table: Table) -> Facts:
        facts = table.facts()
        columns = [self.store_ids(c) for c in facts.columns()]
        supports = [table.values(facts, s) for s in ("asserted", "nonrecursive", "recursive")]
        return write_predicate(self.store, predicate, number, columns, len(facts), supports)

    def store_ids(self, ids: Ids) -> StoreIds:
        if len(self._store_ids) < len(self.dictionary) - self._base or (self._look_up(ids) == _UNSET).any():
            self._number_new()
        return self._look_up(ids)

    def _number_new(self) -> None:
        """Ids of the store for all terms that have come since."""
        self._note(np.empty(0, np.uint32), np.empty(0, np.int64))
        unset = np.flatnonzero(self._store_ids == _UNSET)
        if not len(unset):
            return
        place = int(unset[0])
        start = self._base + place
        integers, skolems = self.dictionary.collect_made_since(start)
        ids = np.arange(start, len(self.dictionary), dtype=np.uint32)
        for identifier in ids[integers & (self._store_ids[place:] == _UNSET)].tolist():
            self._store_ids[identifier - self._base] = self._integer(identifier)
        made = np.zeros(len(ids), np.bool_)
        for _, members, _ in skolems:
            made[members - np.uint32(start)] = True
        for identifier in ids[~integers & ~made & (self._store_ids[place:] == _UNSET)].tolist():
            self._store_ids[identifier - self._base] = self._place(self.dictionary.text(identifier))
        self._number_skolems(skolems)

    def _integer(self, identifier: int) -> int:
        value = int(self.dictionary.integers(np.array([identifier], np.uint32))[0])
        if abs(value) < INTEGER_LIMIT:
            return INTEGERS + value
        return self._place(self.dictionary.text(identifier))

    def _place(self, text: str) -> int:
        number = inline_integer(text)
        if number is not None:
            return number
        self._new_texts.append(text)
        self._terms += 1
        return self._terms - 1

    def _number_skolems(self, skolems: list[tuple[str, Ids, list[Ids]]]) -> None:
        """Arguments come first: a Skolem term of Skolem terms waits for them."""
        while skolems:
            waiting = []
            for name, ids, arguments in skolems:
                places = ids - np.uint32(self._base)
                known = self._store_ids[places] != _UNSET
                columns = [self._look_up(a) for a in arguments]
                ready = ~known
                for column in columns:
                    ready &= column != _UNSET
                if ready.any():
                    chosen = [c[ready] for c in columns]
                    made = skolem_ids(name, chosen, int(ready.sum()))
                    self._store_ids[places[ready]] = made
                    self._new_skolems[0].extend(made.tolist())
                    self._new_skolems[1].extend([name] * len(made))
                    self._new_skolems[2].extend(
                        [list(a) for a in zip(*(c.tolist() for c in chosen), strict=True)]
                        or [[] for _ in made]
                    )
                rest = ~known & ~ready
                if rest.any():
                    waiting.append((name, ids[rest], [a[rest] for a in arguments]))
            skolems = waiting

    def _look_up(self, ids: Ids) -> StoreIds:
        """Ids of the store as far as they are there."""
        later = ids >= self._base
        store_ids = ids.astype(np.int64)
        store_ids[later] = self._store_ids[ids[later] - np.uint32(self._base)]
        return store_ids

    def _write_terms(self, buckets: int) -> list[File]:
        if not self._new_texts:
            return []
        texts = pa.array(self._new_texts, pa.string())
        ids = np.arange(self._terms - len(texts), self._terms)
        return write_new_terms(self.store, ids, texts, buckets)
