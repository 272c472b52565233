"""Where a store is: a folder of this machine, or one in another file system, which has a copy here of what was read and written of it.

Files of a store never change, so a copy is as good as the file. Only the pointers do, the manifest and those of versions, which are always
read where the store is.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hdlog.errors import StoreError
from hdlog.places import Entry, Place, Remote
from hdlog.store import disk

_CACHE = "HDLOG_CACHE"
_ABANDONED = 24 * 3600.0
"""Seconds after which a file elsewhere that no version names is left over, and not one that somebody is about to name."""
_PIECE = 8 << 20


class Folder:
    """One of this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()  # Spark's processes have working folders of their own

    def __str__(self) -> str:
        return str(self.path)

    def __truediv__(self, name: str) -> Path:
        """A file, to be read here."""
        return self.path / name

    @property
    def place(self) -> Place:
        """Where others find it."""
        return self.path

    def has(self, name: str) -> bool:
        return (self.path / name).exists()

    def size(self, name: str) -> int:
        return (self.path / name).stat().st_size

    def names(self, kind: str) -> list[str]:
        """What there is of some kind, sorted."""
        return sorted(p.name for p in (self.path / kind).glob("*"))

    def names_at_top(self) -> list[str]:
        return [p.name for p in self.path.iterdir()] if self.path.exists() else []

    def is_left_over(self, name: str) -> bool:
        """Whether a file that no version names may go; here, where there is one writer at a time."""
        return True

    def publish(self, name: str) -> None:
        """A file that was written here is part of the store."""

    def read_pointer(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def write_pointer(self, name: str, data: bytes) -> None:
        target = self.path / name
        target.parent.mkdir(exist_ok=True)
        disk.write_pointer(target, data)

    def remove(self, name: str) -> None:
        disk.remove(self.path / name)


class Mirrored(Folder):
    """One in another file system, and its copy."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        digest = hashlib.sha1(str(remote).encode()).hexdigest()
        super().__init__(_find_cache() / "stores" / f"{remote.name}-{digest[:16]}")
        self._listed: dict[str, Entry] | None = None

    def __str__(self) -> str:
        return str(self.remote)

    @property
    def place(self) -> Place:
        return self.remote

    def __truediv__(self, name: str) -> Path:
        path = self.path / name
        if not path.exists():
            self._fetch(name, path)
        return path

    def _fetch(self, name: str, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            with (self.remote / name).open() as source, fresh.open("wb") as target:
                while piece := source.read(_PIECE):
                    target.write(piece)
            fresh.replace(path)
        except FileNotFoundError:
            raise StoreError(f"{self.remote / name}: missing; the store is damaged") from None
        except OSError as error:
            raise StoreError(f"{error}; the store was not read") from None
        finally:
            with suppress(OSError):
                fresh.unlink()

    @property
    def _files(self) -> dict[str, Entry]:
        if self._listed is None:
            skipped = len(self.remote.path) + 1 if self.remote.path else 0
            with _told_of_store():
                self._listed = {p.path[skipped:]: e for p, e in self.remote.list_entries()}
        return self._listed

    def has(self, name: str) -> bool:
        return name in self._files

    def size(self, name: str) -> int:
        if name not in self._files:
            raise FileNotFoundError(2, "No such file", name)
        return self._files[name].st_size

    def names(self, kind: str) -> list[str]:
        found = (name for name in self._files if name.startswith(f"{kind}/"))
        return sorted(name.removeprefix(f"{kind}/") for name in found)

    def names_at_top(self) -> list[str]:
        return sorted({name.partition("/")[0] for name in self._files})

    def is_left_over(self, name: str) -> bool:
        return time.time() - self._files[name].st_mtime_ns / 1e9 > _ABANDONED

    def publish(self, name: str) -> None:
        with _told_of_store():
            size = (self.remote / name).upload(self.path / name)
        if self._listed is not None:
            self._listed[name] = Entry(size, time.time_ns())

    def read_pointer(self, name: str) -> bytes:
        with _told_of_store():
            return (self.remote / name).read_bytes()

    def write_pointer(self, name: str, data: bytes) -> None:
        with _told_of_store():
            (self.remote / name).write_bytes(data)
        if self._listed is not None:
            self._listed[name] = Entry(len(data), time.time_ns())

    def remove(self, name: str) -> None:
        disk.remove(self.path / name)
        with suppress(FileNotFoundError), _told_of_store():
            (self.remote / name).unlink()
        if self._listed is not None:
            self._listed.pop(name, None)


@contextmanager
def _told_of_store() -> Iterator[None]:
    """What another file system refuses is an error of the store."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(str(error)) from None


def find_folder(place: Place | Folder) -> Folder:
    if isinstance(place, Folder):
        return place
    return Mirrored(place) if isinstance(place, Remote) else Folder(place)


def _find_cache() -> Path:
    """Where copies of what is elsewhere are kept; HDLOG_CACHE names another folder."""
    own = os.environ.get(_CACHE)
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hdlog"
