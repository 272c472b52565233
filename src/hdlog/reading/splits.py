"""Files, folders and patterns into the parts of files that one task reads, and parts into blocks of whole lines."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from glob import glob, has_magic
from io import BufferedReader
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

import pyarrow as pa

from hdlog.errors import InputError
from hdlog.places import Place, Remote, place

FORMATS = {
    ".nt": "nt",
    ".nq": "nq",
    ".ttl": "ttl",
    ".trig": "trig",
    ".rdf": "rdf",
    ".xml": "rdf",
    ".owl": "rdf",
    ".csv": "csv",
    ".tsv": "tsv",
    ".facts": "facts",
    ".parquet": "parquet",
    ".jsonl": "jsonl",
}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_BY_LINES = ("nt", "nq", "tsv", "facts", "jsonl")
_PART = re.compile(r"part-")
_SPARK_PART = re.compile(r"part-\d{5}(-[0-9a-f-]{36}|-\w+)?([-.]|$)")
_VALUE = re.compile(r"[^=]+=.*")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_PIECE, _PIECES = 1 << 16, 1 << 10
"""Bytes that are looked at together, and in how many places of a file, to tell it from others: all of it up to 64 MB."""
"""Formats in which every line stands for itself; a value of a CSV file may have several."""
_RDF = ("nt", "nq", "ttl", "trig", "rdf")
MARK = b"\xef\xbb\xbf"
"""What some programs begin UTF-8 with."""
_KNOWN = f"known: {', '.join(FORMATS)}, each also with {' or '.join(COMPRESSIONS)}"
_BLOCK = 4 << 20
_SMALLEST, _LARGEST = 4 << 20, 16 << 20
"""Bytes of a split, where nobody says how many."""
_TIMES_IN_MEMORY = 40
"""What is read of a file may take, on all cores and on its way to the engine, as many times as much."""


@dataclass(frozen=True)
class Split:
    """A part of a file that one task reads.

    `start` and `end` are bytes where lines stand for themselves: a split has the lines that begin in between. They are
    row groups of a Parquet file. An end of -1 is that of the file.
    """

    path: str
    format: str
    start: int = 0
    end: int = -1
    name: str = ""
    delimiter: str = ""
    header: bool | None = None
    scope: str | None = ""
    """what tells the blank nodes of this file from those of others, None if that is to be found out when there are any; none in formats
    without such nodes"""
    souffle: bool = False
    """whether the file is as Soufflé writes it: no quotes, unless it asks for them"""
    rfc4180: bool = False
    """whether values may be in quotes"""
    columns: tuple[int, ...] | None = None
    """which columns of the file are the arguments, in their order; all, if it does not say"""
    fields: tuple[str, ...] = ()
    """the names of the columns that are the arguments, in their order, where somebody has chosen some; rows without a value there are left out"""
    memory: int | None = None
    """bytes that the process may use while it is read"""
    partition: tuple[tuple[str, int | str], ...] = ()
    """columns that are in the names of folders, as Spark writes a table by its values of some"""
    data: bytes | None = field(default=None, repr=False)
    """what can be read only once: of a pipe"""

    @property
    def table(self) -> str:
        """The predicate of a file that does not name any."""
        return self.name or place(self.path).name.split(".")[0]

    @property
    def compression(self) -> str | None:
        return COMPRESSIONS.get(place(self.path).suffix.lower())


def find_splits(
    inputs: Sequence[str | Place], size: int | None = None, name: str = "", memory: int | None = None
) -> list[Split]:
    """Parts of about `size` bytes of all files that the inputs name: files, folders with all in them, patterns; by paths or URIs.

    Unless it is said, there is a part for each core, or several if they would be too large: terms that several parts have are looked
    up once for each. With little `memory` they are small. `name` is the predicate of tables that do not say theirs, in place of the name of the file.
    """
    paths = dict.fromkeys(path for entry in inputs for path in _files(str(entry)))
    triples = [path for path in paths if name and format_of(path) in _RDF]
    if triples:
        raise InputError(
            f"{triples[0]}: triples say their predicates themselves; give the file without the name {name}"
        )
    if size is None:
        total = sum(path.stat().st_size for path in paths if path.is_file())
        cores = os.cpu_count() or 1
        largest = _LARGEST if memory is None else max(_SMALLEST, min(_LARGEST, memory // _TIMES_IN_MEMORY))
        rounds = -(-total // (cores * largest)) or 1
        size = max(total // (cores * rounds) + 1, _SMALLEST)
    partitions = _find_partitions(paths)
    return [
        replace(split, name=name or _table_of(path), partition=partitions.get(path, ()), memory=memory)
        for path in paths
        for split in _cut_into_splits(path, size)
    ]


def _table_of(path: Place) -> str:
    """The name of a table that is a folder of parts, as Spark and others write it."""
    return _folder_of(path).name.split(".")[0] if _is_part(path) else ""


def _folder_of(part: Place) -> Place:
    """The folder of the table that a part belongs to, above those for values of a column."""
    folder = part.absolute().parent
    while _VALUE.fullmatch(folder.name):
        folder = folder.parent
    return folder


def _find_partitions(paths: Iterable[Place]) -> dict[Place, tuple[tuple[str, int | str], ...]]:
    """The columns that are in the names of folders; whole numbers where a table has nothing else in one."""
    found: dict[Place, list[tuple[str, str]]] = {}
    for path in paths:
        above = _below(path.absolute().parent, _folder_of(path))
        if above and _is_part(path):
            if format_of(path) != "parquet":
                raise InputError(
                    f"{path}: a table in folders for the values of a column is read from Parquet only"
                )
            found[path] = [_value_in(path, part) for part in above]
    texts: dict[tuple[Place, str], list[str]] = {}
    for path, values in found.items():
        for column, text in values:
            texts.setdefault((_folder_of(path), column), []).append(text)
    whole = {column for column, each in texts.items() if all(_WHOLE.fullmatch(text) for text in each)}
    return {
        path: tuple((c, int(text) if (_folder_of(path), c) in whole else text) for c, text in values)
        for path, values in found.items()
    }


def _value_in(path: Place, part: str) -> tuple[str, str]:
    column, _, value = part.partition("=")
    if value == "__HIVE_DEFAULT_PARTITION__":
        raise InputError(f"{path}: no value in column {column}")
    return unquote(column), unquote(value)


def _is_part(path: Place) -> bool:
    """Whether a file is part of a table that is its folder: by Spark's names, or by the marks that others leave."""
    return bool(_PART.match(path.name)) and (
        bool(_SPARK_PART.match(path.name))
        or (path.parent / "_SUCCESS").exists()
        or format_of(path.parent) == format_of(path)
    )


def size_of(splits: Sequence[Split]) -> int:
    """Bytes of the files that splits are parts of."""
    pipes = sum(len(s.data) for s in splits if s.data is not None)
    return pipes + sum(_size_of(path) for path in {s.path for s in splits if s.data is None})


def _size_of(path: str) -> int:
    return place(path).stat().st_size


def _below(path: Place, folder: Place) -> tuple[str, ...]:
    """The names on the way from a folder to what is in it."""
    assert type(path) is type(folder)
    return path.relative_to(folder).parts  # type: ignore[arg-type]


def _files(entry: str) -> Sequence[Place]:
    path = place(entry)
    return _local_files(entry, path) if isinstance(path, Path) else _remote_files(path)


def _remote_files(path: Remote) -> list[Remote]:
    with report_input_errors(str(path)):
        folder, pattern = (path, "") if not has_magic(path.path) else _split_pattern(path)
        if not pattern and path.is_file():
            _check_format(path)
            return [path]
        if not folder.is_dir():
            raise InputError(f"{path}: no such file or folder")
        found = [p for p in folder.list_all() if format_of(p) and not _is_hidden(p, folder)]
        if pattern:
            found = [p for p in found if _matches(_below(p, folder), pattern.split("/"))]
    if not found:
        raise InputError(f"{path}: no file with a known ending here; {_KNOWN}")
    return found


def _split_pattern(path: Remote) -> tuple[Remote, str]:
    """The folder that a pattern begins in, and the rest."""
    names = path.path.split("/")
    first = next(i for i, name in enumerate(names) if has_magic(name))
    return replace(path, path="/".join(names[:first])), "/".join(names[first:])


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether names of folders, and of a file in the end, are as a pattern says, as `glob` has it."""
    if not names or not patterns:
        return not names and all(p == "**" for p in patterns)
    if patterns[0] == "**":
        return _matches(names, patterns[1:]) or _matches(names[1:], patterns)
    return fnmatchcase(names[0], patterns[0]) and _matches(names[1:], patterns[1:])


def _check_format(path: Place) -> None:
    if not format_of(path):
        ending = next((e for e in reversed(path.suffixes) if e not in COMPRESSIONS), "")
        raise InputError(f"{path}: unknown ending {ending!r}; {_KNOWN}")


def _local_files(entry: str, path: Path) -> list[Path]:
    for folder in (path, *path.absolute().parents):
        if (folder / "manifest.json").is_file() and (folder / "facts").is_dir():
            raise InputError(f"{folder} is a store; hdlog export writes its facts to files that can be read")
    if path.is_dir():
        files = [
            p for p in sorted(path.rglob("*")) if p.is_file() and format_of(p) and not _is_hidden(p, path)
        ]
    elif path.exists():
        _check_format(path)
        return [path]
    elif has_magic(entry):
        matches = [Path(p) for p in sorted(glob(entry, recursive=True))]
        files = [p for p in matches if p.is_file() and format_of(p)]
    else:
        raise InputError(f"{path}: no such file or folder")
    if not files:
        raise InputError(f"{path}: no file with a known ending here; {_KNOWN}")
    return files


def _is_hidden(path: Place, folder: Place) -> bool:
    """What Spark and others keep beside data: _SUCCESS, .crc files, ._anything."""
    return any(part[0] in "._" for part in _below(path, folder))


def format_of(path: Place) -> str:
    """The format of a file of facts, by its ending; none for other files."""
    endings = [e.lower() for e in path.suffixes]
    if endings and endings[-1] in COMPRESSIONS:
        endings.pop()
    return FORMATS.get(endings[-1], "") if endings else ""


def _cut_into_splits(path: Place, size: int) -> list[Split]:
    whole = Split(str(path), format_of(path))
    if whole.format in _RDF:
        whole = replace(whole, scope=None)
    if not path.is_file():
        with report_input_errors(whole.path):
            return [replace(whole, data=path.read_bytes())]
    if whole.compression:
        return [whole]
    if whole.format == "parquet":
        return [Split(whole.path, "parquet", *groups) for groups in _row_groups(whole, size)]
    with report_input_errors(whole.path):
        length = path.stat().st_size
    if whole.format not in _BY_LINES or length <= size:
        return [whole]
    starts = range(0, length, size)
    return [replace(whole, start=start, end=min(start + size, length)) for start in starts]


def scope_of(split: Split) -> str:
    """What blank nodes of a split are told from others by."""
    if split.scope is not None:
        return split.scope
    if split.data is not None:
        return _digest(split)
    with report_input_errors(split.path):
        return _scope(replace(split, start=0, end=-1), place(split.path).stat().st_mtime_ns)


@lru_cache(maxsize=1000)
def _scope(split: Split, changed: int) -> str:
    return _digest(split)


def _digest(split: Split) -> str:
    """Blank nodes are those of a document: of a file with this content, wherever it is and however it is compressed.

    So a file that was added can be deleted again, and one that is written anew has other nodes. Of a large file only a part is looked at.
    """
    length = _length(split)
    digest = hashlib.blake2b(str(length).encode())
    step = max(_PIECE, length // _PIECES)
    with open_split(split) as stream:
        for start in range(0, length, step):
            digest.update(stream.read(_PIECE))
            if split.compression:
                stream.read(step - _PIECE)
            else:
                stream.seek(min(start + step, length))
    return digest.hexdigest()[:10]


def _length(split: Split) -> int:
    """Bytes of the file of a split, uncompressed."""
    with open_split(split) as stream:
        if not split.compression:
            return stream.seek(0, os.SEEK_END)
        return sum(map(len, iter(lambda: stream.read(_BLOCK), b"")))


def _row_groups(split: Split, size: int) -> list[tuple[int, int]]:
    """Ranges of row groups of about `size` bytes."""
    import pyarrow.parquet as pq

    with report_input_errors(split.path), pq.ParquetFile(source_of(split.path)) as file:
        sizes = [file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups)]
    ranges, start, total = [], 0, 0
    for i, more in enumerate(sizes):
        if i > start and total + more > size:
            ranges.append((start, i))
            start, total = i, 0
        total += more
    return [*ranges, (start, len(sizes))]


@contextmanager
def report_input_errors(path: str) -> Iterator[None]:
    """Files that cannot be opened, uncompressed or understood are errors of the user."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: {os.strerror(error.errno) if error.errno else error}") from None
    except pa.ArrowException as error:
        raise InputError(f"{path}: {error}") from None


@contextmanager
def open_split(split: Split) -> Iterator[IO[bytes]]:
    """The bytes of the file of a split, uncompressed."""
    with report_input_errors(split.path):
        if split.data is not None:
            source = pa.BufferReader(split.data)
            with pa.input_stream(source, compression=split.compression) as stream:
                yield BufferedReader(stream)
        elif split.compression:
            with pa.input_stream(source_of(split.path), compression=split.compression) as stream:
                yield BufferedReader(stream)
        else:
            with place(split.path).open("rb") as file:
                yield file


def source_of(path: str) -> Any:
    """A file as pyarrow reads it: by its path, or from another file system."""
    found = place(path)
    return str(found) if isinstance(found, Path) else found.open_input()


def blocks(split: Split, size: int = _BLOCK) -> Iterator[tuple[int, bytes]]:
    """The lines of a split in blocks of about `size` bytes, each with its place in the uncompressed file."""
    with open_split(split) as stream:
        yield from cut_blocks(stream, split.start, split.end, size)


def cut_blocks(
    stream: IO[bytes], start: int = 0, end: int = -1, size: int = _BLOCK
) -> Iterator[tuple[int, bytes]]:
    """The lines that begin between two places, in blocks, each with its place."""
    at = 0
    if start > 0:
        stream.seek(start - 1)
        at = start - 1 + len(stream.readline())
    first = b"" if start else stream.read(len(MARK))
    if first == MARK:
        at, first = len(MARK), b""
    elif first and end >= 0:
        stream.seek(0)
        first = b""
    while end < 0 or at < end:
        block = first + stream.read(size if end < 0 else min(size, max(0, end - at - len(first))))
        first = b""
        if not block:
            return
        if not block.endswith(b"\n"):
            block += stream.readline()
        yield at, block
        at += len(block)


def content(split: Split) -> bytes:
    return b"".join(block for _, block in blocks(split))


class LineNumbers:
    """Numbers of lines of a whole file, from 1, by place in the uncompressed file.

    To know one, all before it is read, unless the file is not compressed and an earlier place was asked for before.
    """

    def __init__(self, split: Split) -> None:
        self._split = split
        self._place, self._number = 0, 1

    def of(self, place: int) -> int:
        if self._split.compression or place < self._place:
            self._place, self._number = 0, 1
        with open_split(self._split) as stream:
            if self._place:
                stream.seek(self._place)
            while self._place < place and (block := stream.read(min(place - self._place, _BLOCK))):
                self._number += block.count(b"\n")
                self._place += len(block)
        return self._number
