"""Facts as generators make them: columns of ids, and the texts of these ids when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdlog.program.model import Predicate

Ids = NDArray[Any]
"""Numbers of terms from 0 on; integers are `identifiers.INTEGERS` and their value."""


@dataclass(frozen=True)
class Terms:
    """Terms with consecutive ids."""

    first: int
    size: int
    texts: Callable[[int, int], pa.Array]
    """N-Triples texts of the terms with these places among them, from and up to"""

    @property
    def ids(self) -> NDArray[np.uint32]:
        return np.arange(self.first, self.first + self.size, dtype=np.uint32)


@dataclass
class Dataset:
    """Facts of one benchmark; no fact is there twice."""

    name: str
    rules: str
    parameters: dict[str, Any]
    tables: dict[Predicate, list[Ids]] = field(default_factory=dict)
    blocks: list[Terms] = field(default_factory=list)

    @property
    def facts(self) -> int:
        return sum(len(columns[0]) for columns in self.tables.values())

    @property
    def terms(self) -> int:
        return sum(block.size for block in self.blocks)

    def add_terms(self, size: int, texts: Callable[[int, int], pa.Array]) -> Terms:
        """The next terms."""
        block = Terms(self.terms, size, texts)
        self.blocks.append(block)
        return block


def list_texts(texts: Sequence[str]) -> Callable[[int, int], pa.Array]:
    array = pa.array(texts, pa.string())
    return lambda low, high: array.slice(low, high - low)


def enumerate_texts(prefix: str, suffix: str) -> Callable[[int, int], pa.Array]:
    """Texts that differ in a number."""
    return lambda low, high: join_texts(prefix, number_texts(np.arange(low, high)), suffix)


def join_texts(*parts: Any) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def number_texts(numbers: NDArray[Any]) -> pa.Array:
    return pa.array(numbers).cast(pa.string())
