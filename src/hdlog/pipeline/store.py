"""A store: a folder of Parquet files and one small file that says which of them count.

    manifest.json              what is in the store; replaced in one step, so a store is always whole
    terms/*.parquet            id, text: all terms but integers and Skolem terms, in buckets by hash
    skolems/*.parquet          id, name, args
    facts/<number>/*.parquet   c0, c1, ...; asserted, nonrecursive, recursive: live facts of one predicate with their supports
    rules/                     the rule files

A file is never changed once it is written. An update writes new files, then a new manifest, then removes what that no longer
names; whoever reads beside it keeps what it has open.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import hdlog
from hdlog.errors import HdlogError
from hdlog.program.model import Predicate

_MANIFEST = "manifest.json"
_FORMAT = 1
_LOCK = "lock"


class StoreError(HdlogError):
    """A store that cannot be used: none there, of another version, in use."""

    exit_code = 9


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
    path: str
    dialect: str


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


class Store:
    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    def path(self, file: File) -> Path:
        return self.folder / file.path

    def paths(self, files: Iterable[File]) -> list[str]:
        return [str(self.path(f)) for f in files]

    def new_file(self, kind: str) -> str:
        """The name of a file that is not there yet, its folder made."""
        path = f"{kind}/{self.manifest.snapshot + 1:06d}-{uuid.uuid4().hex[:12]}.parquet"
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        return path

    def written(self, path: str, rows: int, bucket: int = 0) -> File:
        return File(path, rows, (self.folder / path).stat().st_size, bucket)

    def staging(self) -> Path:
        """A folder for files on the way; `commit` removes it."""
        folder = self.folder / "staging" / uuid.uuid4().hex[:12]
        folder.mkdir(parents=True)
        return folder

    def numbered(self, predicates: Iterable[Predicate]) -> dict[Predicate, int]:
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
        """The next snapshot, in one step; what it does not name goes."""
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
        self.clean()

    def clean(self) -> None:
        """Remove files that the manifest does not name: of older snapshots, or left by a run that failed."""
        named = {f.path for f in self.manifest.files()} | {r.path for r in self.manifest.rules}
        for kind in ("terms", "skolems", "facts", "rules"):
            for path in (self.folder / kind).rglob("*"):
                if path.is_file() and str(path.relative_to(self.folder)) not in named:
                    path.unlink()
        for path in (self.folder / "facts").glob("*"):
            if not any(path.iterdir()):
                path.rmdir()
        shutil.rmtree(self.folder / "staging", ignore_errors=True)

    def lock(self) -> Lock:
        """One writer at a time."""
        return Lock(self.folder / _LOCK)


class Lock:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Lock:
        try:
            with self.path.open("x") as out:
                out.write(str(os.getpid()))
        except FileExistsError:
            owner = self.path.read_text() or "0"
            if Path(f"/proc/{owner}").exists() and int(owner) != os.getpid():
                raise StoreError(
                    f"{self.path.parent}: process {owner} is writing this store; wait for it, or end it"
                ) from None
            self.path.write_text(str(os.getpid()))  # left by a process that is gone
        return self

    def __exit__(self, *_: object) -> None:
        self.path.unlink(missing_ok=True)


def create_store(folder: Path, overwrite: bool = False) -> Store:
    """An empty store in a folder of its own."""
    if (folder / _MANIFEST).exists():
        if not overwrite:
            raise StoreError(
                f"{folder} has a store already; hdlog update adds to it, --overwrite replaces it"
            )
        shutil.rmtree(folder)
    if folder.exists() and any(p.name != _LOCK for p in folder.iterdir()):
        if not (folder / "staging").exists():
            raise StoreError(f"{folder} is not empty, and no store; name another folder")
        shutil.rmtree(folder)  # a run that never came to its first snapshot
    folder.mkdir(parents=True, exist_ok=True)
    return Store(folder, Manifest())


def open_store(folder: Path) -> Store:
    path = folder / _MANIFEST
    if not path.exists():
        raise StoreError(f"{folder}: no store there; hdlog load or hdlog materialise make one")
    found = json.loads(path.read_text(encoding="utf-8"))
    if found.pop("format") != _FORMAT:
        raise StoreError(
            f"{folder}: made by hdlog {found.get('version')}, whose format this one does not know"
        )
    facts = tuple(
        Facts(**{**f, "files": _files(f["files"]), "distinct": tuple(f["distinct"])}) for f in found["facts"]
    )
    return Store(
        folder,
        Manifest(
            **{
                **found,
                "facts": facts,
                "term_files": _files(found["term_files"]),
                "skolem_files": _files(found["skolem_files"]),
                "rules": tuple(RuleFile(**r) for r in found["rules"]),
            }
        ),
    )


def _files(found: Sequence[dict[str, Any]]) -> tuple[File, ...]:
    return tuple(File(**f) for f in found)
