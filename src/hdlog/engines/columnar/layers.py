"""Arrays that grow at their end, over a first part that is kept elsewhere, as in a file, and never changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hdlog.engines.columnar.keys import extend_array


class Column:
    """Values by number. Whoever writes to it says where, and how many of them count."""

    def __init__(self, kind: DTypeLike, base: NDArray[Any] | None = None) -> None:
        self.base = np.empty(0, kind) if base is None else base
        self._own = np.empty(0, kind)

    @property
    def frozen(self) -> int:
        """How many values never change."""
        return len(self.base)

    def write(self, start: int, values: NDArray[Any]) -> None:
        """Put values from a place on."""
        self._own = extend_array(self._own, start - len(self.base), values)

    def set(self, place: int, value: Any) -> None:
        self._own[place - len(self.base)] = value

    def put(self, places: NDArray[Any], values: NDArray[Any]) -> None:
        """Values at some places, none of which is kept elsewhere."""
        self._own[places - places.dtype.type(len(self.base))] = values

    def __getitem__(self, places: NDArray[Any]) -> NDArray[Any]:
        if not len(self.base):
            return np.asarray(self._own[places])
        there = places < len(self.base)
        if there.all():
            return np.asarray(self.base[places])
        values = np.empty(len(places), self.base.dtype)
        values[there] = self.base[places[there]]
        values[~there] = self._own[places[~there] - places.dtype.type(len(self.base))]
        return values

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.base.dtype

    def since(self, start: int, end: int) -> NDArray[Any]:
        """The values from one place to another."""
        frozen = len(self.base)
        own = self._own[max(0, start - frozen) : max(0, end - frozen)]
        if start >= frozen:
            return own
        return np.concatenate([self.base[start:end], own])
