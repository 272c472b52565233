"""What engines have in common where facts come in and go out: terms, and the numbers they work with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[Any]
"""What terms are to an engine: numbers of 32 or 64 bits."""


class Dictionary(Protocol):
    """Terms, as N-Triples texts, and their ids."""

    def encode(self, texts: Iterable[str]) -> Ids:
        """The id of each text; new texts get new ids."""

    def encode_integers(self, values: NDArray[np.int64]) -> Ids: ...

    def text(self, identifier: int) -> str: ...

    def texts(self, ids: Ids) -> list[str]: ...

    def integer_values(self, ids: Ids) -> NDArray[np.int64] | None:
        """The numbers that ids stand for, if all of them are integers of 64 bits."""


class Encoder(Protocol):
    """The part of an engine that takes facts in."""

    @property
    def dictionary(self) -> Dictionary: ...

    def facts_from_columns(self, columns: Sequence[Ids], rows: int) -> Any:
        """Each row once."""
