"""The image of a store: the terms and tables of the embedded engine as it has them in memory, to be mapped instead of read and sorted.

It is made from the rest of the store, and made again where it is missing. What came after it is replayed (`store/columnar.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.columnar.facts import Counts, Facts, Order, keys_of
from hdlog.engines.columnar.kernels import Flags, Keys
from hdlog.engines.columnar.kernels.sorting import sort
from hdlog.engines.columnar.table import Table
from hdlog.store.disk import File
from hdlog.store.segments import Arrays, Parts, map_segment, write_segment
from hdlog.store.store import Store

TABLES = "tables"


@dataclass(frozen=True)
class TableImage:
    keys: Keys
    supports: tuple[Flags, Counts, Counts]
    indexes: dict[Order, Keys]


INDEXES = "indexes-"
"""What the names of segments begin with that have indexes which were made later."""


class MappedTables:
    """The tables of an image, by the numbers of their predicates."""

    def __init__(self, store: Store, files: Mapping[str, File]) -> None:
        arrays = map_segment(store, files[TABLES])
        self._later: dict[int, dict[Order, Keys]] = {}
        for name, file in files.items():
            if name.startswith(INDEXES):
                self._add_indexes(map_segment(store, file))
        self._arrays = arrays
        self._numbers = arrays["numbers"]
        self._starts = arrays["starts"]
        orders = json.loads(arrays["orders"].tobytes() or b"[]")
        self._orders: list[Order] = [(tuple(left), tuple(right)) for left, right in orders]

    def _add_indexes(self, arrays: Arrays) -> None:
        entries = json.loads(arrays["entries"].tobytes())
        for number, (left, right), start, rows in entries:
            order = (tuple(left), tuple(right))
            self._later.setdefault(number, {})[order] = arrays["keys"][start : start + rows]

    def find(self, number: int) -> TableImage | None:
        place = int(np.searchsorted(self._numbers, number))
        if place == len(self._numbers) or self._numbers[place] != number:
            return None
        part = slice(int(self._starts[place]), int(self._starts[place + 1]))
        rows = part.stop - part.start
        supports = (
            self._arrays["asserted"][part],
            self._counts("nonrecursive", place, rows),
            self._counts("recursive", place, rows),
        )
        indexes = dict(self._later.get(number, {}))
        first, last = (int(np.searchsorted(self._arrays["index_tables"], n)) for n in (place, place + 1))
        for i in range(first, last):
            start = int(self._arrays["index_starts"][i])
            order = self._orders[int(self._arrays["index_orders"][i])]
            indexes[order] = self._arrays["index_keys"][start : start + rows]
        return TableImage(self._arrays["keys"][part], supports, indexes)

    def _counts(self, name: str, place: int, rows: int) -> Counts:
        """A support; where nobody has any it is not kept."""
        start = int(self._arrays[f"{name}_starts"][place])
        return np.zeros(rows, np.int64) if start < 0 else self._arrays[name][start : start + rows]


def write_tables(store: Store, tables: Iterable[tuple[int, Table]]) -> File:
    """The tables of predicates by rising numbers, each in one run."""
    collector = _Collector()
    for number, table in tables:
        collector.add(number, table)
    return write_segment(store, collector.arrays())


def write_indexes(store: Store, indexes: Sequence[tuple[int, Order, Keys]]) -> File:
    """Indexes of tables of the image that somebody had to make."""
    entries, start = [], 0
    for number, order, keys in indexes:
        entries.append((number, order, start, len(keys)))
        start += len(keys)
    text = np.frombuffer(json.dumps(entries).encode(), np.uint8)
    return write_segment(store, {"entries": [text], "keys": [keys for _, _, keys in indexes]})


class _Collector:
    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._rows: list[int] = []
        self._parts: dict[str, list[NDArray[Any]]] = {
            name: [] for name in ("keys", "asserted", "nonrecursive", "recursive", "index_keys")
        }
        self._sizes = dict.fromkeys(self._parts, 0)
        self._starts: dict[str, list[int]] = {"nonrecursive": [], "recursive": [], "index_keys": []}
        self._orders: dict[Order, int] = {}
        self._index_tables: list[int] = []
        self._index_orders: list[int] = []

    def add(self, number: int, table: Table) -> None:
        facts = table.facts()
        if not len(facts):
            return
        place = len(self._numbers)
        self._numbers.append(number)
        self._rows.append(len(facts))
        asserted, fixed, recursive = _supports(table, facts)
        self._put("keys", facts.keys)
        self._put("asserted", asserted)
        for name, counts in (("nonrecursive", fixed), ("recursive", recursive)):
            self._starts[name].append(self._put(name, counts) if counts.any() else -1)
        for order in table.indexes:
            self._index_tables.append(place)
            self._index_orders.append(self._orders.setdefault(order, len(self._orders)))
            self._starts["index_keys"].append(self._put("index_keys", _index_keys(table, facts, order)))

    def _put(self, name: str, array: NDArray[Any]) -> int:
        """Where an array begins among those of its name."""
        start = self._sizes[name]
        self._parts[name].append(array)
        self._sizes[name] += len(array)
        return start

    def arrays(self) -> Parts:
        kinds = {"keys": np.uint64, "asserted": np.uint8, "index_keys": np.uint64}
        orders = json.dumps([[list(left), list(right)] for left, right in self._orders]).encode()
        single: dict[str, NDArray[Any]] = {
            "numbers": np.array(self._numbers, np.int64),
            "starts": np.cumsum([0, *self._rows]),
            "orders": np.frombuffer(orders, np.uint8),
            "index_tables": np.array(self._index_tables, np.int64),
            "index_orders": np.array(self._index_orders, np.int64),
            "index_starts": np.array(self._starts["index_keys"], np.int64),
            "nonrecursive_starts": np.array(self._starts["nonrecursive"], np.int64),
            "recursive_starts": np.array(self._starts["recursive"], np.int64),
        }
        empty = {name: np.empty(0, kinds.get(name, np.int64)) for name in self._parts}
        several = {name: [empty[name], *parts] for name, parts in self._parts.items()}
        return {**{name: [array] for name, array in single.items()}, **several}


def _supports(table: Table, facts: Facts) -> tuple[Flags, Counts, Counts]:
    """Of all live facts; as they are where these are all there is."""
    if len(table.runs) == 1 and len(facts) == len(table.runs[0]):
        run = table.runs[0]
        return run.asserted, run.nonrecursive, run.recursive
    asserted, fixed, recursive = table.supports_of(facts.keys)
    return asserted.astype(np.uint8), fixed, recursive


def _index_keys(table: Table, facts: Facts, order: Order) -> Keys:
    runs = table.indexes[order].runs
    if len(runs) == 1 and len(runs[0]) == len(facts) and not len(runs[0].dead):
        return runs[0].keys
    return sort(keys_of(table.pairs, facts.columns(), order, len(facts)))


def write_terms(store: Store, engine: ColumnarEngine, index: Arrays) -> File:
    """All terms and pairs of an engine, with the ids that terms have in the store (`term_ids.index_of`)."""
    pairs, pair_slots = engine.pairs.freeze()
    arrays = {**engine.dictionary.freeze(), "pairs": pairs, "pair_slots": pair_slots, **index}
    return write_segment(store, {name: [array] for name, array in arrays.items()})


def map_terms(store: Store, file: File, engine: ColumnarEngine) -> Arrays:
    """Have an engine know the terms and pairs of an image; what else there is."""
    arrays = map_segment(store, file)
    others = ("pairs", "pair_slots", "store_ids", "sorted_ids", "sorted_places")
    engine.start_from(
        {name: array for name, array in arrays.items() if name not in others},
        (arrays["pairs"], arrays["pair_slots"]),
    )
    return arrays
