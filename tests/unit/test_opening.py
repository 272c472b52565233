"""A store that is open in Python: what is in memory and what is on disk are the same, whatever happens."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import hdlog
from hdlog.errors import InputError, StoreError, UsageError
from hdlog.operations.stores import log, update, verify
from hdlog.operations.work import Settings
from hdlog.store import disk
from hdlog.store.store import open_store
from tests.engines import ON_SPARK
from tests.engines import settings as options

PATHS = "path[?x, ?y] :- edge[?x, ?y] . path[?x, ?z] :- path[?x, ?y], edge[?y, ?z] ."
pytestmark = pytest.mark.skipif(ON_SPARK, reason="says itself which engine it takes")


def paths(store: Any) -> set[tuple[Any, ...]]:
    return set(store.facts("path"))


def on_disk(folder: Path, name: str = "path") -> set[tuple[Any, ...]]:
    with hdlog.open(folder, read_only=True) as store:
        return set(store.facts(name))


def test_a_store_has_the_interface_of_a_reasoner(tmp_path: Path) -> None:
    with hdlog.open(tmp_path / "s", create=True) as store:
        store.add_rules(PATHS)
        change = store.update(add={"edge": [(1, 2), (2, 3)]})
        assert set(change.added[hdlog.Predicate("path", 2)]) == {(1, 2), (2, 3), (1, 3)}
        assert on_disk(tmp_path / "s") == paths(store) == {(1, 2), (2, 3), (1, 3)}
        assert store.version == 3
        assert store.counts()[hdlog.Predicate("path", 2)] == 3
        assert store.explain()["components"]
    with hdlog.open(tmp_path / "s") as store:
        store.remove_rules("path[?a, ?c] :- path[?a, ?b], edge[?b, ?c] .")
        assert paths(store) == {(1, 2), (2, 3)}
        assert paths(store.at(3)) == {(1, 2), (2, 3), (1, 3)}
        with pytest.raises(UsageError, match="not in the store: path"):
            store.remove_rules("path[?a, ?c] :- path[?a, ?b], edge[?b, ?c] .")
    assert verify(tmp_path / "s", options(), deep=True)["files"]
    assert [e["version"] for e in log(tmp_path / "s")] == [4, 3, 2, 1]


def test_a_transaction_is_one_version_or_none(tmp_path: Path) -> None:
    with hdlog.open(tmp_path / "s", create=True) as store:
        with store.transaction():
            store.update(add={"edge": [(1, 2)]})
            store.add_rules(PATHS)
            store.add_rules("back[?y, ?x] :- path[?x, ?y] .")
            store.update(add={"edge": [(2, 3)]}, delete=[("edge", 1, 2)])
            assert paths(store) == {(2, 3)}
        assert store.version == 2
        assert on_disk(tmp_path / "s", "back") == {(3, 2)}

        def fail_in_the_end() -> None:
            with store.transaction():
                store.update(add={"edge": [(3, 4)]})
                store.remove_rules("back[?y, ?x] :- path[?x, ?y] .")
                raise ZeroDivisionError

        def go_on_after_a_failure() -> None:
            with store.transaction():
                store.update(add={"edge": [(3, 4)]})
                with pytest.raises(InputError):
                    store.update(add={"edge": [(3, 4, 5)]})
                with pytest.raises(RuntimeError):
                    store.update(add=_broken())

        with pytest.raises(ZeroDivisionError):
            fail_in_the_end()
        go_on_after_a_failure()  # facts that cannot be read are refused before anything has changed
        assert paths(store) == on_disk(tmp_path / "s") == {(2, 3), (3, 4), (2, 4)}
        assert len(store.program.rules) == 3
        assert store.version == 3
        with store.transaction(), pytest.raises(UsageError, match="no others within"), store.transaction():
            pass


def _broken() -> Any:
    yield ("edge", 7, 8)
    raise RuntimeError


def test_a_change_that_fails_within_a_transaction_ends_it(tmp_path: Path) -> None:
    with hdlog.open(tmp_path / "s", create=True, max_facts=100) as store:
        store.add_rules(PATHS)

        def work() -> None:
            with store.transaction():
                store.update(add={"edge": [(1, 2)]})
                with pytest.raises(hdlog.errors.LimitReached):
                    store.update(add={"edge": [(i, i + 1) for i in range(100)]})

        with pytest.raises(UsageError, match="has failed, so nothing of it was kept"):
            work()
        assert len(store) == 0
        assert on_disk(tmp_path / "s") == set()
        store.update(add={"edge": [(1, 2)]})
        assert on_disk(tmp_path / "s") == {(1, 2)}


def test_one_writer_and_many_readers(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    with hdlog.open(folder, create=True) as store:
        store.add_rules(PATHS)
        store.update(add={"edge": [(1, 2)]})
        reader = hdlog.open(folder, read_only=True)
        with pytest.raises(StoreError, match="is writing this store"):
            hdlog.open(folder)
        store.update(add={"edge": [(2, 3)]})
        assert paths(reader) == {(1, 2)}
        with pytest.raises(UsageError, match="open for reading"):
            reader.update(add={"edge": [(5, 6)]})
        with pytest.raises(UsageError, match="open for reading"):
            reader.add_rules("p[1] .")
        reader.close()
    (tmp_path / "edge.facts").write_text("3\t4\n")
    update(folder, [str(tmp_path / "edge.facts")], [], options())
    assert len(on_disk(folder)) == 6
    with pytest.raises(StoreError, match="no store there"):
        hdlog.open(tmp_path / "none")
    with pytest.raises(UsageError, match="an engine is"):
        hdlog.open(folder, engine="fast")  # type: ignore[call-overload]


def test_a_commit_that_fails_is_taken_back_and_the_next_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)
    folder = tmp_path / "s"
    with hdlog.open(folder, create=True) as store:
        store.add_rules(PATHS)
        edges: set[tuple[int, int]] = set()
        for _ in range(40):
            add = {(chance.randrange(8), chance.randrange(8)) for _ in range(3)}
            delete = set(chance.sample(sorted(edges), min(2, len(edges))))
            before = paths(store)
            fails = chance.random() < 0.5
            steps = iter([chance.randrange(7)])

            def write_pointer(path: Path, data: bytes, original: Any = disk.write_pointer) -> None:
                raise OSError(28, "No space left on device", str(path))

            with monkeypatch.context() as patched:
                if fails:
                    name = ("write_pointer", "sync_folder")[next(steps) % 2]
                    patched.setattr(disk, name, write_pointer if name == "write_pointer" else _refuse)
                try:
                    store.update(add={"edge": sorted(add)}, delete={"edge": sorted(delete)})
                    edges = (edges - delete) | add
                    assert not fails or (not (add - edges) and paths(store) == before)
                except OSError:
                    assert fails
                    assert paths(store) == before
        assert paths(store) == on_disk(folder)
        reasoner = hdlog.Reasoner(PATHS)
        reasoner.update(add={"edge": sorted(edges)})
        assert paths(store) == set(reasoner.facts("path"))
    verify(folder, options(), deep=True)


def _refuse(path: Path) -> None:
    raise OSError(5, "Input/output error", str(path))


@pytest.mark.skipif(ON_SPARK, reason="hundreds of updates")
def test_small_files_are_merged_when_they_pile_up(tmp_path: Path) -> None:
    """An update costs the same after hundreds of others, and a store that is opened then has all of them."""
    with hdlog.open(tmp_path / "store", create=True) as store:
        store.add_rules(
            'path[?x, ?y] :- edge[?x, ?y] . path[?x, ?z] :- path[?x, ?y], edge[?y, ?z] . made[?k] :- edge[?x, ?y], BIND(SKOLEM("f", ?x) AS ?k) .'
        )
        for number in range(150):
            store.update(
                add=[("edge", f"a{number}", f"a{number % 11}")],
                delete=[("edge", f"a{number - 40}", f"a{(number - 40) % 11}")],
            )
        expected = {p: set(store.facts(p)) for p in store.counts()}
    manifest = open_store(tmp_path / "store").manifest
    assert max(len(manifest.facts), len(manifest.terms), len(manifest.skolems)) < 40
    assert len(list((tmp_path / "store" / "facts").iterdir())) < 120
    with hdlog.open(tmp_path / "store") as again:
        assert {p: set(again.facts(p)) for p in again.counts()} == expected
    verify(tmp_path / "store", Settings(), deep=True)
