"""A dataset as a store, as N-Triples, or as Parquet."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from hdlog.benchmarks.data.dataset import Dataset
from hdlog.benchmarks.data.loading import encode_columns
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.columnar.facts import Facts
from hdlog.errors import UsageError
from hdlog.operations.stores import build_store, make_sheets
from hdlog.operations.work import Settings, Work, begin_work
from hdlog.program.model import Predicate, Program
from hdlog.store.columnar import EmbeddedGate
from hdlog.store.export import export
from hdlog.store.store import Store
from hdlog.writing.sheets import Sheet

_BATCH = 1 << 20
FORMATS = ("nt", "nt.gz", "parquet")
Tell = Callable[[float], None]


def write_store(
    data: Dataset,
    folder: Path,
    overwrite: bool = False,
    threads: int | None = None,
    tell: Tell = lambda _: None,
) -> Store:
    """A store with the facts as asserted ones."""
    with build_store(folder, overwrite) as store:
        engine = ColumnarEngine()
        gate = EmbeddedGate(store, engine)
        work = Work(store, Program(), Settings(), engine, gate, ("columnar", ""))
        facts = encode(engine, data, threads, lambda share: tell(share / 2))
        work.reasoner.materialise(facts)
        work.commit(added=data.facts)
        tell(1.0)
    return store


def encode(engine: ColumnarEngine, data: Dataset, threads: int | None, tell: Tell) -> dict[Predicate, Facts]:
    """The facts of a dataset; its terms have the first ids."""
    assert not len(engine.dictionary), "the ids of the dataset count from 0"
    pieces = [
        (block, low, min(low + _BATCH, block.size))
        for block in data.blocks
        for low in range(0, block.size, _BATCH)
    ]
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        for texts in pool.map(lambda p: p[0].texts(p[1], p[2]), pieces):
            engine.dictionary.encode(texts)
            tell(len(engine.dictionary) / max(1, data.terms))
    return encode_columns(engine, data.tables)


@contextmanager
def sheets_of(data: Dataset, tell: Tell = lambda _: None) -> Iterator[list[Sheet]]:
    """The facts of a dataset on their way to files."""
    with tempfile.TemporaryDirectory(prefix="hdlog-") as folder:
        store = write_store(data, Path(folder) / "store", tell=tell)
        yield make_sheets(begin_work(store, Program(), Settings("columnar"), data.facts), store)


def write_files(
    data: Dataset, folder: Path, format_: str, tell: Callable[[float], None] = lambda _: None
) -> list[Path]:
    """Decoded files in a folder, and the rules beside them."""
    if format_ not in FORMATS:
        raise UsageError(f"unknown format {format_}; there are {', '.join(FORMATS)}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rules.dlog").write_text(data.rules)
    with sheets_of(data, lambda share: tell(share / 2)) as sheets:
        if format_ == "parquet":
            export(sheets, "parquet", folder / "facts", lambda _: None, overwrite=True)
            tell(1.0)
            return sorted((folder / "facts").iterdir())
        path = folder / f"{data.name}.{format_}"
        export(sheets, "nt", path, lambda _: None)
    tell(1.0)
    return [path]


def write_triples(data: Dataset, path: Path) -> int:
    """One N-Triples file; how many triples it has."""
    with sheets_of(data) as sheets:
        written, _ = export(sheets, "nt", path, lambda _: None)
    return written
