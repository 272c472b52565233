"""The terms of a store where they are: found by text in their bucket, and by id once all have been read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hdlog.pipeline.buckets import buckets_of
from hdlog.pipeline.store import File, Store
from hdlog.program.terms import XSD_INTEGER

_LARGE = rf'^"[-+]?[0-9]{{18,}}"\^\^<{XSD_INTEGER}>$'


class StoredTerms:
    def __init__(self, store: Store, files: Sequence[File]) -> None:
        self._store = store
        self._files = files
        self._size = sum(f.rows for f in files)
        self._all: pa.Array | None = None
        self.typed = store.manifest.typed

    def __len__(self) -> int:
        return self._size

    def find(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The id of each, -1 for those that are not there."""
        wanted = pa.array(texts, pa.string())
        bucket = buckets_of(wanted, self._store.manifest.buckets or 1)
        found = np.full(len(texts), -1, np.int64)
        for number in np.unique(bucket).tolist():
            rows = np.flatnonzero(bucket == number)
            asked = wanted.take(pa.array(rows))
            for file in (f for f in self._files if f.bucket == number):
                table = pq.read_table(self._store.path(file), columns=["id", "text"])
                place = pc.index_in(asked, table["text"]).fill_null(-1).to_numpy(zero_copy_only=False)
                there = place >= 0
                found[rows[there]] = table["id"].to_numpy()[place[there]]
        return found

    def array(self) -> pa.Array:
        """All texts, by id."""
        if self._all is None:
            tables = [pq.read_table(self._store.path(f), columns=["id", "text"]) for f in self._files]
            schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
            whole = pa.concat_tables(tables) if tables else schema.empty_table()
            texts = whole["text"].cast(pa.large_string())
            self._all = texts.take(pa.array(np.argsort(whole["id"].to_numpy()))).combine_chunks()
        return self._all

    def texts(self, numbers: NDArray[np.int64] | None = None) -> list[str]:
        found = self.array() if numbers is None else self.array().take(pa.array(numbers))
        return [str(text) for text in found.to_pylist()]

    def large_integers(self) -> bool:
        """Whether there are integers that have no place in an id, which engines may also make themselves."""
        return self.typed and bool(pc.any(pc.match_substring_regex(self.array(), _LARGE)).as_py())
