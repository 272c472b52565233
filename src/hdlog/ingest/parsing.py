"""Splits of files into rows, in tasks of Spark: facts as ids, and the texts that these ids stand for.

An id follows from its term, so a task needs to know nothing of the others, and a task that runs twice makes the same rows again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdlog.errors import InputError
from hdlog.program.model import Attribute, Predicate
from hdlog.program.ntriples import SKOLEM, skolem_parts
from hdlog.reading.chunks import Chunk, Layout
from hdlog.reading.files import read_split
from hdlog.reading.identifiers import StoreIds, inline_integer, skolem_ids, text_hash, text_ids
from hdlog.reading.splits import Split

FACT, TERM, SKOLEM_TERM, PREDICATE, FIGURES, FAULT = range(6)
"""Kinds of rows."""
SCHEMA = "kind INT, p BIGINT, c0 BIGINT, c1 BIGINT, rest ARRAY<BIGINT>, text STRING"
"""A fact has the id of its predicate, and its terms; a term its id as c0; a Skolem term its id, its name as text, and its arguments as rest; a
predicate its id, arity and name; figures are rows and skipped lines, with what was wrong as text, and rows that lacked a value as rest; a fault is what was wrong."""
_ARROW = pa.schema(
    [
        ("kind", pa.int32()),
        ("p", pa.int64()),
        ("c0", pa.int64()),
        ("c1", pa.int64()),
        ("rest", pa.list_(pa.int64())),
        ("text", pa.string()),
    ]
)
_BATCH = 1 << 17


def predicate_id(predicate: Predicate) -> int:
    return text_hash(f"{predicate.arity} {predicate.name}")


def describe_split(split: Split) -> str:
    """A split as text, for a task."""
    fields = asdict(split)
    if split.data is not None:
        fields["data"] = base64.b64encode(split.data).decode()
    return json.dumps(fields)


def _read_description(text: str) -> Split:
    fields = json.loads(text)
    if fields["data"] is not None:
        fields["data"] = base64.b64decode(fields["data"])
    columns = fields["columns"]
    fields["columns"] = None if columns is None else tuple(columns)
    fields["fields"] = tuple(fields["fields"])
    fields["partition"] = tuple((name, value) for name, value in fields["partition"])
    return Split(**fields)


@dataclass(frozen=True)
class Parser:
    """What a task does with descriptions of splits."""

    layout: Mapping[str, Sequence[tuple[str, str]]]
    lenient: bool
    clashes: Mapping[str, int]

    @classmethod
    def of(cls, layout: Layout, lenient: bool, clashes: Mapping[str, int]) -> Parser:
        plain = {name: [(a.name, a.type) for a in attributes] for name, attributes in layout.items()}
        return cls(plain, lenient, dict(clashes))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        layout = {name: [Attribute(*a) for a in attributes] for name, attributes in self.layout.items()}
        for batch in batches:
            for text in batch.column(0).to_pylist():
                try:
                    chunk = read_split(_read_description(text), layout, self.lenient)
                except InputError as error:
                    yield _rows(FAULT, 1, text=pa.array([str(error)]))
                    continue
                yield from _chunk_rows(chunk, self.clashes)


def _chunk_rows(chunk: Chunk, clashes: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
    ids, texts, skolems = identify(chunk.texts, clashes)
    named = pa.array(text_ids(texts, clashes))
    yield from _slices(TERM, len(texts), c0=named, text=texts)
    if skolems:
        made, names, arguments = zip(*skolems, strict=True)
        lists = pa.array(arguments, pa.list_(pa.int64()))
        yield _rows(SKOLEM_TERM, len(skolems), c0=pa.array(made), text=pa.array(names), rest=lists)
    for predicate, columns in chunk.facts.items():
        rows = len(columns[0]) if columns else 1
        terms = [_put_ids(c, ids) for c in columns]
        own = {"p": pa.array(np.full(rows, predicate_id(predicate)))}
        own |= {f"c{i}": pa.array(c) for i, c in enumerate(terms[:2])}
        if len(terms) > 2:
            width = len(terms) - 2
            flat = np.stack(terms[2:], axis=1).ravel()
            own["rest"] = pa.ListArray.from_arrays(
                pa.array(np.arange(rows + 1) * width, pa.int32()), pa.array(flat)
            )
        yield from _slices(FACT, rows, **own)
        arity = pa.array([predicate.arity], pa.int64())
        yield _rows(PREDICATE, 1, p=own["p"].slice(0, 1), c0=arity, text=pa.array([predicate.name]))
    figures = {"c0": pa.array([chunk.rows]), "c1": pa.array([chunk.skipped])}
    figures["rest"] = pa.array([[chunk.dropped]], pa.list_(pa.int64()))
    yield _rows(FIGURES, 1, **figures, text=pa.array(["\n".join(chunk.problems)]))


def _put_ids(column: NDArray[np.int64], ids: StoreIds) -> StoreIds:
    """Places among texts as their ids; integers are ids already."""
    return np.where(column < 0, column, ids[np.maximum(column, 0)] if len(ids) else 0)


Skolem = tuple[int, str, list[int]]


def identify(texts: pa.Array, clashes: Mapping[str, int]) -> tuple[StoreIds, pa.Array, list[Skolem]]:
    """The ids of texts; the texts that have to be known for them, and the Skolem terms, those that others are made of included."""
    marked = pc.starts_with(texts, SKOLEM)
    if not pc.any(marked).as_py():
        return text_ids(texts, clashes), texts, []
    ids = text_ids(texts, clashes)
    known: dict[str, None] = {}
    skolems: dict[int, Skolem] = {}
    plain = ~marked.to_numpy(zero_copy_only=False)
    for place in np.flatnonzero(~plain).tolist():
        parts = skolem_parts(texts[place].as_py())
        if parts is None:
            plain[place] = True
            continue
        made: list[int] = []
        for name, arguments in parts:
            row = [made[a] if isinstance(a, int) else _identify_text(a, clashes, known) for a in arguments]
            made.append(int(skolem_ids(name, [np.array([a]) for a in row], 1)[0]))
            skolems[made[-1]] = (made[-1], name, row)
        ids[place] = made[-1]
    rest = pa.concat_arrays([texts.filter(pa.array(plain)), pa.array(list(known), pa.string())])
    return ids, rest.unique(), list(skolems.values())


def _identify_text(text: str, clashes: Mapping[str, int], known: dict[str, None]) -> int:
    number = inline_integer(text)
    if number is not None:
        return number
    known[text] = None
    return int(text_ids(pa.array([text]), clashes)[0])


def _slices(kind: int, rows: int, **columns: pa.Array) -> Iterator[pa.RecordBatch]:
    for low in range(0, rows, _BATCH):
        size = min(_BATCH, rows - low)
        yield _rows(kind, size, **{name: column.slice(low, size) for name, column in columns.items()})


def _rows(kind: int, rows: int, **columns: Any) -> pa.RecordBatch:
    arrays = [columns.get(field.name, pa.nulls(rows, field.type)) for field in _ARROW]
    arrays[0] = pa.array(np.full(rows, kind, np.int32))
    return pa.record_batch([a.cast(f.type) for a, f in zip(arrays, _ARROW, strict=True)], schema=_ARROW)
