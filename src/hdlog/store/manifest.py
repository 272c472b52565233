"""What a version of a store consists of: which files count, the rules, and how it came about. JSON, and checked when it is read."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

from hdlog.errors import StoreError
from hdlog.store.disk import File

FORMAT = 4


@dataclass(frozen=True)
class RuleFile:
    """The rules of one file, as they were given."""

    name: str
    dialect: str
    file: File


@dataclass(frozen=True)
class Image:
    """The tables of the embedded engine, as it maps them; made from the rest, and made again where it is missing."""

    files: Mapping[str, File]
    absorbed: tuple[str, ...]
    """the files of facts that are in it; others came later"""
    terms: tuple[str, ...]
    """likewise files of terms"""


@dataclass(frozen=True)
class Entry:
    """A line of the log: when a version was made, by whom, and what came and went."""

    version: int
    created: float
    by: str
    command: str
    added: int = 0
    removed: int = 0
    facts: int = 0


@dataclass(frozen=True)
class Manifest:
    entry: Entry = field(default_factory=lambda: Entry(0, 0.0, "", ""))
    program_version: str = ""
    keep: int = 10
    """versions that are kept"""
    facts: tuple[File, ...] = ()
    """facts with differences of their supports, to be added up; in the order in which they came"""
    terms: tuple[File, ...] = ()
    skolems: tuple[File, ...] = ()
    catalogue: tuple[File, ...] = ()
    """predicates with what is known of them; a later line on a predicate takes the place of an earlier one"""
    plans: File | None = None
    """how rules are evaluated, and what their nodes keep"""
    rules: tuple[RuleFile, ...] = ()
    history: File | None = None
    """log of versions that are gone"""
    image: Image | None = None
    clashes: Mapping[str, int] = field(default_factory=dict)
    """texts whose hash belongs to another text, with the ids that they have instead"""
    typed: bool = False
    """whether a term is a literal with a datatype or language"""
    counts: Mapping[str, int] = field(default_factory=dict)
    """facts, asserted, terms, skolems, predicates"""
    tuning: Mapping[str, Any] = field(default_factory=dict)
    materialised: bool = False
    unfinished: tuple[int, ...] | None = None
    """the numbers of the rules that are evaluated, as long as not all are; then this is no version yet"""
    batches: Mapping[str, int] = field(default_factory=dict)
    """of change streams: the last batch that is in this version"""

    @property
    def version(self) -> int:
        return self.entry.version

    def files(self) -> Iterator[File]:
        yield from self.facts
        yield from self.terms
        yield from self.skolems
        yield from self.catalogue
        yield from (rules.file for rules in self.rules)
        yield from (file for file in (self.plans, self.history) if file is not None)
        if self.image is not None:
            yield from self.image.files.values()


def write_manifest(manifest: Manifest) -> bytes:
    content = json.dumps(asdict(manifest), ensure_ascii=False, separators=(",", ":"))
    checksum = zlib.crc32(content.encode())
    return f'{{"format":{FORMAT},"checksum":{checksum},"content":{content}}}\n'.encode()


def read_manifest(data: bytes, place: str) -> Manifest:
    """Refuse one that is damaged, or of another format."""
    try:
        whole = json.loads(data)
        version = whole["format"]
    except (ValueError, KeyError, TypeError):
        raise StoreError(f"{place}: damaged; this is no manifest of a store") from None
    if version != FORMAT:
        made_by = whole.get("version") or whole.get("content", {}).get("program_version") or "another version"
        raise StoreError(f"{place}: made by hdlog {made_by}, whose format {version} this one does not know")
    try:
        content = whole["content"]
        spelt = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        if zlib.crc32(spelt.encode()) != whole["checksum"]:
            raise StoreError(f"{place}: damaged; it is not what was written")
        manifest = _manifest(content)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise StoreError(f"{place}: damaged; parts of the manifest are missing") from None
    for file in manifest.files():
        if PurePosixPath(file.path).is_absolute() or ".." in PurePosixPath(file.path).parts:
            raise StoreError(f"{place}: names {file.path}, which is outside of the store")
    return manifest


def _manifest(content: dict[str, Any]) -> Manifest:
    image = content["image"]
    return Manifest(
        **{
            **content,
            "entry": Entry(**content["entry"]),
            **{kind: _files(content[kind]) for kind in ("facts", "terms", "skolems", "catalogue")},
            **{kind: File(**content[kind]) if content[kind] else None for kind in ("plans", "history")},
            "rules": tuple(RuleFile(**{**r, "file": File(**r["file"])}) for r in content["rules"]),
            "unfinished": None
            if content.get("unfinished") is None
            else tuple(map(int, content["unfinished"])),
            "image": image
            and Image(
                {name: File(**f) for name, f in image["files"].items()},
                tuple(image["absorbed"]),
                tuple(image["terms"]),
            ),
        }
    )


def _files(entries: Sequence[dict[str, Any]]) -> tuple[File, ...]:
    return tuple(File(**f) for f in entries)
