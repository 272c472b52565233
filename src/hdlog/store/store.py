"""A store: a folder of files that are never changed, and one small file that says which of them count.

    manifest.json            the newest version: which files count, rules, counts, checksums; replaced in one step
    versions/<number>.json   the same of each version that is kept
    unfinished.json          the same of a materialisation that goes on, or was killed
    facts/*.parquet          p, c0, c1, ..., asserted, nonrecursive, recursive, live: facts, with differences to be added up
    terms/*.parquet          id, text: terms but for integers and Skolem terms
    skolems/*.parquet        id, name, args
    catalogue/*.arrow        predicates: number, name, arity, and how many facts they have
    rules/*                  rule files as they were given
    image/*                  what the embedded engine maps into memory; made from the rest, and made again where it is missing

A change writes new files, makes them durable, and then the manifest. What no kept version names is removed afterwards, unless
somebody reads that version.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import socket
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

import hdlog
from hdlog.errors import StoreError
from hdlog.places import Place
from hdlog.store import disk
from hdlog.store.disk import File, Sink
from hdlog.store.folder import Folder, Mirrored, find_folder
from hdlog.store.manifest import Entry, Manifest, RuleFile, read_manifest, write_manifest

MANIFEST, UNFINISHED = "manifest.json", "unfinished.json"
KINDS = ("facts", "terms", "skolems", "catalogue", "rules", "plans", "history", "image")
_LOCK, _OWNER, _LEASES, _VERSIONS = "lock", "writer", "leases", "versions"
_OWN = {MANIFEST, UNFINISHED, _LOCK, _OWNER, _LEASES, _VERSIONS, "streams", "changes", *KINDS}
_LONGEST = 200
"""Characters of a command in the log."""
_FOLDED = 50
"""Versions that are gone whose lines of the log wait to be put into one file."""


class Store:
    """One version of a store."""

    def __init__(self, folder: Folder, manifest: Manifest, is_new: bool = False) -> None:
        self.folder = folder
        self.manifest = manifest
        self.is_new = is_new
        """whether it has no content yet, though it may take the place of one that has"""

    # Reading.

    def read(self, file: File) -> pa.Buffer:
        return disk.read(self.folder, file)

    def read_table(self, file: File, columns: Sequence[str] | None = None) -> pa.Table:
        """A Parquet file."""
        with report_damage(f"{self.folder}/{file.path}"):
            # Of a large file those pages are checked that are read.
            source = pa.BufferReader(self.read(file))
            return pq.read_table(
                source, columns=columns, page_checksum_verification=file.bytes > disk.CHECKED
            )

    def paths(self, files: Sequence[File]) -> list[str]:
        return [str(self.folder.place / f.path) for f in files]

    def check_files(self) -> None:
        """Refuse a store that lacks a file; what only the embedded engine maps can be made again."""
        image = set() if self.manifest.image is None else set(self.manifest.image.files.values())
        for file in self.manifest.files():
            if file not in image:
                disk.check_size(self.folder, file)

    def read_rules(self) -> list[tuple[RuleFile, str]]:
        return [(rules, self.read(rules.file).to_pybytes().decode()) for rules in self.manifest.rules]

    # Writing.

    @contextmanager
    def create(self, kind: str, ending: str) -> Iterator[tuple[str, Sink]]:
        """A new file of some kind, durable when this is over; its path and where to write."""
        path = self.new_path(kind, ending)
        with disk.create_at(self.folder.path / path) as sink:
            yield path, sink
        self.folder.publish(path)

    def new_path(self, kind: str, ending: str) -> str:
        """The path of a file that is not there yet."""
        return f"{kind}/{self.manifest.version + 1:06d}-{uuid.uuid4().hex[:12]}.{ending}"

    def write_table(self, kind: str, table: pa.Table, first: int = 0, last: int = 0, **options: Any) -> File:
        """A table as a Parquet file."""
        with self.create(kind, "parquet") as (path, sink):
            pq.write_table(table, sink, compression="zstd", write_page_checksum=True, **options)
        return File(path, sink.bytes, sink.checksum, table.num_rows, first, last, sink.blocks[-1])

    def write_bytes(self, kind: str, ending: str, data: bytes, rows: int = 0) -> File:
        with self.create(kind, ending) as (path, sink):
            sink.write(data)
        return File(path, sink.bytes, sink.checksum, rows)

    def commit(self, added: int = 0, removed: int = 0, **changes: Any) -> None:
        """The next version, in one step."""
        before = self.manifest
        changed = replace(before, program_version=hdlog.__version__, **{"unfinished": None, **changes})
        if changed.unfinished is not None:
            self.folder.write_pointer(UNFINISHED, write_manifest(changed))
            self.manifest, self.is_new = changed, False
            return
        facts = changed.counts.get("facts", 0)
        entry = Entry(
            before.version + 1, time.time(), _whoever_asks(), _what_was_asked(), added, removed, facts
        )
        history = self._fold_history(changed)
        manifest = replace(changed, entry=entry, history=history)
        data = write_manifest(manifest)
        self._check_alone()
        self.folder.write_pointer(f"{_VERSIONS}/{manifest.version:06d}.json", data)
        self.folder.write_pointer(MANIFEST, data)
        self.manifest, self.is_new = manifest, False
        if before.unfinished is not None:
            self.forget_unfinished()
        if history is not before.history:
            self.clean()  # a writer may live for long, and its versions with it

    def forget_unfinished(self) -> None:
        """What was noted of a materialisation that nobody goes on with, or that is done."""
        if self.folder.has(UNFINISHED):
            self.folder.remove(UNFINISHED)

    def _check_alone(self) -> None:
        """Elsewhere there is no lock: whoever comes second is refused, if he comes as late as this."""
        if not isinstance(self.folder, Mirrored):
            return
        with suppress(FileNotFoundError):
            there = read_manifest(self.folder.read_pointer(MANIFEST), str(self.folder)).version
            if there != self.manifest.version:
                raise StoreError(
                    f"{self.folder}: somebody else has made version {there} of it meanwhile, so nothing was changed; do it again"
                )

    def _fold_history(self, manifest: Manifest) -> File | None:
        """The log of versions that are gone, with more of them once they have become many."""
        gone = [v for v in self._list_versions() if v <= manifest.version - manifest.keep]
        if len(gone) < _FOLDED:
            return manifest.history
        lines = [json.dumps(asdict(entry)) for entry in self.log() if entry.version <= gone[-1]]
        return self.write_bytes("history", "jsonl", "\n".join(lines).encode(), len(lines))

    # Versions.

    def _list_versions(self) -> list[int]:
        """The numbers of versions that there is a file of, up to this one."""
        return [v for v in _list_versions(self.folder) if v <= self.manifest.version]

    def kept_versions(self) -> list[int]:
        oldest = self.manifest.version - self.manifest.keep
        return [v for v in self._list_versions() if v > oldest or _is_leased(self.folder.path, v)]

    def log(self) -> list[Entry]:
        """What has happened, the oldest first."""
        entries: dict[int, Entry] = {}
        if self.manifest.history is not None:
            lines = self.read(self.manifest.history).to_pybytes().decode().splitlines()
            entries = {e.version: e for e in (Entry(**json.loads(line)) for line in lines)}
        for version in self._list_versions():
            with suppress(StoreError):
                entries.setdefault(version, _read_version(self.folder, version).entry)
        return [entries[v] for v in sorted(entries)]

    def clean(self) -> None:
        """Remove what no kept version names: files of older versions, and what a run that failed has left behind."""
        kept = self.kept_versions()
        named = {f.path for f in self.manifest.files()}
        for version in kept:
            with suppress(StoreError):
                named |= {f.path for f in _read_version(self.folder, version).files()}
        if self.folder.has(UNFINISHED):
            with suppress(StoreError):
                named |= {f.path for f in _read_unfinished(self.folder).files()}
        for kind in KINDS:
            for name in (f"{kind}/{name}" for name in self.folder.names(kind)):
                if name not in named and self.folder.is_left_over(name):
                    self.folder.remove(name)
        folded = self._find_last_folded()
        for name in self.folder.names(_VERSIONS):
            stem = name.partition(".")[0]
            version = int(stem) if name == f"{stem}.json" and stem.isdigit() else -1
            if version < 0 or version > self.manifest.version or (version <= folded and version not in kept):
                self.folder.remove(f"{_VERSIONS}/{name}")
        for path in (self.folder.path / _LEASES).glob("*"):
            if path.stem.isdigit() and int(path.stem) not in kept:
                disk.remove(path)

    def _find_last_folded(self) -> int:
        """The last version whose line of the log is in the history."""
        if self.manifest.history is None:
            return 0
        last = self.read(self.manifest.history).to_pybytes().decode().splitlines()[-1]
        return int(json.loads(last)["version"])


def _whoever_asks() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):
        return "unknown"


def _what_was_asked() -> str:
    """The command, or the program that has this one as a library."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:]] if sys.argv and sys.argv[0] else ["python"]
    return " ".join(words)[:_LONGEST]


@contextmanager
def report_damage(path: Path | str) -> Iterator[None]:
    """A file that is not what its name says is an error of the store."""
    try:
        yield
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise StoreError(f"{path}: damaged ({error})") from None
    except OSError as error:
        if error.errno is not None:  # the system's, not Arrow's word for what it cannot read
            raise
        raise StoreError(f"{path}: damaged ({error})") from None


# Locks.


class Lease:
    """Says that a version is being read: none of its files goes before the end, whoever updates the store meanwhile."""

    def __init__(self, folder: Path, version: int) -> None:
        self.path = folder / _LEASES / f"{version:06d}"
        self._file: int | None = None

    def acquire(self) -> None:
        # Where nothing can be written, nothing can be removed either.
        with suppress(OSError):
            self.path.parent.mkdir(exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            fcntl.flock(self._file, fcntl.LOCK_SH)

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _is_leased(folder: Path, version: int) -> bool:
    path = folder / _LEASES / f"{version:06d}"
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


@contextmanager
def lock_folder(place: Place) -> Iterator[None]:
    """One writer at a time on a machine, by a lock of the operating system, which goes with its process however that ends."""
    folder = find_folder(place).path
    if place != folder:
        folder.mkdir(parents=True, exist_ok=True)  # of copies
    lock = FileLock(folder / _LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        owner = "another process"
        with suppress(OSError):
            owner = f"process {(folder / _OWNER).read_text().strip()}"
        raise StoreError(f"{place}: {owner} is writing this store; wait for it, or end it") from None
    try:
        (folder / _OWNER).write_text(str(os.getpid()))
        yield
    finally:
        lock.release()


# Opening and making.


def check_place(place: Place) -> None:
    """Refuse a folder that has something else in it."""
    if isinstance(place, Path) and place.exists() and not place.is_dir():
        raise StoreError(f"{place} is a file; a store is a folder")
    folder = find_folder(place)
    if folder.has(MANIFEST):
        return
    strange = [name for name in folder.names_at_top() if name not in _OWN and not name.startswith(MANIFEST)]
    if strange:
        raise StoreError(f"{place} is not empty, and no store; name another folder")


def create_store(place: Place, overwrite: bool = False) -> Store:
    """An empty store; one that is there stays until the first commit of the new one takes its place."""
    folder = find_folder(place)
    if not folder.has(MANIFEST):
        return Store(folder, Manifest(), is_new=True)
    if not overwrite:
        raise StoreError(f"{folder} has a store already; hdlog update adds to it, --overwrite replaces it")
    try:
        entry = open_store(folder).manifest.entry
    except StoreError:
        # Damaged, or of another format: all the more to be replaced.
        entry = Entry(max(_list_versions(folder), default=0), 0.0, "", "")
    return Store(folder, Manifest(entry=entry), is_new=True)


def _list_versions(folder: Folder) -> list[int]:
    stems = (name.removesuffix(".json") for name in folder.names(_VERSIONS) if name.endswith(".json"))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def open_store(place: Place | Folder, version: int | None = None) -> Store:
    """The newest version of a store, or another that is kept."""
    folder = find_folder(place)
    try:
        data = folder.read_pointer(MANIFEST)
    except FileNotFoundError:
        raise StoreError(f"{place}: no store there; hdlog load or hdlog materialise make one") from None
    except NotADirectoryError:
        raise StoreError(f"{place} is a file; a store is a folder") from None
    store = Store(folder, read_manifest(data, f"{place}/{MANIFEST}"))
    if version is None or version == store.manifest.version:
        return store
    kept = store.kept_versions()
    if version not in kept:
        raise StoreError(
            f"{place} has no version {version} any more; there are {kept[0]} to {store.manifest.version}"
            if kept and version < kept[0]
            else f"{place} has no version {version}; the newest is {store.manifest.version}"
        )
    return Store(folder, _read_version(folder, version))


def open_unfinished(place: Place) -> Store:
    """A materialisation that was killed, as far as it was noted."""
    folder = find_folder(place)
    try:
        return Store(folder, _read_unfinished(folder))
    except FileNotFoundError:
        raise StoreError(
            f"{place}: no unfinished materialisation there, or none that got as far as a note"
        ) from None


def _read_unfinished(folder: Folder) -> Manifest:
    return read_manifest(folder.read_pointer(UNFINISHED), f"{folder}/{UNFINISHED}")


def _read_version(folder: Folder, version: int) -> Manifest:
    name = f"{_VERSIONS}/{version:06d}.json"
    try:
        return read_manifest(folder.read_pointer(name), f"{folder}/{name}")
    except FileNotFoundError:
        raise StoreError(f"{folder}/{name}: missing; the store is damaged") from None


@contextmanager
def open_for_reading(place: Place, version: int | None = None) -> Iterator[Store]:
    """A version of a store of which no file goes before the end, whoever updates it meanwhile."""
    while True:
        store = open_store(place, version)
        lease = Lease(store.folder.path, store.manifest.version)
        lease.acquire()
        try:
            # Between looking and leasing a writer may have removed it.
            missing = any(not store.folder.has(f.path) for f in store.manifest.files())
            if missing and version is None and open_store(place).manifest.version != store.manifest.version:
                continue
            yield store
            return
        finally:
            lease.release()
