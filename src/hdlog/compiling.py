"""Loops that are compiled when that pays: by numba, with everything kept on disk.

Importing numba and reading the compiled loops takes over a second, so neither happens before there is work. A kernel that is called with
little to do runs as the Python it is written in; with much to do, or after many small calls, it is compiled, or read from where an
earlier process has kept it. `python -m hdlog.operations.prepare` compiles all of them beforehand.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from hdlog import interrupts

P = ParamSpec("P")
Result = TypeVar("Result")
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True}
_AT_ONCE = os.environ.get("HDLOG_KERNELS") == "compiled"
_FIRST = 30_000
"""elements that kernels are given, all together, before numba is imported; Python takes a microsecond or so for one"""
_EACH = 2_000
"""likewise one kernel, before it is compiled"""
_WORTH_A_WORD = 2.0
"""seconds"""
_kernels: list[Kernel[Any, Any]] = []
_lock = threading.RLock()


class _Work:
    elements = 0
    compiled = 0
    told = False


class Kernel(Generic[P, Result]):
    """A function over arrays, written in the part of Python that numba compiles."""

    def __init__(
        self, function: Callable[P, Result], signatures: tuple[str, ...], inner: bool, work: int | None = None
    ) -> None:
        """`work`: the argument that has what is to be done, where others are tables of whatever size."""
        self.python = function
        self._work = slice(work, None if work is None else work + 1)
        self.signatures = signatures
        self.__doc__, self.__name__ = function.__doc__, function.__name__
        self._dispatcher: Any = None
        self._elements = 0
        self._run: Callable[P, Result] = function if inner and not _AT_ONCE else self._weigh
        _kernels.append(self)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> Result:
        return self._run(*arguments, **named)

    @property
    def is_compiled(self) -> bool:
        """Whether it runs at full speed without further ado."""
        return self._dispatcher is not None

    def _weigh(self, *arguments: P.args, **named: P.kwargs) -> Result:
        """Run it as Python while there is little to do."""
        elements = 8 + sum(a.size for a in arguments[self._work] if isinstance(a, np.ndarray))
        _Work.elements += elements
        self._elements += elements
        if _AT_ONCE or (_Work.elements > _FIRST and self._elements > _EACH):
            return self.compiled(*arguments, **named)  # type: ignore[no-any-return]
        with np.errstate(over="ignore"):
            return self.python(*arguments, **named)

    @property
    def compiled(self) -> Any:
        """Compiled, or read from disk; an interrupt in the midst of that would be lost in a callback, so it comes afterwards."""
        with interrupts.hold_back(), _lock:
            if self._dispatcher is None:
                started = time.perf_counter()
                self._dispatcher = self._run = self._compile()
                _tell_if_long(time.perf_counter() - started)
        return self._dispatcher

    def _compile(self) -> Any:
        from numba import njit

        code = self.python
        assert isinstance(code, FunctionType)
        # Compiled code calls compiled code: kernels it names are replaced by what numba knows.
        names = {n: code.__globals__[n] for n in code.__code__.co_names if n in code.__globals__}
        others = {n: k.compiled for n, k in names.items() if isinstance(k, Kernel)}
        twin = FunctionType(code.__code__, {**code.__globals__, **others}, code.__name__, code.__defaults__)
        twin.__qualname__, twin.__module__ = code.__qualname__, code.__module__
        return njit(list(self.signatures), **_OPTIONS)(twin)


def kernel(*signatures: str, work: int | None = None) -> Callable[[Callable[P, Result]], Kernel[P, Result]]:
    """A kernel with its types, each as numba writes them: what it returns, then what it is given."""
    return lambda function: Kernel(function, signatures, inner=False, work=work)


def inner(*signatures: str) -> Callable[[Callable[P, Result]], Kernel[P, Result]]:
    """A part of kernels, which is compiled with them."""
    return lambda function: Kernel(function, signatures, inner=True)


def _tell_if_long(seconds: float) -> None:
    """Say once what takes so long on a new machine."""
    _Work.compiled += 1
    if seconds > _WORTH_A_WORD and not _Work.told:
        _Work.told = True
        print("compiling loops for this machine; they are kept for the next time", file=sys.stderr)


def compile_known() -> int:
    """Compile every kernel that was imported; how many there are."""
    for each in _kernels:
        assert each.compiled is not None
    return len(_kernels)
