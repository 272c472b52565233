"""Terms that are kept elsewhere, such as in a store, until somebody asks for their texts."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


class TermSource(Protocol):
    """Terms that are kept elsewhere, such as in a store, with numbers from 0 on."""

    typed: bool
    """whether there may be a literal with a datatype or language among them"""

    def __len__(self) -> int: ...

    def find(self, texts: pa.Array) -> NDArray[np.int64]:
        """The number of each, -1 for those that are not there."""
        ...

    def take(self, numbers: NDArray[np.int64] | None = None) -> pa.Array:
        """The texts with these numbers, or all, as large strings."""
        ...
