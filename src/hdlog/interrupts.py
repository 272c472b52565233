"""Ctrl-C at moments that are chosen, not between any two instructions.

Python raises KeyboardInterrupt wherever the main thread happens to be: between a kernel that has changed an array and the line that
says so, or in the middle of taking a change back. While interrupts are *held*, one that comes is only noted. Long work
asks for it with `check` wherever it can be given up, and *lets through* those that come while nothing can be spoilt. One that
nobody has asked for by the end, because all is done, comes again when the caller has been told.

Signals come to the main thread only; elsewhere all of this does nothing but `check`, which gives up work that the main
thread waits for.
"""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import ParamSpec, TypeVar

_AFTER = 0.005
"""Seconds until an interrupt that came too late comes again."""
Handler = Callable[[int, FrameType | None], object]
P = ParamSpec("P")
T = TypeVar("T")


class _State:
    """Of the process: it has one main thread, and one handler for a signal."""

    handler: Handler | None = None
    """what was there before, while interrupts are held"""
    pending = False
    open = False


_state = _State()


def _note(number: int, frame: FrameType | None) -> None:
    if not _state.open:
        _state.pending = True
        return
    # What comes through leaves the open section, so nothing after it may be cut off as well.
    _state.open = False
    _pass_on(number, frame)
    _state.open = True


def _pass_on(number: int, frame: FrameType | None) -> None:
    _state.pending = False
    assert _state.handler is not None, "there was a handler before"
    _state.handler(number, frame)


class Guard:
    """Holds interrupts between enter and exit.

    After an error they come as ever from the exit on. Otherwise they wait until the guard itself goes. If only a variable of a
    function has it, that is when the function has returned: whoever called it gets the result, and then the interrupt.
    """

    _outermost = False
    _was_open = False

    def __enter__(self) -> Guard:
        if threading.current_thread() is not threading.main_thread():
            return self
        if _state.handler is not None:
            self._was_open, _state.open = _state.open, False
        elif callable(signal.getsignal(signal.SIGINT)):
            # From here on nothing is raised, only noted; up to here, nothing has begun.
            handler = signal.signal(signal.SIGINT, _note)
            assert callable(handler), "it was there a moment ago"
            _state.handler = handler
            self._outermost = True
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            _state.pending = False  # another thread may have raised it
        if not self._outermost:
            if self._was_open:
                _state.open = True
        elif kind is not None:
            self._release()
            self.__class__ = _Released  # type: ignore[assignment]

    def __del__(self) -> None:
        self._release()

    def _release(self) -> None:
        """Give the handler back, as the last thing: what is raised in `__del__` is lost."""
        if not self._outermost:
            return
        self._outermost = False
        handler, _state.handler, _state.open = _state.handler, None, False
        if _state.pending:
            _send_again()
        _state.pending = False
        try:
            signal.signal(signal.SIGINT, handler)
        except KeyboardInterrupt:
            # It came in that very moment.
            signal.signal(signal.SIGINT, _note)
            _send_again()
            signal.signal(signal.SIGINT, handler)


class _Released:
    """A guard that has nothing left to do, so that no code of ours runs when it goes: an interrupt there would be lost."""


def _send_again() -> None:
    """Interrupt the main thread, a moment from now."""
    main = threading.main_thread().ident
    assert main is not None, "the main thread runs"
    with suppress(RuntimeError):  # no threads any more: the interpreter ends
        _thread.start_new_thread(_send, (main,))


def _send(main: int) -> None:
    time.sleep(_AFTER)
    signal.pthread_kill(main, signal.SIGINT)


def check() -> None:
    """Raise here, where the work can be given up, what has come while interrupts were held."""
    if _state.pending:
        if threading.current_thread() is threading.main_thread():
            _pass_on(signal.SIGINT, None)
        else:
            raise KeyboardInterrupt


@contextmanager
def let_through() -> Iterator[None]:
    """Nothing in here changes what others see: an interrupt may come at any moment, as ever."""
    if _state.handler is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    check()
    before = _state.open
    _state.open = True
    try:
        yield
    except SystemError as error:
        # What a compiled function says that was interrupted on its way out.
        if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
    finally:
        _state.open = before


@contextmanager
def hold_back() -> Iterator[None]:
    """Of what may be interrupted, a part that may not: what comes meanwhile is raised at its end."""
    if not _state.open or threading.current_thread() is not threading.main_thread():
        yield
        return
    _state.open = False
    try:
        yield
    finally:
        _state.open = True
    check()


def take() -> bool:
    """Whether an interrupt has come that nobody has asked for; it will not come again."""
    was_pending, _state.pending = _state.pending, False
    return was_pending
