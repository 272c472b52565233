"""Ctrl-C at any bytecode of the package."""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import hdlog

_PACKAGE = str(Path(hdlog.__file__).parent)


class Bytecodes:
    """Counts the bytecodes of the package that the main thread executes, by function; at one of them comes an interrupt."""

    def __init__(self, function: str = "", number: int = 0) -> None:
        """`number` is that of a bytecode among those of the functions with this name."""
        self.function, self.number = function, number
        self.counts: Counter[str] = Counter()

    def run(self, work: Callable[[], object]) -> None:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            work()
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, _: str, __: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._step

    def _step(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            name = frame.f_code.co_qualname
            self.counts[name] += 1
            if name == self.function and self.counts[name] == self.number:
                signal.raise_signal(signal.SIGINT)
        return self._step


def finishes(bytecodes: Bytecodes, work: Callable[[], object]) -> bool:
    """Whether the work is done; not if an interrupt has ended it."""
    try:
        bytecodes.run(work)
    except KeyboardInterrupt:
        return False
    settle()
    return True


def settle() -> None:
    """Let an interrupt come that was too late."""
    with suppress(KeyboardInterrupt):
        time.sleep(0.02)
