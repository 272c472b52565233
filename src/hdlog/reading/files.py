"""Files of facts into chunks: `find_splits` says what tasks there are, `read_split` does one of them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import MappingProxyType

from hdlog.errors import InputError
from hdlog.reading.chunks import Chunk, Layout, Reading
from hdlog.reading.json_lines import read_json
from hdlog.reading.ntriples_lines import read_document, read_lines
from hdlog.reading.splits import Split, find_splits
from hdlog.reading.tables import read_parquet, read_separated

__all__ = ["Chunk", "InputError", "Split", "find_splits", "read_split", "read_splits"]

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


def read_split(split: Split, layout: Layout = MappingProxyType({}), lenient: bool = False) -> Chunk:
    """The facts of a split; `layout` are the attributes of declared predicates.

    A triple (s, p, o) is the fact p(s, o), or o(s) if p is rdf:type and o an IRI. What is malformed is an error with its
    file and line, or, if lenient, a line less.
    """
    reading = Reading(split, layout, lenient)
    _READERS[split.format](reading)
    return reading.chunk()


def read_splits(
    splits: Sequence[Split], layout: Layout = MappingProxyType({}), lenient: bool = False
) -> Iterator[Chunk]:
    """The facts of splits, one after the other; on all cores, and while somebody works with those that came before."""
    workers = min(os.cpu_count() or 1, len(splits))
    if workers < 2:
        yield from (read_split(split, layout, lenient) for split in splits)
        return
    pool = ThreadPoolExecutor(workers, "hdlog-reading")
    waiting: deque[Future[Chunk]] = deque()
    try:
        for split in splits:
            waiting.append(pool.submit(read_split, split, layout, lenient))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # Whatever happens: nobody reads on when this is over.
        pool.shutdown(cancel_futures=True)
