"""Files of changes in a folder, as a source of Spark's streams."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

KINDS = ("add", "delete")
"""What the name of a file has between its first part and its ending, by what is to be done with its facts."""


class ChangedFiles(DataSource):
    """The files of changes in a folder, again whenever one is written again; for Spark's streams."""

    @classmethod
    def name(cls) -> str:
        return "hdlog_changes"

    def schema(self) -> str:
        return "name STRING, modified BIGINT, size BIGINT"

    def simpleStreamReader(self, schema: Any) -> _ChangeReader:  # noqa: N802
        return _ChangeReader(Path(self.options["folder"]))


class _ChangeReader(SimpleDataSourceStreamReader):
    """An offset says of each file when it was written last, and how long it is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {}

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[Any, ...]], dict[str, Any]]:
        end: dict[str, Any] = {}
        for path in self.folder.iterdir():
            if any(f".{kind}." in path.name for kind in KINDS) and path.is_file():
                status = path.stat()
                end[path.name] = [status.st_mtime_ns, status.st_size]
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(  # noqa: N802
        self, start: dict[str, Any], end: dict[str, Any]
    ) -> Iterator[tuple[Any, ...]]:
        changed = {name: state for name, state in end.items() if start.get(name) != state}
        return iter([(name, modified, size) for name, (modified, size) in changed.items()])
