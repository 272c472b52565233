"""Faults at every call that a store makes to the file system: the store is the old version or the new one, whole."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import hdlog
from hdlog.errors import HdlogError
from hdlog.operations.stores import log, verify
from hdlog.operations.work import Settings
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


@pytest.mark.parametrize("name", WORKS)
def test_a_disk_that_is_full(scene: Scene, name: str) -> None:
    """The system itself refuses: no file may have more than so many bytes."""
    before, after = state_of(scene.store), scene.after(name)
    for most in (0, 200, 1_000, 4_000):
        with scene.copy() as store:

            def work(store: Path = store, most: int = most) -> None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
                scene.works(store)[name]()

            status = in_child(work)
            assert check(scene, store, [before, after]) == (1 if status == 0 else 0)


@pytest.mark.parametrize("name", ["update", "rules", "compact", "rollback"])
def test_a_store_that_may_only_be_read(scene: Scene, name: str) -> None:
    before, after = state_of(scene.store), scene.after(name)
    with scene.copy() as store:
        for path in (store, *store.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        for parent in store.parents[:2]:
            parent.chmod(0o755)

        def work() -> None:
            if os.getuid() == 0:
                os.setuid(65534)  # to whom permissions apply
            scene.works(store)[name]()

        assert in_child(work) == 1
        for path in (store, *store.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        assert check(scene, store, [before, after]) == 0


def test_a_clock_that_is_set_back(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    with scene.copy() as store:
        monkeypatch.setattr(time, "time", lambda: 1_000_000.0)
        scene.works(store)["update"]()
        scene.works(store)["rules"]()
        versions = [entry["version"] for entry in log(store)]
        assert versions == sorted(versions, reverse=True)
        scene.works(store)["rollback"]()
        scene.works(store)["compact"]()
        verify(store, Settings(), deep=True)


def test_a_reader_during_a_thousand_updates(scene: Scene) -> None:
    """It has the version that it opened, to the end."""
    with scene.copy() as store, hdlog.open(store, read_only=True) as reader, hdlog.open(store) as writer:
        before = {p: set(reader.facts(p)) for p in reader.counts()}
        with hdlog.open(store, read_only=True) as lazy:  # which looks only at the end
            for number in range(500):
                writer.update(
                    add=[("edge", f"new{number}", "b1")], delete=[("edge", f"new{number - 1}", "b1")]
                )
                change = {"add" if number % 2 else "delete": [("edge", "b1", "b2")]}
                writer.update(**change)
            assert {p: set(lazy.facts(p)) for p in lazy.counts()} == before
        assert {p: set(reader.facts(p)) for p in reader.counts()} == before
        assert writer.version == reader.version + 1_000
        writer.close()
        verify(store, Settings(), deep=True)
