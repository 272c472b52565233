"""Files wherever they are: on this machine, or in another file system, which a URI names.

pyarrow knows s3, gs, hdfs and abfs; for others fsspec is asked, where it is installed. A `Remote` has those methods of a `Path`
that reading and stores need.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import IO, Any, Union
from urllib.parse import unquote, urlsplit

from hdlog.errors import UsageError

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_ALIKE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
"""Schemes that other programs have for the same files; pyarrow's own is the second."""
_BUFFER, _PIECE = 1 << 20, 8 << 20


@dataclass(frozen=True)
class Entry:
    """What is told of a file, as `Path.stat` tells it."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True)
class Remote:
    """A file or folder of another file system."""

    root: str
    """the scheme and what follows the slashes: s3://bucket"""
    path: str = ""
    """without slashes at its ends"""
    options: str = ""
    """of the file system: what follows a question mark"""

    def __str__(self) -> str:
        options = f"?{self.options}" if self.options else ""
        return "/".join(filter(None, (self.root, self.path))) + options

    def __truediv__(self, name: str) -> Remote:
        return Remote(self.root, "/".join(filter(None, (self.path, name))), self.options)

    # Names.

    @cached_property
    def _pure(self) -> PurePosixPath:
        return PurePosixPath(self.path or self.root.rpartition("/")[2])

    @property
    def name(self) -> str:
        return self._pure.name

    @property
    def suffix(self) -> str:
        return self._pure.suffix

    @property
    def suffixes(self) -> list[str]:
        return self._pure.suffixes

    @property
    def parent(self) -> Remote:
        return Remote(self.root, self.path.rpartition("/")[0], self.options)

    def absolute(self) -> Remote:
        return self

    def relative_to(self, folder: Remote) -> PurePosixPath:
        return PurePosixPath(self.path).relative_to(folder.path)

    # The file system.

    @property
    def files(self) -> Any:
        """The file system, as pyarrow has it."""
        return _find_file_system(self.root, self.options)[0]

    @property
    def inside(self) -> str:
        """The path in that file system."""
        base: str = _find_file_system(self.root, self.options)[1]
        return "/".join(filter(None, (base.rstrip("/"), self.path))) or "/"

    @cached_property
    def _info(self) -> Any:
        with _told_as_os_error(self):
            return self.files.get_file_info(self.inside)

    def is_file(self) -> bool:
        return bool(self._info.is_file)

    def is_dir(self) -> bool:
        from pyarrow.fs import FileType

        return bool(self._info.type == FileType.Directory)

    def exists(self) -> bool:
        return self.is_file() or self.is_dir()

    def stat(self) -> Entry:
        if not self.is_file():
            raise FileNotFoundError(2, "No such file or directory", str(self))
        return Entry(int(self._info.size), int(self._info.mtime_ns or 0))

    def list_all(self) -> list[Remote]:
        """The files in a folder and in those in it, sorted."""
        return sorted((found for found, _ in self.list_entries()), key=lambda found: found.path)

    def list_entries(self) -> list[tuple[Remote, Entry]]:
        """The files in a folder and in those in it, and what is told of each; none if there is no such folder."""
        from pyarrow.fs import FileSelector

        with _told_as_os_error(self):
            chosen = FileSelector(self.inside, allow_not_found=True, recursive=True)
            found = self.files.get_file_info(chosen)
        skipped = len(self.inside.rstrip("/")) + 1
        return [
            (self / i.path[skipped:], Entry(int(i.size), int(i.mtime_ns or 0))) for i in found if i.is_file
        ]

    def open_input(self) -> Any:
        """The file, as pyarrow has it: read anywhere."""
        with _told_as_os_error(self):
            return self.files.open_input_file(self.inside)

    def open(self, mode: str = "rb") -> IO[bytes]:
        assert mode == "rb"
        return BufferedReader(self.open_input(), _BUFFER)

    def read_bytes(self) -> bytes:
        with self.open() as file:
            return file.read()

    def write_bytes(self, data: bytes) -> None:
        """Write a small file in one step: whoever reads it has the old one or the new one."""
        with _told_as_os_error(self):
            if _keeps_objects(self.root):
                with self.open_output() as out:
                    out.write(data)
                return
            fresh = self.parent / f"{self.name}.{uuid.uuid4().hex[:12]}.part"
            with fresh.open_output() as out:
                out.write(data)
            self.files.move(fresh.inside, self.inside)

    def open_output(self) -> Any:
        """A new file to write, which has its name when it is closed; elsewhere than in an object store, at once."""
        if not _keeps_objects(self.root):
            self.files.create_dir(self.parent.inside, recursive=True)
        return self.files.open_output_stream(self.inside)

    def upload(self, path: Path) -> int:
        """A file of this machine is this one; how many bytes it has."""
        size = 0
        with _told_as_os_error(self), path.open("rb") as source, self.open_output() as out:
            while piece := source.read(_PIECE):
                out.write(piece)
                size += len(piece)
        return size

    def unlink(self) -> None:
        with _told_as_os_error(self):
            self.files.delete_file(self.inside)


Place = Union[Path, Remote]  # noqa: UP007  (mypy wants a name for it)


def place(text: str | Path | Remote) -> Place:
    """The file or folder that somebody names, by a path or a URI."""
    if not isinstance(text, str):
        return text
    found = _URI.match(text)
    if found is None:
        return Path(text)
    parts = urlsplit(text)
    scheme = found[1].lower()
    if scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise UsageError(f"{text}: files of another machine; a URI of a file here begins with file:///")
        return Path(unquote(parts.path))
    if "@" in parts.netloc and scheme not in ("abfs", "abfss"):
        raise UsageError(
            f"{scheme}://...@{parts.netloc.rpartition('@')[2]}: keys are not part of a name; they belong in the environment "
            f"(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS) or the settings of the machine"
        )
    return Remote(f"{scheme}://{parts.netloc}", parts.path.strip("/"), parts.query)


def _keeps_objects(root: str) -> bool:
    """Whether the file system has no folders but those that names of files make."""
    scheme = root.partition(":")[0]
    return _ALIKE.get(scheme, scheme) in ("s3", "gs")


@lru_cache(maxsize=64)
def _find_file_system(root: str, options: str) -> tuple[Any, str]:
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    scheme, _, rest = root.partition(":")
    uri = f"{_ALIKE.get(scheme, scheme)}:{rest}/" + (f"?{options}" if options else "")
    try:
        files, base = FileSystem.from_uri(uri)
        return files, base
    except pa.ArrowInvalid as error:
        if "nrecognized" not in str(error):
            raise UsageError(f"{root}: {error}") from None
    except (OSError, NotImplementedError) as error:
        raise UsageError(f"{root}: {error}") from None
    return _ask_fsspec(scheme, root, options)


def _ask_fsspec(scheme: str, root: str, options: str) -> tuple[Any, str]:
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    try:
        from fsspec.core import url_to_fs

        files, base = url_to_fs(root + (f"?{options}" if options else ""))
    except (ImportError, ValueError, OSError) as error:
        raise UsageError(
            f"{root}: files by {scheme}:// are not known; known: file, s3, gs, hdfs, abfs, and what fsspec knows, with what it needs ({error})"
        ) from None
    return PyFileSystem(FSSpecHandler(files)), base


@contextmanager
def _told_as_os_error(place: Remote) -> Iterator[None]:
    """What a file system says, with the name of the file it says it of."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(2, "No such file or directory", str(place)) from None
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise OSError(f"{place}: {str(error).splitlines()[0]}") from None
