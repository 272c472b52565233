"""Values that Python workers of Spark find, on their way to ids."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hdlog.reading.identifiers import inline_integer

VALUE_SCHEMA = "known BIGINT, text STRING"


def with_values(batch: pa.RecordBatch, names: Sequence[str], values: Sequence[str | None]) -> pa.RecordBatch:
    """Some columns of a batch, without the rows that have no value, and beside them the id of an integer or a text."""
    at = pa.array([i for i, value in enumerate(values) if value is not None], pa.int64())
    texts = [value for value in values if value is not None]
    known = [inline_integer(text) for text in texts]
    rest = [text if number is None else None for text, number in zip(texts, known, strict=True)]
    return pa.record_batch(
        [
            *(batch.column(n).take(at) for n in names),
            pa.array(known, pa.int64()),
            pa.array(rest, pa.string()),
        ],
        names=[*names, "known", "text"],
    )
