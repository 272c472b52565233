"""What a store does with the file system, in one place: files that are written whole and made durable, read and checked, mapped, removed.

Tests put faults here (`tests/faults.py`): each of these functions may fail, or be the last that a process does.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdlog.errors import StoreError
from hdlog.places import Place

_BLOCK = 4 << 20
BLOCK = 1 << 20
"""Bytes of a block with a checksum of its own."""
CHECKED = 64 << 20
"""Bytes up to which a file is checked whole whenever it is read. Of a larger one those pages of Parquet that are read, or some blocks, are checked, and
all of it when somebody asks for that (`hdlog verify`)."""


@dataclass(frozen=True)
class File:
    """A file of a store, which never changes."""

    path: str
    """inside the store"""
    bytes: int
    checksum: int
    """CRC-32 of its content"""
    rows: int = 0
    first: int = 0
    last: int = 0
    """numbers of the first and the last predicate whose facts are in it"""
    tail: int | None = None
    """CRC-32 of its last block, where Parquet says what is in a file"""


class HasFiles(Protocol):
    """The folder of a store."""

    def __truediv__(self, name: str) -> Path:
        """A file of it, to be read here."""

    def size(self, name: str) -> int: ...


class Sink:
    """A file that is being written: bytes go to it, and are counted and summed up."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.bytes = 0
        self.checksum = 0
        self.blocks: list[int] = []
        """CRC-32 of each block of BLOCK bytes so far, the last one in part"""
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B") if not isinstance(data, bytes) else data
        write(self._file, view)
        self.checksum = zlib.crc32(view, self.checksum)
        self._sum_blocks(view)
        self.bytes += len(view)
        return len(view)

    def _sum_blocks(self, view: memoryview | bytes) -> None:
        done = 0
        while done < len(view):
            within = (self.bytes + done) % BLOCK
            piece = view[done : done + BLOCK - within]
            if within:
                self.blocks[-1] = zlib.crc32(piece, self.blocks[-1])
            else:
                self.blocks.append(zlib.crc32(piece))
            done += len(piece)

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def write(file: IO[bytes], data: Any) -> None:
    file.write(data)


def sync(file: IO[bytes]) -> None:
    """Have what was written to a file on the disk."""
    file.flush()
    sync_descriptor(file.fileno())


def sync_descriptor(descriptor: int) -> None:
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Have the names of the files of a folder on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        sync_descriptor(handle)
    finally:
        os.close(handle)


def replace(path: Path, target: Path) -> None:
    os.replace(path, target)


def remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.unlink()


@contextmanager
def create(path: Path) -> Iterator[Sink]:
    """A new file: durable when this is over, gone after an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("xb") as file:
            sink = Sink(file)
            yield sink
            sync(file)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


@contextmanager
def create_at(target: Place) -> Iterator[Sink]:
    """A new file, wherever that is: whole and durable when this is over."""
    if isinstance(target, Path):
        with create(target) as sink:
            yield sink
        sync_folder(target.parent)
        return
    with target.open_output() as out:
        yield Sink(out)


def write_pointer(path: Path, data: bytes) -> None:
    """Replace a small file in one step: whoever reads it has the old one or the new one, whatever happens."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with fresh.open("wb") as file:
            write(file, data)
            sync(file)
        replace(fresh, path)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise
    sync_folder(path.parent)


def check(folder: HasFiles, file: File) -> None:
    """Read all of a file, and refuse one that is not what was written."""
    path = folder / file.path
    with _report_damage(path):
        measured = measure(path)
    if measured != (file.bytes, file.checksum):
        raise StoreError(f"{path}: damaged; it is not what was written")


def check_size(folder: HasFiles, file: File) -> None:
    """Refuse a file that is gone, or shorter or longer than it was written."""
    named = f"{folder}/{file.path}"
    with _report_damage(named):
        size = folder.size(file.path)
    if size != file.bytes:
        raise StoreError(f"{named}: damaged; it has {size:,} bytes, not {file.bytes:,}")


def measure(path: Path) -> tuple[int, int]:
    """How many bytes a file has, and their CRC-32."""
    total, checksum = 0, 0
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
            total += len(block)
    return total, checksum


def read(folder: HasFiles, file: File) -> pa.Buffer:
    """The content of a file, checked."""
    path = folder / file.path
    with _report_damage(path):
        data = (
            pa.OSFile(str(path)).read_buffer()
            if file.bytes <= CHECKED
            else pa.memory_map(str(path)).read_buffer()
        )
    is_damaged = len(data) != file.bytes
    if not is_damaged and file.bytes <= CHECKED:
        is_damaged = zlib.crc32(data) != file.checksum
    elif not is_damaged and file.tail is not None:
        is_damaged = zlib.crc32(data.slice((file.bytes - 1) // BLOCK * BLOCK)) != file.tail
    if is_damaged:
        raise StoreError(f"{path}: damaged; it is not what was written")
    return data


def map_bytes(folder: HasFiles, file: File) -> NDArray[np.uint8]:
    """The content of a file where it is; what is changed in it is changed for this process only."""
    path = folder / file.path
    with _report_damage(path):
        check_size(folder, file)
        if not file.bytes:
            return np.empty(0, np.uint8)
        mapped = np.asarray(np.memmap(path, np.uint8, "c"))
    if file.bytes <= CHECKED and zlib.crc32(mapped.data) != file.checksum:
        raise StoreError(f"{path}: damaged; it is not what was written")
    return mapped


@contextmanager
def _report_damage(path: Path | str) -> Iterator[None]:
    """A file of a store that cannot be read is an error of the store."""
    try:
        yield
    except FileNotFoundError:
        raise StoreError(f"{path}: missing; the store is damaged") from None
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{path}: cannot be read ({error})") from None
