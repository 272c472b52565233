"""Stores whose files were damaged, in every place and many ways: that is told, and no fact is wrong."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hdlog.errors import HdlogError, StoreError
from hdlog.operations.stores import export_store, info, materialise, update, verify
from hdlog.operations.work import Settings
from hdlog.store import disk
from hdlog.store import facts as facts_files

RULES = """
path[?x, ?y] :- edge[?x, ?y] . path[?x, ?z] :- path[?x, ?y], edge[?y, ?z] .
named[?k, ?x] :- edge[?x, ?y], BIND(SKOLEM("f", ?x) AS ?k) .
"""
KINDS = ("flip", "cut", "gone", "zero")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with an image, and an update after it."""
    root = tmp_path_factory.mktemp("damage")
    (root / "rules.dlog").write_text(RULES)
    _write(root / "first", "".join(f"a{i}\tb{i % 7}\n" for i in range(300)))
    _write(root / "second", "b1\tzz\n")
    _write(root / "third", "a1\tb1\nb2\tyy\n")
    materialise([root / "rules.dlog"], [root / "first/edge.facts"], root / "store", Settings())
    update(root / "store", [str(root / "second/edge.facts")], [], Settings())
    return root / "store"


def _write(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "edge.facts").write_text(text)


def facts_of(store: Path, out: Path) -> dict[str, list[str]]:
    shutil.rmtree(out, ignore_errors=True)
    export_store(store, "csv", out, Settings())
    return {p.name: sorted(p.read_text().splitlines()) for p in out.iterdir()}


def damage(path: Path, kind: str, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if kind == "gone" or not data:
        path.unlink()
    elif kind == "flip":
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
    elif kind == "cut":
        path.write_bytes(data[: chance.randrange(len(data))])
    else:
        path.write_bytes(bytes(len(data)))


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_told_and_changes_no_fact(store: Path, tmp_path: Path, kind: str) -> None:
    whole = facts_of(store, tmp_path / "out")
    chance = random.Random(kind)
    told = 0
    copy, more = tmp_path / "copy", str(store.parent / "third/edge.facts")
    works: list[Callable[[], object]] = [
        partial(info, copy),
        partial(verify, copy, Settings()),
        partial(update, copy, [more], [], Settings()),
    ]
    for name in sorted(p.relative_to(store) for p in store.rglob("*") if p.is_file()):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(store, copy)
        damage(copy / name, kind, chance)
        for work in works:
            try:
                work()
            except HdlogError:
                told += 1
        shutil.rmtree(copy)
        shutil.copytree(store, copy)
        damage(copy / name, kind, chance)
        try:
            assert facts_of(copy, tmp_path / "out") == whole, name
        except HdlogError:
            told += 1
    assert told > 10


def test_an_update_that_meets_damage_changes_nothing(store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    newest = sorted((copy / "facts").iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[:-9])
    before = {p: p.read_bytes() for p in copy.rglob("*") if p.is_file() and p.name != "writer"}
    with pytest.raises(StoreError, match=newest.name):
        update(copy, [str(store.parent / "third/edge.facts")], [], Settings())
    after = {p: p.read_bytes() for p in copy.rglob("*") if p.is_file() and p.name != "writer"}
    assert after == before


@pytest.mark.parametrize("kind", ["facts", "terms", "image"])
def test_of_large_files_what_is_read_is_checked(
    store: Path, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files count as large: pages of Parquet have checksums, and blocks of segments."""
    monkeypatch.setattr(disk, "CHECKED", 0)
    monkeypatch.setattr(facts_files, "CHECKED", 0)
    expected = facts_of(store, tmp_path / "before")
    found = 0
    for number in range(40):
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(store, copy)
        chance = random.Random(number)
        files = sorted(f for f in (copy / kind).rglob("*") if f.is_file())
        damage(chance.choice(files), "flip", chance)
        try:
            assert facts_of(copy, tmp_path / "after") == expected
        except HdlogError:
            found += 1
    assert found > 10
