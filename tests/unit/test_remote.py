"""Inputs and stores in other file systems, on an S3 server of this machine."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hdlog
from hdlog.errors import InputError, StoreError, UsageError
from hdlog.operations.stores import (
    begin_living,
    change_lines,
    compact,
    info,
    load,
    log,
    make_sheets,
    materialise,
    open_for_update,
    rollback,
    update,
    verify,
)
from hdlog.operations.stream import follow
from hdlog.operations.work import Settings
from hdlog.places import Remote, place
from hdlog.reading.files import read_splits
from hdlog.reading.splits import find_splits, scope_of
from hdlog.store.export import export
from hdlog.store.store import open_for_reading
from tests.engines import ON_SPARK
from tests.engines import settings as options
from tests.s3_server import Bucket
from tests.shell import call
from tests.unit.test_store import RULES, edge

embedded = pytest.mark.skipif(ON_SPARK, reason="the same on every engine")


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    monkeypatch.setenv("HDLOG_CACHE", str(tmp_path / "cache"))
    return Bucket()


def lines(*edges: tuple[int, int]) -> bytes:
    return "".join(f"{edge(x, y)} .\n" for x, y in edges).encode()


def facts_of(store: Any, target: Path, settings: Settings) -> set[str]:
    with open_for_reading(place(store)) as opened:
        sheets = make_sheets(begin_living(opened, settings).work, opened)
        export(sheets, "nt", target, lambda _: None, True)
    return set(target.read_text().splitlines())


def test_a_store_elsewhere_is_like_one_here(bucket: Bucket, tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text(RULES)
    for i in range(2):
        bucket.put(f"in/{i}.nt", lines(*((j, j + 1) for j in range(3 * i, 3 * i + 3))))
    more = bucket.put("more/3.nt.gz", gzip.compress(lines((3, 1), (40, 41))))
    gone = bucket.put("gone.nt", lines((4, 5)))
    stores = [place(bucket.uri("stores/one")), tmp_path / "here"]
    told = []
    for store in stores:
        materialise([rules], [bucket.uri("in")], store, options())
        change = update(store, [more], [gone], options())["change"]
        told.append(sorted(change_lines(change)))
    assert told[0] == told[1]
    there, here = (facts_of(s, tmp_path / "out.nt", options()) for s in stores)
    assert there == here
    rollback(stores[0], 1)
    assert info(stores[0])["facts"] == info(stores[1], 1)["facts"]
    rollback(stores[0], 2)
    compact(stores[0], options(), keep=1)
    assert facts_of(stores[0], tmp_path / "out.nt", options()) == here
    verify(stores[0], Settings(), deep=True)
    assert [entry["version"] for entry in log(stores[0])] == [5, 4, 3, 2, 1]


@embedded
def test_another_machine_sees_it_and_takes_part(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = place(bucket.uri("store"))
    rules = tmp_path / "rules.dlog"
    rules.write_text(RULES)
    materialise([rules], [bucket.put("in.nt", lines((1, 2), (2, 3)))], store, Settings())
    monkeypatch.setenv("HDLOG_CACHE", str(tmp_path / "another"))
    update(store, [bucket.put("more.nt", lines((3, 4)))], [], Settings())
    monkeypatch.setenv("HDLOG_CACHE", str(tmp_path / "cache"))
    assert info(store)["version"] == 2
    with hdlog.open(bucket.uri("store"), read_only=True) as opened:
        assert len(opened.facts("http://e/path")) == 6
    with hdlog.open(bucket.uri("store"), version=1) as opened:
        assert len(opened.facts("http://e/path")) == 3


@embedded
def test_of_two_writers_elsewhere_the_second_is_refused(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = place(bucket.uri("store"))
    load(store, [bucket.put("in.nt", lines((1, 2)))], Settings())
    more = bucket.put("more.nt", lines((3, 4)))
    with open_for_update(store, Settings()) as living:
        monkeypatch.setenv("HDLOG_CACHE", str(tmp_path / "another"))
        update(store, [bucket.put("other.nt", lines((7, 8)))], [], Settings())
        monkeypatch.setenv("HDLOG_CACHE", str(tmp_path / "cache"))
        with pytest.raises(StoreError, match="somebody else has made version 2"):
            living.update([([more], [])])
        assert sorted(map(str, living.work.reasoner.counts().values())) == ["1"]
    assert info(store)["version"] == 2
    update(store, [more], [], Settings())
    assert info(store)["facts"] == 3
    verify(store, Settings(), deep=True)


@embedded
def test_inputs_are_found_by_uri(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("data/a/one.nt", lines((1, 2)))
    bucket.put("data/b/two.csv", b"x,y\n1,2\n")
    bucket.put("data/b/_hidden/three.nt", lines((1, 2)))
    bucket.put("data/read.me", b"nothing")
    table = pa.table({"x": [1, 2, 3]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    bucket.put("data/t.parquet/day=3/part-00000.parquet", sink.getvalue().to_pybytes())
    bucket.put("data/t.parquet/_SUCCESS", b"")

    def names(entry: str) -> list[str]:
        return [str(place(s.path).name) for s in find_splits([bucket.uri(entry)])]

    assert names("data") == ["one.nt", "two.csv", "part-00000.parquet"]
    assert names("data/") == names("data/**") == names("data")
    assert names("data/*/*.nt") == ["one.nt"]
    assert names("data/**/*.csv") == ["two.csv"]
    (split,) = find_splits([bucket.uri("data/t.parquet")])
    assert (split.table, split.partition) == ("t", (("day", 3),))
    assert len(load(tmp_path / "s", [bucket.uri("data")], Settings())["lines"]) == 1
    for missing in ("data/none.nt", "none", "data/*.ttl"):
        with pytest.raises(InputError, match=r"no such file or folder|no file with a known ending"):
            find_splits([bucket.uri(missing)])
    with pytest.raises(InputError, match=r"unknown ending '\.me'"):
        find_splits([bucket.uri("data/read.me")])


@embedded
def test_a_large_file_is_cut_and_errors_name_it(bucket: Bucket) -> None:
    data = lines(*((i, i + 1) for i in range(500)))
    whole = bucket.put("big.nt", data)
    splits = find_splits([whole], size=5_000)
    assert len(splits) > 3
    assert sum(chunk.rows for chunk in read_splits(splits)) == 500
    bad = bucket.put("bad.nt", lines((1, 2)) + b"nonsense\n")
    with pytest.raises(InputError, match=r"bad\.nt.*:2: "):
        list(read_splits(find_splits([bad])))
    one, other = (find_splits([bucket.put(f"{i}/b.nt", b"_:b <http://e/p> _:c .\n")])[0] for i in range(2))
    assert scope_of(one) == scope_of(other)


@embedded
def test_names_that_are_none_are_refused(tmp_path: Path) -> None:
    for name, why in (
        ("xyz://host/file.nt", "are not known; known: file, s3"),
        ("s3://KEY:SECRET@bucket/file.nt", "keys are not part of a name"),
        ("file://elsewhere/file.nt", "files of another machine"),
    ):
        with pytest.raises(UsageError, match=why) as told:
            find_splits([name])
        assert "KEY:" not in str(told.value)
    (tmp_path / "a b.nt").write_bytes(lines((1, 2)))
    (split,) = find_splits([(tmp_path / "a b.nt").as_uri()])
    assert split.path == str(tmp_path / "a b.nt")


@embedded
def test_a_store_elsewhere_that_is_damaged_is_told(bucket: Bucket, tmp_path: Path) -> None:
    store = place(bucket.uri("store"))
    load(store, [bucket.put("in.nt", lines((1, 2)))], Settings())
    with pytest.raises(StoreError, match="has a store already"):
        load(store, [bucket.uri("in.nt")], Settings())
    with pytest.raises(StoreError, match="is not empty, and no store"):
        load(place(bucket.uri("")), [bucket.uri("in.nt")], Settings())
    with pytest.raises(StoreError, match="no store there"):
        info(place(bucket.uri("nothing")))
    with pytest.raises(UsageError, match="on this machine"):
        follow(store, tmp_path, None, Settings(), True, 0.1, print)
    terms = next(name for name in bucket.names() if "/terms/" in name)
    bucket.client.delete_object(Bucket=bucket.name, Key=terms)
    (copy,) = (tmp_path / "cache").rglob(Path(terms).name)
    copy.unlink()
    with pytest.raises(StoreError, match="missing"):
        verify(store, Settings())


@embedded
def test_what_cannot_be_written_leaves_everything_as_it_was(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = place(bucket.uri("store"))
    load(store, [bucket.put("in.nt", lines((1, 2)))], Settings())
    more = bucket.put("more.nt", lines((3, 4)))
    before, upload = set(bucket.names()), Remote.upload
    left = 0

    def fail(self: Remote, path: Path) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(f"{self}: the network is gone")
        return upload(self, path)

    monkeypatch.setattr(Remote, "upload", fail)
    for uploads in range(3):
        left = uploads
        with pytest.raises(StoreError, match="the network is gone"):
            update(store, [more], [], Settings())
        assert info(store)["version"] == 1
    monkeypatch.undo()
    update(store, [more], [], Settings())
    assert info(store)["facts"] == 2
    assert before - {f"store/{name}" for name in ("manifest.json",)} <= set(bucket.names())


@embedded
def test_commands_take_uris(bucket: Bucket, tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text(RULES)
    store, data = bucket.uri("a/store"), bucket.put("in.nt", lines((1, 2), (2, 3)))
    call("materialise", rules, data, "--store", store)
    told = call("update", store, "--add", bucket.put("more.nt", lines((3, 4)))).stdout
    assert "+ <http://e/n1> <http://e/path> <http://e/n4> ." in told
    assert json.loads(call("info", store, "--json").stdout)["facts"] > 6
    found = call("query", store, "<http://e/path>[<http://e/n1>, ?y]", "--format", "csv").stdout
    assert "http://e/n4" in found
    assert "version 1" in call("rollback", store, "--to", "1").output
    assert "files are as they were written" in call("verify", store, "--deep").output
    assert call("export", store, "--format", "nt", "-o", tmp_path / "out.nt").exit_code == 0
