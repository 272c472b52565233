"""Files into a store: parse, encode, split by predicate, deduplicate, count.

Four passes, each a map over independent tasks that read and write files in the store's folder:

1. each split of the input is parsed into a chunk, whose terms have numbers of its own;
2. each bucket of terms gives ids to the terms of all chunks: old ones from the store, new ones the next;
3. each chunk gets these ids, and its facts go to shards by their first column;
4. each shard is deduplicated and written, one file for each predicate, with what the planner wants to know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hdlog.ingest.jobs import Jobs
from hdlog.program.model import Predicate
from hdlog.program.ntriples import SKOLEM, SkolemPart, skolem_parts
from hdlog.reading.chunks import Chunk, Layout
from hdlog.reading.files import read_split
from hdlog.reading.identifiers import StoreIds, inline_integer, skolem_ids
from hdlog.reading.splits import Split, size_of
from hdlog.reading.term_table import TermTable
from hdlog.store.buckets import buckets_of
from hdlog.store.files import distinct_values, mix, sketch, write_facts, write_skolems, write_terms
from hdlog.store.store import Facts, File, Store, report_damage

_BUCKET_BYTES = 256 << 20
"""Of input, for which one more bucket of terms and shard of facts are made."""


@dataclass(frozen=True)
class Loaded:
    """Facts in files that belong to no snapshot yet."""

    facts: tuple[Facts, ...]
    term_files: tuple[File, ...]
    skolem_files: tuple[File, ...]
    terms: int
    """in the dictionary by now"""
    typed: bool
    buckets: int
    read: int
    """facts, as often as they stood in the input"""
    skipped: int = 0
    problems: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        return sum(f.rows for f in self.facts)


@dataclass(frozen=True)
class ParsedChunk:
    """What the driver knows of a chunk."""

    number: int
    predicates: tuple[Predicate, ...]
    rows: int
    skipped: int
    problems: tuple[str, ...]
    typed: bool
    skolems: int


Reader = Callable[[Split], Chunk]


def ingest(
    store: Store,
    splits: Sequence[Split],
    jobs: Jobs,
    layout: Layout | None = None,
    lenient: bool = False,
    parallel: int = 1,
) -> Loaded:
    """The facts of files, encoded with the store's dictionary, each once."""
    reader = partial(read_split, layout=layout or {}, lenient=lenient)
    parts = max(parallel, -(-size_of(splits) // _BUCKET_BYTES))
    staging = store.make_staging_folder()
    buckets = store.manifest.buckets or parts
    parsed = jobs.map("reading", partial(_parse, staging, reader, buckets), list(enumerate(splits)))
    chunks = [p.number for p in parsed]
    known = [[str(store.path(f)) for f in store.manifest.term_files if f.bucket == b] for b in range(buckets)]
    new = jobs.map("encoding terms", partial(_merge, staging, chunks), list(enumerate(known)))
    starts = store.manifest.terms + np.cumsum([0, *new])
    numbers = store.number_predicates(p for chunk in parsed for p in chunk.predicates)
    outcome = jobs.map(
        "encoding facts", partial(_encode, staging, starts[:-1].tolist(), numbers, parts), parsed
    )
    term_files = jobs.map(
        "writing terms",
        partial(_write_terms, store, staging),
        [(b, int(starts[b]), n) for b, n in enumerate(new) if n],
    )
    shards = jobs.map("writing facts", partial(_write_shard, store, staging, chunks), list(range(parts)))
    skolem_files = [_write_skolems(store, outcome)] if any(len(o[0]) for o in outcome) else []
    return Loaded(
        _gather_facts(shards, numbers),
        tuple(term_files),
        tuple(skolem_files),
        int(starts[-1]),
        store.manifest.typed or any(p.typed for p in parsed),
        buckets,
        sum(p.rows for p in parsed),
        sum(p.skipped for p in parsed),
        tuple(problem for p in parsed for problem in p.problems)[:10],
    )


# 1. Splits to chunks.


def _parse(staging: Path, reader: Reader, buckets: int, item: tuple[int, Split]) -> ParsedChunk:
    """Write a chunk: its terms by bucket, its facts with the chunk's own numbers."""
    number, split = item
    chunk = reader(split)
    texts, skolems, places = _separate_skolems(chunk.texts)
    bucket = buckets_of(texts, buckets)
    order = np.argsort(bucket, kind="stable")
    bounds = np.searchsorted(bucket[order], np.arange(buckets + 1))
    schema = pa.schema([("text", pa.string())])
    with pa.ipc.new_file(staging / f"terms-{number}.arrow", schema) as out:
        ordered = texts.take(pa.array(order))
        for b in range(buckets):
            part = ordered.slice(bounds[b], bounds[b + 1] - bounds[b])
            out.write_batch(pa.record_batch([part], schema=schema))
    columns = {f"{i}-{c}": column for i, f in enumerate(chunk.facts.values()) for c, column in enumerate(f)}
    rows = np.array([len(f[0]) if f else 1 for f in chunk.facts.values()], np.int64)
    _save(staging / f"chunk-{number}.npz", {**columns, "order": order, "places": places, "rows": rows})
    if skolems:
        _save_skolems(staging, number, skolems)
    return ParsedChunk(
        number,
        tuple(chunk.facts),
        chunk.rows,
        chunk.skipped,
        tuple(chunk.problems),
        _has_typed(texts),
        len(skolems),
    )


def _save(path: Path, arrays: Mapping[str, NDArray[np.int64]]) -> None:
    np.savez(path, **arrays)  # type: ignore[arg-type]


def _has_typed(texts: pa.Array) -> bool:
    return bool(
        pc.any(pc.and_(pc.starts_with(texts, '"'), pc.invert(pc.ends_with(texts, '"')))).as_py() or False
    )


def _separate_skolems(texts: pa.Array) -> tuple[pa.Array, list[SkolemPart], NDArray[np.int64]]:
    """Terms without Skolem terms, whose arguments come in their place.

    Returns the texts, the Skolem terms, each after those it is made of, and where each given text went: a place among the
    texts, or after them one among the Skolem terms.
    """
    marked = np.flatnonzero(pc.starts_with(texts, SKOLEM).to_numpy(zero_copy_only=False))
    spelt = {int(i): skolem_parts(texts[int(i)].as_py()) for i in marked}
    skolems = {i: parts for i, parts in spelt.items() if parts is not None}
    if not skolems:
        return texts, [], np.arange(len(texts))
    numbers: dict[SkolemPart, int] = {}
    tops = {i: _number_parts(parts, numbers) for i, parts in skolems.items()}
    table = TermTable()
    plain = np.ones(len(texts), np.bool_)
    plain[list(skolems)] = False
    places = np.empty(len(texts), np.int64)
    places[plain] = table.add_texts(texts.filter(pa.array(plain)))
    table.add_texts([a for _, arguments in numbers for a in arguments if isinstance(a, str)])
    places[list(tops)] = np.array(list(tops.values()), np.int64) + len(table)
    return table.texts(), list(numbers), places


def _number_parts(parts: Sequence[SkolemPart], known: dict[SkolemPart, int]) -> int:
    """The number of a Skolem term; it and what it is made of get one if they have none."""
    numbers: list[int] = []
    for name, arguments in parts:
        part = (name, tuple(numbers[a] if isinstance(a, int) else a for a in arguments))
        numbers.append(known.setdefault(part, len(known)))
    return numbers[-1]


_REFERENCE = "="
"""What an argument begins with that is the number of a Skolem term; texts of terms never do."""


def _save_skolems(staging: Path, number: int, skolems: Sequence[SkolemPart]) -> None:
    arguments = [[f"{_REFERENCE}{a}" if isinstance(a, int) else a for a in args] for _, args in skolems]
    table = pa.table(
        {"name": [name for name, _ in skolems], "args": pa.array(arguments, pa.list_(pa.string()))}
    )
    pq.write_table(table, staging / f"skolems-{number}.parquet")


# 2. Ids for the terms of a bucket.


def _merge(staging: Path, chunks: Sequence[int], item: tuple[int, Sequence[str]]) -> int:
    """Number the terms of a bucket; how many are new.

    For each chunk and term its id is written, or for a new term -1 - k where it is the k-th new one of the bucket.
    """
    bucket, files = item
    table = TermTable()
    known = []
    for file in files:
        with report_damage(Path(file)):
            known.append(pq.read_table(file, columns=["id", "text"]))
    old = np.concatenate([np.empty(0, np.int64), *(t["id"].to_numpy() for t in known)])
    for part in known:
        table.add_texts(part["text"].combine_chunks())
    codes = {}
    for chunk in chunks:
        with pa.ipc.open_file(staging / f"terms-{chunk}.arrow") as batches:
            places = table.add_texts(batches.get_batch(bucket).column(0))
        codes[str(chunk)] = np.where(
            places < len(old), old[np.minimum(places, len(old) - 1)] if len(old) else 0, len(old) - 1 - places
        )
    _save(staging / f"codes-{bucket}.npz", codes)
    new = table.texts().slice(len(old))
    with pa.ipc.new_file(staging / f"new-{bucket}.arrow", pa.schema([("text", pa.string())])) as out:
        out.write_batch(pa.record_batch([new], names=["text"]))
    return len(new)


def _write_terms(store: Store, staging: Path, item: tuple[int, int, int]) -> File:
    bucket, start, count = item
    with pa.ipc.open_file(staging / f"new-{bucket}.arrow") as batches:
        texts = batches.get_batch(0).column(0)
    return write_terms(store, np.arange(start, start + count), texts, bucket)


# 3. Facts with ids, by shard.

Encoded = tuple[list[int], list[str], list[list[int]]]
"""Skolem terms of a chunk: ids, names, arguments."""


def _encode(
    staging: Path, starts: Sequence[int], numbers: Mapping[Predicate, int], shards: int, parsed: ParsedChunk
) -> Encoded:
    """Give a chunk its ids and spread its facts over shards."""
    with np.load(staging / f"chunk-{parsed.number}.npz") as saved:
        order = saved["order"]
        ids = _ids_of(staging, starts, parsed, order)
        skolems = _encode_skolems(staging, parsed, ids, order)
        everything = np.concatenate([ids, np.array(skolems[0], np.int64)])[saved["places"]]
        out: dict[str, NDArray[np.int64]] = {}
        for i, predicate in enumerate(parsed.predicates):
            columns = [saved[f"{i}-{c}"] for c in range(predicate.arity)]
            columns = [_put_ids(c, everything) for c in columns]
            rows = int(saved["rows"][i])
            for shard, chosen in _spread_over_shards(columns, shards):
                key = f"{shard}/{numbers[predicate]}/{predicate.arity}"
                out[key] = np.stack(chosen) if chosen else np.zeros((0, rows), np.int64)
    for shard in range(shards):
        mine = {k.replace("/", "-"): v for k, v in out.items() if k.startswith(f"{shard}/")}
        _save(staging / f"facts-{parsed.number}-{shard}.npz", mine)
    return skolems


def _ids_of(staging: Path, starts: Sequence[int], parsed: ParsedChunk, order: NDArray[np.int64]) -> StoreIds:
    """The ids of a chunk's texts, in the chunk's own order."""
    parts = []
    for bucket, start in enumerate(starts):
        with np.load(staging / f"codes-{bucket}.npz") as codes:
            chunk_codes = codes[str(parsed.number)]
        parts.append(np.where(chunk_codes >= 0, chunk_codes, start - 1 - chunk_codes))
    ids = np.empty(len(order), np.int64)
    ids[order] = np.concatenate(parts)
    return ids


def _encode_skolems(staging: Path, parsed: ParsedChunk, ids: StoreIds, order: NDArray[np.int64]) -> Encoded:
    if not parsed.skolems:
        return [], [], []
    texts = _chunk_texts(staging, parsed.number)
    known = dict(zip(texts, ids[order].tolist(), strict=True))
    table = pq.read_table(staging / f"skolems-{parsed.number}.parquet").to_pydict()
    made: list[int] = []
    arguments = []
    for name, args in zip(table["name"], table["args"], strict=True):
        argument_ids = [_argument(a, known, made) for a in args]
        made.append(int(skolem_ids(name, [np.array([g]) for g in argument_ids], 1)[0]))
        arguments.append(argument_ids)
    return made, table["name"], arguments


def _argument(text: str, known: Mapping[str, int], made: Sequence[int]) -> int:
    if text.startswith(_REFERENCE):
        return made[int(text[len(_REFERENCE) :])]
    return known[text] if text in known else _integer(text)


def _integer(text: str) -> int:
    identifier = inline_integer(text)
    assert identifier is not None, f"{text} is a term of the chunk"
    return identifier


def _chunk_texts(staging: Path, number: int) -> list[str]:
    with pa.ipc.open_file(staging / f"terms-{number}.arrow") as batches:
        return [
            t for i in range(batches.num_record_batches) for t in batches.get_batch(i).column(0).to_pylist()
        ]


def _put_ids(column: NDArray[np.int64], ids: StoreIds) -> StoreIds:
    if len(column) and column.min() < 0:
        return np.where(column < 0, column, ids[np.maximum(column, 0)] if len(ids) else 0)
    return ids[column]


def _spread_over_shards(columns: list[StoreIds], shards: int) -> list[tuple[int, list[StoreIds]]]:
    """Rows by a hash of their first column."""
    if not columns or shards == 1:
        return [(0, columns)]
    shard = mix(columns[0]) % np.uint64(shards)
    order = np.argsort(shard, kind="stable")
    bounds = np.searchsorted(shard[order], np.arange(shards + 1).astype(np.uint64))
    return [
        (s, [c[order[bounds[s] : bounds[s + 1]]] for c in columns])
        for s in range(shards)
        if bounds[s] < bounds[s + 1]
    ]


# 4. Shards to files.


@dataclass(frozen=True)
class ShardFacts:
    number: int
    arity: int
    file: File
    sketches: list[NDArray[np.uint64]] = field(default_factory=list)
    """per column its smallest hashes, from which different values are counted"""


def _write_shard(store: Store, staging: Path, chunks: Sequence[int], shard: int) -> list[ShardFacts]:
    parts: dict[tuple[int, int], list[StoreIds]] = {}
    for chunk in chunks:
        with np.load(staging / f"facts-{chunk}-{shard}.npz") as saved:
            for key in saved.files:
                _, number, arity = map(int, key.split("-"))
                parts.setdefault((number, arity), []).append(saved[key])
    written = []
    for (number, arity), arrays in sorted(parts.items()):
        rows = unique_rows(np.concatenate(arrays, axis=1)) if arity else np.zeros((0, 1), np.int64)
        file = write_facts(store, number, list(rows), rows.shape[1])
        written.append(ShardFacts(number, arity, file, [sketch(c) for c in rows]))
    return written


def unique_rows(rows: StoreIds) -> StoreIds:
    """Columns of rows, sorted, each row once."""
    if rows.shape[0] == 1:
        return np.unique(rows[0])[None, :]
    if rows.shape[0] == 2:
        packed = _sort_as_numbers(rows)
        if packed is not None:
            return packed
    order = np.lexsort(rows[::-1])
    ordered = rows[:, order]
    kept = np.ones(ordered.shape[1], np.bool_)
    kept[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    return ordered[:, kept]


def _sort_as_numbers(rows: StoreIds) -> StoreIds | None:
    """Pairs sorted as one number each, where they fit; sorting those is many times faster."""
    low, high = rows.min(axis=1), rows.max(axis=1)
    if float(high[0] - low[0] + 1) * float(high[1] - low[1] + 1) >= 2.0**62 or (high - low < 0).any():
        return None
    width = high[1] - low[1] + 1
    unique = np.unique((rows[0] - low[0]) * width + (rows[1] - low[1]))
    return np.stack([unique // width + low[0], unique % width + low[1]])


def _gather_facts(
    shards: Sequence[Sequence[ShardFacts]], numbers: Mapping[Predicate, int]
) -> tuple[Facts, ...]:
    by_number: dict[int, list[ShardFacts]] = {}
    for shard in shards:
        for part in shard:
            by_number.setdefault(part.number, []).append(part)
    facts = []
    for predicate, number in numbers.items():
        parts = by_number.get(number, [])
        if parts:
            rows = sum(p.file.rows for p in parts)
            distinct = tuple(distinct_values([p.sketches[c] for p in parts]) for c in range(predicate.arity))
            files = tuple(p.file for p in parts)
            facts.append(Facts(predicate.name, predicate.arity, number, files, rows, distinct))
    return tuple(facts)


def _write_skolems(store: Store, outcome: Sequence[Encoded]) -> File:
    made = {
        i: (name, args)
        for ids, names, lists in outcome
        for i, name, args in zip(ids, names, lists, strict=True)
    }
    return write_skolems(store, list(made), [n for n, _ in made.values()], [a for _, a in made.values()])
