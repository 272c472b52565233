"""Loops that are compiled when that pays, with everything kept on disk.

A kernel that is called with little to do runs as the Python it is written in; with much to do, or after many small calls, its machine code is loaded,
or made first, where no earlier process has kept it. `python -m hdlog.operations.prepare` makes all of them beforehand.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from hdlog import interrupts

P = ParamSpec("P")
Result = TypeVar("Result")
_AT_ONCE = os.environ.get("HDLOG_KERNELS") == "compiled"
_NEVER = os.environ.get("NUMBA_DISABLE_JIT", "0") == "1"
_FIRST = 10_000
"""elements that kernels are given, all together, before machine code is looked for; Python takes a microsecond or so for one"""
_EACH = 500
"""likewise one kernel, before its own is loaded"""
_WORTH_A_WORD = 2.0
"""seconds"""
_kernels: list[Kernel[Any, Any]] = []
_lock = threading.RLock()


class _Work:
    elements = 0
    told = False


class Kernel(Generic[P, Result]):
    """A function over arrays, written in the part of Python that numba compiles. It allocates nothing."""

    def __init__(
        self, function: Callable[P, Result], signatures: tuple[str, ...], inner: bool, work: int | None = None
    ) -> None:
        """`work`: the argument that has what is to be done, where others are tables of whatever size."""
        self.python = function
        self.is_inner = inner
        self._work = slice(work, None if work is None else work + 1)
        self.signatures = signatures
        """several differ in the type of the first argument"""
        self.__doc__, self.__name__ = function.__doc__, function.__name__
        self._elements = 0
        self.is_compiled = False
        """whether it runs at full speed without further ado"""
        self._dispatcher: Any = None
        self._run: Callable[P, Result] = function if _NEVER or (inner and not _AT_ONCE) else self._weigh
        _kernels.append(self)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> Result:
        return self._run(*arguments, **named)

    def _weigh(self, *arguments: P.args, **named: P.kwargs) -> Result:
        """Run it as Python while there is little to do."""
        elements = 8 + sum(a.size for a in arguments[self._work] if isinstance(a, np.ndarray))
        _Work.elements += elements
        self._elements += elements
        if _AT_ONCE or (_Work.elements > _FIRST and self._elements > _EACH):
            self.load()
            return self._run(*arguments, **named)
        with np.errstate(over="ignore"):
            return self.python(*arguments, **named)

    def load(self) -> None:
        """Have its machine code; an interrupt in the midst of that would be lost in a callback, so it comes afterwards."""
        with interrupts.hold_back(), _lock:
            if not self.is_compiled and not _NEVER:
                functions = [self._load(signature) for signature in self.signatures]
                self._run = functions[0] if len(functions) == 1 else _choose(functions, self.signatures)
                self.is_compiled = True

    def _load(self, signature: str) -> Callable[..., Any]:
        from hdlog.compiling.loading import find_code, load

        fingerprint = "\n".join([signature, *self._describe()])
        return load(*find_code(self.__name__, fingerprint, lambda name: self._make(name, signature)))

    def _make(self, name: str, signature: str) -> bytes:
        from hdlog.compiling.making import make

        started = time.perf_counter()
        code = make(name, self._twin(), signature)
        _tell_if_long(time.perf_counter() - started)
        return code

    def _describe(self) -> Iterator[str]:
        """All that its machine code depends on."""
        code = self.python.__code__
        yield repr((code.co_code, code.co_consts, code.co_names, code.co_varnames))
        for name, value in self._globals():
            if isinstance(value, Kernel):
                yield f"{name}: {value.signatures}"
                yield from value._describe()
            elif isinstance(value, np.ndarray):
                yield f"{name}: {value.dtype} {value.tobytes()!r}"
            elif isinstance(value, int | float | np.generic):
                yield f"{name}: {value!r}"

    def _globals(self) -> list[tuple[str, Any]]:
        code = self.python
        assert isinstance(code, FunctionType)
        return [(n, code.__globals__[n]) for n in code.__code__.co_names if n in code.__globals__]

    def _twin(self) -> FunctionType:
        """The function for numba: kernels that it names are replaced by what numba knows."""
        code = self.python
        assert isinstance(code, FunctionType)
        others = {n: k.dispatcher for n, k in self._globals() if isinstance(k, Kernel)}
        twin = FunctionType(code.__code__, {**code.__globals__, **others}, code.__name__, code.__defaults__)
        twin.__qualname__, twin.__module__ = code.__qualname__, code.__module__
        return twin

    @property
    def dispatcher(self) -> Any:
        """What numba compiles into other kernels."""
        if self._dispatcher is None:
            from hdlog.compiling.making import make_part

            self._dispatcher = make_part(self._twin(), self.signatures)
        return self._dispatcher


def _choose(functions: list[Callable[..., Any]], signatures: tuple[str, ...]) -> Callable[..., Any]:
    """One of several functions by the type of the first argument."""
    kinds = [signature.partition("(")[2].partition("[")[0] for signature in signatures]
    by_type = dict(zip(map(np.dtype, kinds), functions, strict=True))
    return lambda first, *others: by_type[first.dtype](first, *others)


def kernel(*signatures: str, work: int | None = None) -> Callable[[Callable[P, Result]], Kernel[P, Result]]:
    """A kernel with its types, each as numba writes them: what it returns, then what it is given."""
    return lambda function: Kernel(function, signatures, inner=False, work=work)


def inner(*signatures: str) -> Callable[[Callable[P, Result]], Kernel[P, Result]]:
    """A part of kernels, which is compiled with them."""
    return lambda function: Kernel(function, signatures, inner=True)


def _tell_if_long(seconds: float) -> None:
    """Say once what takes so long on a new machine."""
    if seconds > _WORTH_A_WORD and not _Work.told:
        _Work.told = True
        print("compiling loops for this machine; they are kept for the next time", file=sys.stderr)


def compile_known() -> int:
    """Load every kernel that was imported; how many there are."""
    known = [each for each in _kernels if not each.is_inner]
    for each in known:
        each.load()
    return len(known)
