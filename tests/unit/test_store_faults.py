"""Faults at every call that a store makes to the file system: the store is the old version or the new one, whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from hdlog.errors import HdlogError
from tests.crashes import (
    ENDED,
    POINTS,
    Fault,
    Scene,
    check,
    count_calls,
    end_after,
    end_before,
    end_within,
    in_child,
    memory_folder,
    refuse,
    state_of,
)

WORKS = ("update", "rules", "compact", "rollback", "materialise", "load")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with TemporaryDirectory(dir=memory_folder()) as folder:
        yield Scene(Path(folder))


def some_of(calls: int) -> list[int]:
    """Numbers of calls: the first and the last ones, and some between; all, where HDLOG_FAULTS says so."""
    if calls <= 8 or os.environ.get("HDLOG_FAULTS") == "all":
        return list(range(1, calls + 1))
    return sorted({1, 2, calls // 3, calls // 2, calls - 1, calls})


@pytest.mark.parametrize("name", WORKS)
def test_a_process_that_ends_at_any_call(scene: Scene, name: str) -> None:
    allowed = [state_of(scene.store), scene.after(name)]
    seen = set()
    for point in POINTS:
        with scene.copy() as store:
            calls = count_calls(point, scene.works(store)[name])
        endings = [end_before, end_after, *([end_within] if point == "write" else [])]
        for number in some_of(calls):
            for ending in endings:
                with scene.copy() as store:
                    assert in_child(scene.works(store)[name], Fault(point, number, ending)) == ENDED
                    seen.add(check(scene, store, allowed))
    assert seen == {0, 1} or (name == "compact" and seen == {0})


@pytest.mark.parametrize("name", WORKS)
def test_a_call_that_the_system_refuses(scene: Scene, name: str) -> None:
    allowed = [state_of(scene.store), scene.after(name)]
    for point in POINTS:
        with scene.copy() as store:
            calls = count_calls(point, scene.works(store)[name])
        for number in some_of(calls):
            with scene.copy() as store:
                fault = Fault(point, number, refuse)
                with fault.within(), pytest.raises((OSError, HdlogError)):
                    scene.works(store)[name]()
                assert not list(store.rglob("*.part"))
                check(scene, store, allowed)


def test_a_state_that_is_neither_is_found(scene: Scene) -> None:
    with scene.copy() as store, pytest.raises(AssertionError, match="neither"):
        check(scene, store, [{}])
