"""Ids of the embedded engine and ids of a store for the same terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdlog.engines.columnar.dictionary import Dictionary
from hdlog.engines.columnar.kernels import Ids
from hdlog.engines.columnar.kernels.sorting import order_of
from hdlog.reading.identifiers import (
    INTEGER_LIMIT,
    INTEGERS,
    StoreIds,
    next_id,
    skolem_ids,
    text_ids,
)
from hdlog.store.disk import File
from hdlog.store.segments import Arrays
from hdlog.store.store import Store

TERMS = pa.schema([("id", pa.int64()), ("text", pa.string())])
SKOLEM_TERMS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("args", pa.list_(pa.int64()))])
_UNSET = np.int64(-1 << 63)
Skolem = tuple[int, str, list[int]]
Group = tuple[str, Ids, list[Ids]]
"""Skolem terms of one name: the engine's ids of them, and of their arguments."""


class TermIds:
    """Terms of an image have both ids there. Others get theirs of the store when they are to be written."""

    def __init__(self, store: Store, dictionary: Dictionary, image: Arrays | None) -> None:
        self.store = store
        self.dictionary = dictionary
        self.clashes = dict(store.manifest.clashes)
        self._texts: list[Ids] = []
        self._skolems: list[Skolem] = []
        """that are yet to be written: engine's ids, and terms"""
        self.rest_on(image or index_of(np.empty(0, np.int64)))

    def rest_on(self, image: Arrays) -> None:
        """Both ids of the first terms are in an image."""
        self._base: StoreIds = image["store_ids"]
        self._image = _Index(image["sorted_ids"], image["sorted_places"])
        self._own = np.full(
            len(self.dictionary) - len(self._base), _UNSET
        )  # store id by engine's id from the base on
        self._later = _Index(np.empty(0, np.int64), np.empty(0, np.uint32))
        """terms that are not in the image"""

    # From the store.

    def read(self, terms: Sequence[File], skolems: Sequence[File]) -> None:
        """Have the engine know the terms of some files."""
        for file in terms:
            table = self.store.read_table(file, TERMS.names)
            self._note(self.dictionary.encode(table["text"].combine_chunks()), table["id"].to_numpy())
        waiting: list[Skolem] = []
        for file in skolems:
            rows = self.store.read_table(file, SKOLEM_TERMS.names)
            waiting += zip(*(rows[n].to_pylist() for n in SKOLEM_TERMS.names), strict=True)
        for ready in _by_level(waiting):
            self._encode_skolems(ready)

    def _encode_skolems(self, skolems: Sequence[Skolem]) -> None:
        groups: dict[tuple[str, int], list[Skolem]] = {}
        for skolem in skolems:
            groups.setdefault((skolem[1], len(skolem[2])), []).append(skolem)
        for (name, width), members in groups.items():
            columns = [self.engine_ids(np.array([m[2][i] for m in members])) for i in range(width)]
            made = self.dictionary.encode_skolems(name, columns, len(members))
            self._note(made, np.array([m[0] for m in members], np.int64))

    def _note(self, ids: Ids, store_ids: StoreIds) -> None:
        """Remember both ids of terms that are not in the image."""
        self._make_room()
        mine = ids >= len(self._base)
        self._own[ids[mine] - np.uint32(len(self._base))] = store_ids[mine]
        self._later = self._later.extend(store_ids[mine], ids[mine])

    def _make_room(self) -> None:
        missing = len(self.dictionary) - len(self._base) - len(self._own)
        if missing > 0:
            self._own = np.concatenate([self._own, np.full(missing, _UNSET)])

    def engine_ids(self, ids: StoreIds) -> Ids:
        """The engine's ids of terms that the store has."""
        engine_ids = np.empty(len(ids), np.uint32)
        integers = ids < 0
        if integers.any():
            engine_ids[integers] = self.dictionary.encode_integers(ids[integers] - np.int64(INTEGERS))
        others = np.flatnonzero(~integers)
        places = self._find(ids[others])
        assert (places >= 0).all(), "the terms of facts are in the store"
        engine_ids[others] = places
        return engine_ids

    def _find(self, ids: StoreIds) -> NDArray[np.int64]:
        """The engine's ids of those that are known, -1 for others."""
        places = self._image.find(ids)
        rest = np.flatnonzero(places < 0)
        if len(rest):
            places[rest] = self._later.find(ids[rest])
        return places

    # To the store.

    def store_ids(self, ids: Ids) -> StoreIds:
        """The ids that terms have in the store, or get there now."""
        self._make_room()
        base = len(self._base)
        store_ids = np.empty(len(ids), np.int64)
        there = ids < base
        store_ids[there] = self._base[ids[there]]
        own = ids[~there] - np.uint32(base)
        unset = np.unique(own[self._own[own] == _UNSET])
        if len(unset):
            self._give(unset + np.uint32(base))
        store_ids[~there] = self._own[own]
        return store_ids

    def _give(self, ids: Ids) -> None:
        """Ids of the store for terms that have none yet, all of them different."""
        groups: list[Group] = []
        seen: set[int] = set()
        """Skolem terms that get theirs in the end, when what they are made of has one"""
        while len(ids):
            numbers, skolems, texted = self.dictionary.take_apart(ids)
            self._give_plain(ids[texted], ids[numbers])
            groups += skolems
            seen.update(i for _, members, _ in skolems for i in members.tolist())
            parts = [a for _, _, arguments in skolems for a in arguments]
            ids = self._without_id(np.concatenate(parts)) if parts else ids[:0]
            ids = ids[[i not in seen for i in ids.tolist()]]
        if groups:
            self._give_skolems(groups)

    def _without_id(self, ids: Ids) -> Ids:
        """Those that have no id in the store, each once."""
        base = np.uint32(len(self._base))
        own: Ids = np.unique(ids[ids >= base])
        unset: Ids = own[self._own[own - base] == _UNSET]
        return unset

    def _give_plain(self, texted: Ids, numbers: Ids) -> None:
        values = self.dictionary.integers(numbers)
        small = np.abs(values.astype(np.float64)) < INTEGER_LIMIT
        self._own[numbers[small] - np.uint32(len(self._base))] = values[small] + np.int64(INTEGERS)
        named = np.concatenate([texted, numbers[~small]])
        if len(named):
            self._note(named, self._hash_texts(named))
            self._texts.append(named)

    def _give_skolems(self, groups: Sequence[Group]) -> None:
        """In the order of the engine's ids, in which arguments come first: as many at a time as are made of none of them."""
        base = np.uint32(len(self._base))
        members = np.concatenate([own for _, own, _ in groups])
        sizes = [len(own) for _, own, _ in groups]
        kind, place = np.repeat(np.arange(len(groups)), sizes), np.concatenate([np.arange(n) for n in sizes])
        order = order_of(members)
        latest = np.zeros(len(members), np.uint32)
        ends = np.cumsum(sizes)
        for (_, _, arguments), first, last in zip(groups, ends - sizes, ends, strict=True):
            for ids in arguments:
                of_these = np.where(np.isin(ids, members), ids, np.uint32(0))
                np.maximum(latest[first:last], of_these, out=latest[first:last])
        members, kind, place = members[order], kind[order], place[order]
        made_of = np.maximum.accumulate(latest[order])
        start = 0
        while start < len(members):
            end = int(np.searchsorted(made_of, members[start]))
            for number in np.unique(kind[start:end]).tolist():
                rows = place[start:end][kind[start:end] == number]
                name, own, arguments = groups[number]
                columns = [self.store_ids(a[rows]) for a in arguments]
                made = skolem_ids(name, columns, len(rows))
                self._own[own[rows] - base] = made
                values = zip(*(c.tolist() for c in columns), strict=True) if columns else [()] * len(rows)
                self._skolems += [(i, name, list(v)) for i, v in zip(made.tolist(), values, strict=True)]
            start = end
        self._note(members, self._own[members - base])

    def _hash_texts(self, ids: Ids) -> StoreIds:
        """The ids of texts: their hashes, but for those whose hash belongs to another text."""
        texts = self.dictionary.text_array(ids).cast(pa.string())
        hashes = text_ids(texts, self.clashes)
        order = order_of(hashes)
        again = np.zeros(len(ids), np.bool_)
        again[order[1:]] = hashes[order[1:]] == hashes[order[:-1]]
        for place in np.flatnonzero(again | (self._find(hashes) >= 0)).tolist():
            identifier = int(hashes[place])
            while identifier in hashes or self._find(np.array([identifier]))[0] >= 0:
                identifier = next_id(identifier)
            hashes[place] = self.clashes[texts[place].as_py()] = identifier
        return hashes

    def write(self) -> tuple[list[File], list[File], bool]:
        """Files with the terms and Skolem terms that are new, and whether one has a datatype or language."""
        terms, skolems, typed = [], [], False
        if self._texts:
            ids = np.concatenate(self._texts)
            texts = self.dictionary.text_array(ids).cast(pa.string())
            typed = bool(
                pc.any(pc.and_(pc.starts_with(texts, '"'), pc.invert(pc.ends_with(texts, '"')))).as_py()
            )
            # As they came: terms that come together are alike, and take less room.
            table = pa.table([pa.array(self.store_ids(ids)), texts], schema=TERMS)
            terms = [self.store.write_table("terms", table, use_dictionary=False)]
        if self._skolems:
            unique = {s[0]: s for s in self._skolems}
            columns = zip(*(unique[i] for i in sorted(unique)), strict=True)
            table = pa.table(
                [pa.array(c, f.type) for c, f in zip(columns, SKOLEM_TERMS, strict=True)], SKOLEM_TERMS
            )
            skolems = [self.store.write_table("skolems", table)]
        return terms, skolems, typed

    def write_all(self) -> tuple[File, ...]:
        """One file with the terms of all files there are; those that nothing refers to any more among them."""
        files = self.store.manifest.terms
        return files if len(files) < 2 else merge_terms(self.store, files)

    def settle(self) -> None:
        """What was written is in the store now."""
        self._texts, self._skolems = [], []

    def all_ids(self) -> StoreIds:
        """The store ids of all terms of the engine, by its ids."""
        return self.store_ids(np.arange(len(self.dictionary), dtype=np.uint32))


def index_of(store_ids: StoreIds) -> dict[str, NDArray[Any]]:
    """The ids of terms in the store, by those of the engine, and how to find them."""
    order = order_of(store_ids)
    return {"store_ids": store_ids, "sorted_ids": store_ids[order], "sorted_places": order.astype(np.uint32)}


@dataclass(frozen=True)
class _Index:
    """Ids of the store, sorted, each with that of the engine."""

    ids: StoreIds
    places: Ids

    def find(self, ids: StoreIds) -> NDArray[np.int64]:
        """-1 for those that are not there."""
        if not len(self.ids):
            return np.full(len(ids), -1)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[at] == ids, self.places[at].astype(np.int64), -1)

    def extend(self, ids: StoreIds, places: Ids) -> _Index:
        both, all_places = np.concatenate([self.ids, ids]), np.concatenate([self.places, places])
        order = order_of(both)
        return _Index(both[order], all_places[order])


def _by_level(skolems: Sequence[Skolem]) -> Iterator[list[Skolem]]:
    """Skolem terms, each after those that it is made of."""
    own = {skolem[0]: skolem for skolem in skolems}
    needs = {i: {a for a in skolem[2] if a in own} for i, skolem in own.items()}
    users: dict[int, list[int]] = {}
    for i, arguments in needs.items():
        for argument in arguments:
            users.setdefault(argument, []).append(i)
    ready = [i for i, arguments in needs.items() if not arguments]
    while ready:
        yield [own[i] for i in ready]
        done, ready = ready, []
        for argument in done:
            for user in users.get(argument, ()):
                needs[user].discard(argument)
                if not needs[user]:
                    ready.append(user)


def merge_terms(store: Store, files: Sequence[File]) -> tuple[File, ...]:
    """The terms of files in one, each once."""
    whole = pa.concat_tables(store.read_table(f, TERMS.names) for f in files)
    ids, first = np.unique(whole["id"].to_numpy(), return_index=True)
    table = pa.table([pa.array(ids), whole["text"].take(pa.array(first))], schema=TERMS)
    return (store.write_table("terms", table, use_dictionary=False),)


def merge_skolems(store: Store, files: Sequence[File]) -> tuple[File, ...]:
    return (store.write_table("skolems", pa.concat_tables(store.read_table(f) for f in files)),)
