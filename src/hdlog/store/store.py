"""A store: a folder of Parquet files and one small file that says which of them count.

    manifest.json              what is in the store, the rules among it; replaced in one step, so a store is always whole
    terms/*.parquet            id, text: all terms but integers and Skolem terms, in buckets by hash
    skolems/*.parquet          id, name, args
    facts/<number>/*.parquet   c0, c1, ...; asserted, nonrecursive, recursive: live facts of one predicate with their supports

A file is never changed once it is written. An update writes new files, then a new manifest, then removes what that no longer
names, unless somebody reads: then it stays until the next update.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import hdlog
from hdlog.errors import StoreError
from hdlog.program.model import Predicate

_MANIFEST = "manifest.json"
_FORMAT = 3
_LOCK, _READERS = "lock", "readers"
_MOMENT = 0.01


@dataclass(frozen=True)
class File:
    path: str
    """inside the store"""
    rows: int
    bytes: int
    bucket: int = 0


@dataclass(frozen=True)
class Facts:
    """What a store has of one predicate."""

    name: str
    arity: int
    number: int
    files: tuple[File, ...] = ()
    asserted: int = 0
    distinct: tuple[float, ...] = ()
    """different values by column, about"""

    @property
    def predicate(self) -> Predicate:
        return Predicate(self.name, self.arity)

    @property
    def rows(self) -> int:
        return sum(f.rows for f in self.files)


@dataclass(frozen=True)
class RuleFile:
    """The text of a rule file; in the manifest, so that rules and what follows from them change together."""

    name: str
    dialect: str
    text: str


@dataclass(frozen=True)
class Manifest:
    snapshot: int = 0
    created: float = 0.0
    version: str = ""
    buckets: int = 0
    """into which terms are spread; fixed when the first ones come"""
    terms: int = 0
    typed: bool = False
    """whether a term is a literal with a datatype or language"""
    term_files: tuple[File, ...] = ()
    skolem_files: tuple[File, ...] = ()
    facts: tuple[Facts, ...] = ()
    rules: tuple[RuleFile, ...] = ()
    tuning: dict[str, Any] = field(default_factory=dict)
    materialised: bool = False
    batches: dict[str, int] = field(default_factory=dict)
    """of change streams: the last batch that is in this snapshot"""

    def files(self) -> list[File]:
        return [*self.term_files, *self.skolem_files, *(f for p in self.facts for f in p.files)]

    def of(self, predicate: Predicate) -> Facts | None:
        return next((f for f in self.facts if f.predicate == predicate), None)


@contextmanager
def report_damage(path: Path) -> Iterator[None]:
    """A file of a store that cannot be read is an error of the store."""
    try:
        yield
    except FileNotFoundError:
        raise StoreError(f"{path}: missing; the store is damaged") from None
    except (pa.ArrowException, KeyError) as error:
        raise StoreError(f"{path}: damaged ({error})") from None


class Store:
    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    def path(self, file: File) -> Path:
        return self.folder / file.path

    def read(self, file: File, columns: Sequence[str] | None = None) -> pa.Table:
        path = self.path(file)
        with report_damage(path):
            table = pq.read_table(path, columns=columns)
        if table.num_rows != file.rows:
            raise StoreError(f"{path}: damaged; it has {table.num_rows:,} rows, not {file.rows:,}")
        return table

    def paths(self, files: Iterable[File]) -> list[str]:
        return [str(self.path(f)) for f in files]

    def new_file(self, kind: str) -> str:
        """The name of a file that is not there yet, its folder made."""
        path = f"{kind}/{self.manifest.snapshot + 1:06d}-{uuid.uuid4().hex[:12]}.parquet"
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        return path

    def describe_file(self, path: str, rows: int, bucket: int = 0) -> File:
        return File(path, rows, (self.folder / path).stat().st_size, bucket)

    def make_staging_folder(self) -> Path:
        """A folder for files on the way; `clean` removes it."""
        folder = self.folder / "staging" / uuid.uuid4().hex[:12]
        folder.mkdir(parents=True)
        return folder

    def number_predicates(self, predicates: Iterable[Predicate]) -> dict[Predicate, int]:
        """A number for each predicate, old or new."""
        known = {f.predicate: f.number for f in self.manifest.facts}
        following = max(known.values(), default=-1) + 1
        for predicate in predicates:
            if predicate not in known:
                known[predicate] = following
                following += 1
        return known

    def admit(self, **changes: Any) -> None:
        """Take files into account that the next commit will name."""
        self.manifest = replace(self.manifest, **changes)

    def commit(self, **changes: Any) -> None:
        """The next snapshot, in one step; `clean` removes what it does not name."""
        manifest = replace(
            self.manifest,
            snapshot=self.manifest.snapshot + 1,
            created=time.time(),
            version=hdlog.__version__,
            **changes,
        )
        text = json.dumps({"format": _FORMAT, **asdict(manifest)}, indent=1, ensure_ascii=False)
        fresh = self.folder / f"{_MANIFEST}.{os.getpid()}"
        with fresh.open("w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(self.folder / _MANIFEST)
        self.manifest = manifest

    def clean(self) -> None:
        """Remove files that the manifest does not name: of older snapshots, or left by a run that failed.

        Files of older snapshots stay while somebody reads; the next one to open the store for writing removes them.
        """
        shutil.rmtree(self.folder / "staging", ignore_errors=True)
        nobody_reads = Lock(self.folder / _READERS)
        if not nobody_reads.acquire():
            return
        try:
            self._clean()
        finally:
            nobody_reads.release()

    def _clean(self) -> None:
        named = {f.path for f in self.manifest.files()}
        for kind in ("terms", "skolems", "facts"):
            for path in (self.folder / kind).rglob("*"):
                if path.is_file() and str(path.relative_to(self.folder)) not in named:
                    path.unlink()
        for path in (self.folder / "facts").glob("*"):
            if not any(path.iterdir()):
                path.rmdir()


class Lock:
    """An operating-system lock on a file, which goes with its process, however that ends."""

    def __init__(self, path: Path, shared: bool = False) -> None:
        self.path = path
        self._kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._file: int | None = None

    def acquire(self) -> bool:
        """Whether nobody else has it, or, if shared, nobody has it for himself."""
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._file, self._kind | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            return False
        return True

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def note_owner(self) -> None:
        assert self._file is not None, "who has the lock notes it"
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def owner(self) -> str:
        return self.path.read_text() or "unknown"


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """One writer at a time."""
    lock = Lock(folder / _LOCK)
    if not lock.acquire():
        raise StoreError(f"{folder}: process {lock.owner()} is writing this store; wait for it, or end it")
    try:
        lock.note_owner()
        yield
    finally:
        lock.release()


@contextmanager
def open_for_reading(folder: Path) -> Iterator[Store]:
    """A store of which no file goes before the end, whoever updates it meanwhile."""
    lease = Lock(folder / _READERS, shared=True)
    if folder.is_dir():
        # Where nothing can be written, nothing can be removed either. A writer holds it for a moment, to remove files.
        with suppress(OSError):
            while not lease.acquire():
                time.sleep(_MOMENT)
    try:
        yield open_store(folder)
    finally:
        lease.release()


def check_place(folder: Path) -> None:
    """Refuse a folder that has something else in it."""
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder} is a file; a store is a folder")
    strange = folder.exists() and any(p.name not in (_LOCK, _READERS) for p in folder.iterdir())
    if strange and not (folder / _MANIFEST).exists() and not (folder / "staging").exists():
        raise StoreError(f"{folder} is not empty, and no store; name another folder")


def create_store(folder: Path, overwrite: bool = False) -> Store:
    """An empty store; one that is there stays until the first commit of the new one takes its place."""
    if not (folder / _MANIFEST).exists():
        return Store(folder, Manifest())
    if not overwrite:
        raise StoreError(f"{folder} has a store already; hdlog update adds to it, --overwrite replaces it")
    try:
        before = open_store(folder).manifest.snapshot
    except StoreError:
        before = 0  # damaged, or of another version: all the more to be replaced
    return Store(folder, Manifest(snapshot=before))


def open_store(folder: Path) -> Store:
    path = folder / _MANIFEST
    if not path.exists():
        raise StoreError(f"{folder}: no store there; hdlog load or hdlog materialise make one")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version = content.pop("format")
    except (ValueError, KeyError, AttributeError, TypeError):
        raise StoreError(f"{path}: damaged; this is no manifest of a store") from None
    if version != _FORMAT:
        raise StoreError(
            f"{folder}: made by hdlog {content.get('version')}, whose format this one does not know"
        )
    try:
        return Store(folder, _manifest(content))
    except (KeyError, TypeError, ValueError):
        raise StoreError(f"{path}: damaged; parts of the manifest are missing") from None


def _manifest(content: dict[str, Any]) -> Manifest:
    facts = tuple(
        Facts(**{**f, "files": _files(f["files"]), "distinct": tuple(f["distinct"])})
        for f in content["facts"]
    )
    return Manifest(
        **{
            **content,
            "facts": facts,
            "term_files": _files(content["term_files"]),
            "skolem_files": _files(content["skolem_files"]),
            "rules": tuple(RuleFile(**r) for r in content["rules"]),
        }
    )


def _files(entries: Sequence[dict[str, Any]]) -> tuple[File, ...]:
    return tuple(File(**f) for f in entries)
