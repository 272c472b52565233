"""Files of facts into chunks: `find_splits` says what tasks there are, `read_split` does one of them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from types import MappingProxyType

from hdlog.errors import InputError
from hdlog.reading.chunks import Chunk, Layout, Reading, scope_blank_nodes
from hdlog.reading.json_lines import read_json
from hdlog.reading.ntriples_lines import read_document, read_lines
from hdlog.reading.shared_terms import SharedTerms, TermsInTurn
from hdlog.reading.splits import Split, find_splits, size_of
from hdlog.reading.tables import read_parquet, read_separated

__all__ = ["Chunk", "InputError", "Split", "find_splits", "read_split", "read_splits"]

_MOST_RESERVED = 2 << 30
"""Bytes of texts that room is made for before they come."""
_READERS: dict[str, Callable[[Reading], None]] = {
    "nt": read_lines,
    "nq": read_lines,
    "ttl": read_document,
    "trig": read_document,
    "rdf": read_document,
    "csv": read_separated,
    "tsv": read_separated,
    "facts": read_separated,
    "parquet": read_parquet,
    "jsonl": read_json,
}


def read_split(
    split: Split,
    layout: Layout = MappingProxyType({}),
    lenient: bool = False,
    terms: TermsInTurn | None = None,
) -> Chunk:
    """The facts of a split; `layout` are the attributes of declared predicates.

    A triple (s, p, o) is the fact p(s, o), or o(s) if p is rdf:type and o an IRI. What is malformed is an error with its
    file and line, or, if lenient, a line less.
    """
    reading = Reading(split, layout, lenient, terms)
    _READERS[split.format](reading)
    return reading.chunk()


def read_splits(
    splits: Sequence[Split],
    layout: Layout = MappingProxyType({}),
    lenient: bool = False,
    shared: SharedTerms | None = None,
) -> Iterator[Chunk]:
    """The facts of splits, one after the other; on all cores, and while somebody works with those that came before.

    Their terms go to a shared table, if there is one.
    """
    workers = min(os.cpu_count() or 1, len(splits))

    def read(number: int) -> Chunk:
        split = splits[number]
        if shared is None:
            return read_split(split, layout, lenient)
        rename = None if split.scope == "" else partial(scope_blank_nodes, split=split)
        try:
            return read_split(split, layout, lenient, TermsInTurn(shared, number, rename))
        finally:
            shared.finish(number)

    if shared is not None:
        shared.reserve(min(size_of(splits), _MOST_RESERVED))
    if workers < 2:
        yield from map(read, range(len(splits)))
        return
    pool = ThreadPoolExecutor(workers, "hdlog-reading")
    waiting: deque[Future[Chunk]] = deque()
    try:
        for number in range(len(splits)):
            waiting.append(pool.submit(read, number))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # Whatever happens: nobody reads on when this is over.
        pool.shutdown(cancel_futures=True)
