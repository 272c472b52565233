"""The terms of a store where they are: found by text in their bucket, and by id once all have been read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdlog.program.terms import XSD_INTEGER
from hdlog.reading.term_table import TermTable
from hdlog.store.buckets import buckets_of
from hdlog.store.store import File, Store

_LARGE = rf'^"[-+]?[0-9]{{18,}}"\^\^<{XSD_INTEGER}>$'

_OFTEN = 2
"""Questions to a bucket that are answered from its files. Programs that compute texts ask one in every round."""


class StoredTerms:
    def __init__(self, store: Store, files: Sequence[File]) -> None:
        self._store = store
        self._files = files
        self._size = sum(f.rows for f in files)
        self._all: pa.Array | None = None
        self._asked: Counter[int] = Counter()
        self._tables: dict[int, tuple[TermTable, NDArray[np.int64]]] = {}
        self.typed = store.manifest.typed

    def __len__(self) -> int:
        return self._size

    def find(self, texts: pa.Array) -> NDArray[np.int64]:
        """The id of each, -1 for those that are not there."""
        wanted = texts.cast(pa.string())
        bucket = buckets_of(wanted, self._store.manifest.buckets or 1)
        term_ids = np.full(len(texts), -1, np.int64)
        for number in np.unique(bucket).tolist():
            rows = np.flatnonzero(bucket == number)
            term_ids[rows] = self._find(number, wanted.take(pa.array(rows)))
        return term_ids

    def _find(self, bucket: int, texts: pa.Array) -> NDArray[np.int64]:
        """In one bucket: its files are read for the first questions, and kept in memory for all after them."""
        self._asked[bucket] += 1
        if self._asked[bucket] > _OFTEN:
            table, ids = self._table(bucket)
            places = table.add_texts(texts)  # one that is new here comes after those of the store
            return np.append(ids, -1)[np.where((places >= 0) & (places < len(ids)), places, len(ids))]
        term_ids = np.full(len(texts), -1, np.int64)
        for part in self._read(bucket):
            place = pc.index_in(texts, part["text"]).fill_null(-1).to_numpy(zero_copy_only=False)
            there = place >= 0
            term_ids[there] = part["id"].to_numpy()[place[there]]
        return term_ids

    def _table(self, bucket: int) -> tuple[TermTable, NDArray[np.int64]]:
        if bucket not in self._tables:
            table, ids = TermTable(), [np.empty(0, np.int64)]
            for part in self._read(bucket):
                table.add_texts(part["text"].combine_chunks())
                ids.append(part["id"].to_numpy())
            self._tables[bucket] = (table, np.concatenate(ids))
        return self._tables[bucket]

    def _read(self, bucket: int) -> Iterator[pa.Table]:
        for file in self._files:
            if file.bucket == bucket:
                yield self._store.read(file, ["id", "text"])

    def array(self) -> pa.Array:
        """All texts, by id."""
        if self._all is None:
            tables = [self._store.read(f, ["id", "text"]) for f in self._files]
            schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
            whole = pa.concat_tables(tables) if tables else schema.empty_table()
            texts = whole["text"].cast(pa.large_string())
            self._all = texts.take(pa.array(np.argsort(whole["id"].to_numpy()))).combine_chunks()
        return self._all

    def take(self, numbers: NDArray[np.int64] | None = None) -> pa.Array:
        return self.array() if numbers is None else self.array().take(pa.array(numbers))

    def has_large_integers(self) -> bool:
        """Whether there are integers that have no place in an id, which engines may also make themselves."""
        return self.typed and bool(pc.any(pc.match_substring_regex(self.array(), _LARGE)).as_py())
