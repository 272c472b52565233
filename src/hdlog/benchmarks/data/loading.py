"""A dataset in the embedded engine, without a detour through files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdlog.benchmarks.data.dataset import Dataset
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.program.model import Predicate
from hdlog.reading.identifiers import INTEGERS

_BATCH = 1 << 20


class DatasetTerms:
    """The terms of a dataset, made when somebody asks for them."""

    typed = False

    def __init__(self, data: Dataset) -> None:
        self._data = data

    def __len__(self) -> int:
        return self._data.terms

    def find(self, texts: pa.Array) -> NDArray[np.int64]:
        """By making all of them, some at a time: it is asked for the constants of rules, once."""
        wanted = texts.cast(pa.string())
        ids = np.full(len(texts), -1, np.int64)
        for block in self._data.blocks:
            for low in range(0, block.size, _BATCH):
                made = block.texts(low, min(low + _BATCH, block.size))
                place = pc.index_in(wanted, made).fill_null(-1).to_numpy(zero_copy_only=False)
                there = place >= 0
                ids[there] = block.first + low + place[there]
            if (ids >= 0).all():
                break
        return ids

    def take(self, numbers: NDArray[np.int64] | None = None) -> pa.Array:
        chosen = np.arange(len(self)) if numbers is None else numbers
        texts = np.empty(len(chosen), object)
        for block in self._data.blocks:
            inside = (chosen >= block.first) & (chosen < block.first + block.size)
            if inside.any():
                places = chosen[inside] - block.first
                low = int(places.min())
                made = block.texts(low, int(places.max()) + 1)
                texts[inside] = made.take(pa.array(places - low)).to_pylist()
        return pa.array(texts, pa.large_string())


def load(engine: ColumnarEngine, data: Dataset) -> dict[Predicate, Any]:
    """The facts of a dataset; the engine must have no terms yet."""
    lean_on(engine, data)
    return encode_columns(engine, data.tables)


def lean_on(engine: ColumnarEngine, data: Dataset) -> None:
    """Have an engine know the terms of a dataset."""
    engine.dictionary.lean_on(DatasetTerms(data))


def encode_columns(
    engine: ColumnarEngine, tables: Mapping[Predicate, Sequence[NDArray[Any]]]
) -> dict[Predicate, Any]:
    """Columns of ids, of terms that the engine knows or of integers, as facts."""
    return {
        predicate: engine.facts_from_columns([_ids(engine, c) for c in columns], len(columns[0]))
        for predicate, columns in tables.items()
    }


def _ids(engine: ColumnarEngine, column: NDArray[Any]) -> NDArray[np.uint32]:
    if column.dtype == np.uint32:
        return column
    return engine.dictionary.encode_integers(column - INTEGERS)
