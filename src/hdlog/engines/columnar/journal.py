"""What an update has changed, so that it can be taken back whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Journal:
    """Old values of arrays changed in place, and how to restore what was replaced."""

    def __init__(self) -> None:
        self.number = 0
        self._undo: list[Callable[[], None]] = []

    def begin(self) -> None:
        self.number += 1
        self._undo = []

    def note(self, restore: Callable[[], None]) -> None:
        self._undo.append(restore)

    def save(self, array: NDArray[Any], at: NDArray[np.int64], born: int) -> None:
        """Remember array[at]; not needed where the array was made by this very update."""
        if born != self.number:
            old = array[at]

            def restore() -> None:
                array[at] = old

            self._undo.append(restore)

    def commit(self) -> None:
        self._undo = []

    def roll_back(self) -> None:
        while self._undo:
            self._undo[-1]()
            self._undo.pop()
