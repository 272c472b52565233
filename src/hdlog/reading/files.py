"""Files of facts into chunks: `find_splits` says what tasks there are, `read_split` does one of them."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from hdlog.errors import InputError
from hdlog.reading.chunks import Chunk, Layout, Reading
from hdlog.reading.json_lines import read_json
from hdlog.reading.ntriples_lines import read_document, read_lines
from hdlog.reading.splits import Split, find_splits
from hdlog.reading.tables import read_parquet, read_separated

__all__ = ["Chunk", "InputError", "Split", "find_splits", "read_split"]

_READERS: dict[str, Callable[[Reading], None]] = {
    "nt": read_lines,
    "nq": read_lines,
    "ttl": read_document,
    "rdf": read_document,
    "csv": read_separated,
    "tsv": read_separated,
    "facts": read_separated,
    "parquet": read_parquet,
    "jsonl": read_json,
}


def read_split(split: Split, layout: Layout = MappingProxyType({}), lenient: bool = False) -> Chunk:
    """The facts of a split; `layout` are the attributes of declared predicates.

    A triple (s, p, o) is the fact p(s, o), or o(s) if p is rdf:type and o an IRI. What is malformed is an error with its
    file and line, or, if lenient, a line less.
    """
    reading = Reading(split, layout, lenient)
    _READERS[split.format](reading)
    return reading.chunk()
