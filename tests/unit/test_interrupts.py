"""Ctrl-C while interrupts are held, let through, asked for, and too late."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from hdlog import interrupts


@pytest.fixture(autouse=True)
def heeded() -> Iterator[None]:
    """Whoever started the tests may have had signals ignored, as a shell does for what runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_a_held_interrupt_waits_until_somebody_asks() -> None:
    reached = []

    def work() -> None:
        with interrupts.Guard():
            interrupt()
            reached.append("after the signal")
            interrupts.check()
            reached.append("after the check")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached == ["after the signal"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_nobody_asked_for_comes_after_the_end() -> None:
    with interrupts.Guard():
        interrupt()
        done = True
    assert done
    with pytest.raises(KeyboardInterrupt):
        time.sleep(5)


def test_one_that_is_taken_does_not_come_again() -> None:
    with interrupts.Guard():
        interrupt()
        assert interrupts.take()
        assert not interrupts.take()
    time.sleep(0.02)


def test_where_nothing_can_be_spoilt_it_comes_through_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), interrupts.Guard(), interrupts.let_through():
        interrupt()
    with interrupts.Guard():
        with interrupts.let_through(), interrupts.Guard():
            interrupt()
        assert interrupts.take()


def test_a_part_that_may_not_be_interrupted_ends_first() -> None:
    reached = []

    def work() -> None:
        with interrupts.hold_back():
            interrupt()
            reached.append("its end")
        reached.append("more")

    with pytest.raises(KeyboardInterrupt), interrupts.Guard(), interrupts.let_through():
        work()
    assert reached == ["its end"]


def test_one_that_came_before_is_passed_on_where_interrupts_are_let_through() -> None:
    with interrupts.Guard():
        interrupt()
        with pytest.raises(KeyboardInterrupt), interrupts.let_through():
            raise AssertionError("the interrupt was forgotten")
        interrupts.check()


def test_a_second_interrupt_while_the_first_is_dealt_with_does_no_harm() -> None:
    cleaned = []

    def work() -> None:
        with interrupts.Guard():
            try:
                interrupt()
                interrupts.check()
            finally:
                interrupt()
                cleaned.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    time.sleep(0.02)
    assert cleaned == [True]


def test_a_handler_of_the_users_own_is_called_and_put_back() -> None:
    calls = []

    def handler(number: int, _: object) -> None:
        calls.append(number)

    before = signal.signal(signal.SIGINT, handler)
    try:
        with interrupts.Guard():
            interrupt()
            assert calls == []
            interrupts.check()
            assert calls == [signal.SIGINT]
            with interrupts.let_through():
                interrupt()
                interrupt()
            assert len(calls) == 3
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_that_the_main_one_waits_for_gives_up() -> None:
    found: list[BaseException] = []

    def work() -> None:
        try:
            while True:
                interrupts.check()
                time.sleep(0.001)
        except KeyboardInterrupt as error:
            found.append(error)

    with interrupts.Guard():
        thread = threading.Thread(target=work)
        thread.start()
        interrupt()
        thread.join(5)
        assert interrupts.take()
    assert len(found) == 1


def test_where_interrupts_are_ignored_they_stay_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts.Guard():
            interrupt()
            interrupts.check()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_burst_of_interrupts_is_never_lost_in_a_destructor() -> None:
    script = """
import os, signal, threading, time
from hdlog import interrupts

def work():
    guard = interrupts.Guard()
    with guard:
        time.sleep(0.0005)
    return 1

def burst(pid):
    for _ in range(300):
        os.kill(pid, signal.SIGINT)
        time.sleep(0.001)

child = os.fork()
if child == 0:
    burst(os.getppid())
    os._exit(0)
while os.waitpid(child, os.WNOHANG)[0] == 0:
    try:
        for _ in range(100):
            work()
    except KeyboardInterrupt:
        pass
signal.signal(signal.SIGINT, signal.SIG_IGN)
time.sleep(0.05)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "Exception ignored" not in run.stderr
    assert "RuntimeError" not in run.stderr
