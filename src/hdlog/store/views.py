"""Views in the image of a store: their rows with counts, in every order that joins have asked for, to be mapped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.facts import Counts, Facts, Order
from hdlog.engines.columnar.kernels import Keys
from hdlog.engines.columnar.keys import PairTable
from hdlog.store.disk import File
from hdlog.store.segments import map_segment, write_segment
from hdlog.store.store import Store

VIEWS = "views"
"""What the names of segments with views begin with."""
_PLAIN: Order = ((), ())
"""Stands for the order that facts have of themselves."""
Part = tuple[int, Order, Keys, Counts | None]
"""Of one view, by its number: its rows in some order."""


class MappedViews:
    """The views of an image, by their numbers."""

    def __init__(self, store: Store, files: Mapping[str, File]) -> None:
        self._parts: dict[int, dict[Order, tuple[Keys, Counts | None]]] = {}
        self._counted: dict[int, dict[tuple[int, ...], int]] = {}
        for name, file in files.items():
            if name.startswith(VIEWS):
                self._add(map_segment(store, file))

    def _add(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        content = json.loads(arrays["content"].tobytes())
        for place, (number, left, right, is_counted) in enumerate(content["parts"]):
            counts = arrays[f"counts-{place}"] if is_counted else None
            order = (tuple(left), tuple(right))
            self._parts.setdefault(number, {})[order] = (arrays[f"keys-{place}"], counts)
        for number, bound, values in content["counted"]:
            self._counted.setdefault(number, {})[tuple(bound)] = values

    def find(self, number: int, pairs: PairTable, arity: int) -> Facts | None:
        parts = self._parts.get(number)
        if parts is None:
            return None
        indexes = {order: part for order, part in parts.items() if order != _PLAIN}
        return Facts(pairs, arity, *parts[_PLAIN], indexes, dict(self._counted.get(number, {})))


def write_views(store: Store, views: Iterable[tuple[int, Facts, Iterable[Order]]]) -> File:
    """Views with their numbers, in their own order and in others."""
    parts: list[Part] = []
    counted = []
    for number, facts, orders in views:
        parts.append((number, _PLAIN, facts.keys, facts.counts))
        parts += [(number, order, *facts.index(order)) for order in orders]
        counted += [(number, bound, values) for bound, values in facts.counted.items()]
    return _write(store, parts, counted)


def write_orders(store: Store, orders: Iterable[tuple[int, Facts, Iterable[Order]]]) -> File:
    """Views of the image in other orders, which somebody had to make."""
    parts = [(number, order, *facts.index(order)) for number, facts, several in orders for order in several]
    return _write(store, parts, [])


def _write(store: Store, parts: list[Part], counted: list[tuple[int, tuple[int, ...], int]]) -> File:
    content = {
        "parts": [(number, *order, counts is not None) for number, order, _, counts in parts],
        "counted": counted,
    }
    text = np.frombuffer(json.dumps(content).encode(), np.uint8)
    return write_segment(store, {"content": [text], **dict(_arrays(parts))})


def _arrays(parts: Iterable[Part]) -> Iterator[tuple[str, list[NDArray[Any]]]]:
    for place, (_, _, keys, counts) in enumerate(parts):
        yield f"keys-{place}", [keys]
        if counts is not None:
            yield f"counts-{place}", [counts]
