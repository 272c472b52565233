"""Files of facts into chunks: `find_splits` says what tasks there are, `read_split` does one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from hdlog.engines.load import InputError
from hdlog.pipeline.chunks import Chunk, Reading
from hdlog.pipeline.json_lines import read_json
from hdlog.pipeline.ntriples_lines import read_document, read_lines
from hdlog.pipeline.splits import Split, find_splits
from hdlog.pipeline.tables import read_parquet, read_separated

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


def read_split(
    split: Split, types: Mapping[str, Sequence[str]] = MappingProxyType({}), lenient: bool = False
) -> Chunk:
    """The facts of a split; `types` are those of attributes, by predicate.

    A triple (s, p, o) is the fact p(s, o), or o(s) if p is rdf:type and o an IRI. What is malformed is an error with its
    file and line, or, if lenient, a line less.
    """
    reading = Reading(split, types, lenient)
    _READERS[split.format](reading)
    return reading.chunk()
