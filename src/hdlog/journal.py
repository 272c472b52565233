"""What an update has changed, so that it can be taken back whole: the one way to do so, for engines and all above them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray


class Journal:
    """How to restore what an update has replaced, in the order in which it was; the last is restored first."""

    def __init__(self) -> None:
        self.number = 0
        """of the update"""
        self._undo: list[Callable[[], None]] = []

    def begin(self) -> None:
        self.number += 1
        self._undo = []

    def note(self, restore: Callable[[], None]) -> None:
        """Before a change: what takes it back."""
        self._undo.append(restore)

    def save(self, array: NDArray[Any], at: NDArray[Any], born: int) -> None:
        """Before array[at] is overwritten; not needed where the array was made by this very update."""
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
