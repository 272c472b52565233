"""A folder of changes as a stream: Spark notices files, each becomes part of an update, exactly once."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hdlog.engines.spark.changed_files import KINDS, ChangedFiles
from hdlog.engines.spark.session import is_connected
from hdlog.errors import UsageError
from hdlog.operations.stores import Living, change_lines, open_for_update
from hdlog.operations.work import Settings
from hdlog.places import Place
from hdlog.reasoning import Update

_LOOK = 0.1
"""Seconds between looks at whether Spark still runs the query; waiting in it would hide who failed."""


def follow(
    folder: Place,
    changes: Path,
    out: Path | None,
    settings: Settings,
    once: bool,
    every: float,
    tell: Callable[[str], None],
) -> None:
    """Update a store with files as they appear, until interrupted, or until all that are there are done.

    Spark numbers the batches of files and writes down which files are in which before it hands them over. A commit of the
    store says the number of the last batch in it. So after a crash a batch comes again just when it is not in the store. A
    file that is written again is a change again.
    """
    if not changes.is_dir():
        raise UsageError(f"{changes}: no such folder; make it before following it")
    if not isinstance(folder, Path):
        raise UsageError(
            f"{folder}: a stream keeps notes in its store, which has to be on this machine for that"
        )
    session = settings.session()
    if is_connected(session):
        # Spark would run what takes a batch on the server, where this process and its store are not.
        raise UsageError("a stream needs a classic session of Spark, not one by Spark Connect")
    with open_for_update(folder, settings) as living:
        stream = Stream(living, changes, out or folder / "changes", tell)
        tell(f"engine: {living.work.engine_name} ({living.work.why}); following {changes}")
        stream.run(session, folder / "streams" / stream.name, once, every)


class Stream:
    def __init__(self, living: Living, changes: Path, out: Path, tell: Callable[[str], None]) -> None:
        self.living = living
        self.changes = changes.resolve()
        digest = hashlib.sha1(str(self.changes).encode()).hexdigest()
        self.name = f"{self.changes.name or 'root'}-{digest[:8]}"
        """of the stream in the store: folders of the same name elsewhere are other streams"""
        self.out = out
        self.tell = tell
        self.failed: BaseException | None = None
        self._early: dict[str, int] = {}
        """files that were taken in a later state than they were noticed in, and when that was written"""

    def run(self, spark: Any, checkpoints: Path, once: bool, every: float) -> None:
        spark.dataSource.register(ChangedFiles)
        files = spark.readStream.format(ChangedFiles.name()).option("folder", str(self.changes)).load()
        trigger = {"availableNow": True} if once else {"processingTime": f"{every} seconds"}
        query = (
            files.writeStream.foreachBatch(self._take_or_note_failure)
            .option("checkpointLocation", str(checkpoints))
            .trigger(**trigger)
            .start()
        )
        try:
            while query.isActive and self.failed is None:
                time.sleep(_LOOK)
        finally:
            query.stop()
        if self.failed is not None:
            raise self.failed
        if query.exception() is not None:
            raise UsageError(f"the stream stopped: {query.exception()}")

    def _take_or_note_failure(self, batch: Any, number: int) -> None:
        try:
            self._take(batch, number)
        except BaseException as error:
            # Raised, so that Spark does not count the batch as done.
            self.failed = error
            raise

    def _take(self, batch: Any, number: int) -> None:
        """One batch of files: an update, its net change, a snapshot."""
        work = self.living.work
        if number <= work.store.manifest.batches.get(self.name, -1):
            self.tell(f"batch {number}: in the store already")
            return
        rows = batch.orderBy("modified", "name").collect()
        paths = []
        for row in rows:
            path = self.changes / row.name
            if not path.exists():
                self.tell(f"batch {number}: {path.name} is gone, and left out")
            elif self._early.get(row.name) == row.modified:
                self.tell(f"batch {number}: {path.name} was taken with the batch before")
            else:
                paths.append(path)
        taken = {path.name: path.stat().st_mtime_ns for path in paths}
        started = time.perf_counter()
        batches = {**work.store.manifest.batches, self.name: number}
        change, _ = self.living.update(
            [_sides(path) for path in paths],
            lambda change: self._write(change, number, paths),
            batches=batches,
        )
        # One that was mended since it was noticed will be noticed once more.
        self._early = {r.name: taken[r.name] for r in rows if taken.get(r.name, r.modified) != r.modified}
        self.tell(
            f"batch {number}: {', '.join(p.name for p in paths) or 'no files'}: {change} in {time.perf_counter() - started:.2f} s"
        )

    def _write(self, change: Update, number: int, paths: list[Path]) -> None:
        """The net change of a batch; the same file again if the batch comes again."""
        self.out.mkdir(parents=True, exist_ok=True)
        target = self.out / f"{self.name}-{number:06d}.changes"
        fresh = target.with_suffix(".part")
        with fresh.open("w", encoding="utf-8") as file:
            file.write(f"# {json.dumps({'batch': number, 'files': [p.name for p in paths]})}\n")
            file.writelines(f"{line}\n" for line in change_lines(change))
        shutil.move(fresh, target)


def _sides(path: Path) -> tuple[list[str], list[str]]:
    """The files to add and to delete: one of the two has this one."""
    kind = next(k for k in KINDS if f".{k}." in path.name)
    return ([str(path)], []) if kind == "add" else ([], [str(path)])
