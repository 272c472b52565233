"""What is told of facts as they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hdlog.engines.protocol import Engine, F, R, T
from hdlog.program.model import Predicate, Program
from hdlog.reading.chunks import Chunk
from hdlog.reading.objects import Collector, arities_in, check_arities

_SHOWN = 10


class Intake:
    """What is told of facts that have been read, and of lines that could not be."""

    def __init__(self, program: Program) -> None:
        self._arities = arities_in(program)
        self.rows = self.skipped = self.dropped = 0
        self.problems: list[str] = []
        self.predicates: dict[Predicate, None] = {}

    def watch(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """The same chunks; facts that rules have with another number of arguments are refused."""
        for chunk in chunks:
            check_arities(self._arities, chunk.facts)
            self.rows += chunk.rows
            self.skipped += chunk.skipped
            self.dropped += chunk.dropped
            self.problems += chunk.problems
            self.predicates |= dict.fromkeys(chunk.facts)
            yield chunk

    def add(self, predicate: Predicate, rows: int) -> None:
        """Facts that did not come in chunks."""
        check_arities(self._arities, [predicate])
        self.rows += rows
        self.predicates[predicate] = None

    def warnings(self) -> list[str]:
        return [*self._tell_skipped(), *self._tell_dropped()]

    def _tell_dropped(self) -> list[str]:
        if not self.dropped:
            return []
        rows = "1 row was" if self.dropped == 1 else f"{self.dropped:,} rows were"
        return [f"{rows} left out for lack of a value"]

    def _tell_skipped(self) -> list[str]:
        if not self.skipped:
            return []
        more = [f"  {problem}" for problem in self.problems[:_SHOWN]]
        lines = "1 malformed line was" if self.skipped == 1 else f"{self.skipped:,} malformed lines were"
        return [f"warning: {lines} skipped; the first of them:", *more]


def encode_table(engine: Engine[R, F, T], program: Program, name: str, table: Any) -> dict[Predicate, F]:
    """The facts of a table of any kind."""
    collector = Collector(program, _no_files)
    if not engine.owns(table):
        collector.table(name, table)
        return engine.encode_chunks(collector.chunks())
    predicate = Predicate(name, len(table.columns))
    arranged, types = collector.arrange(predicate, table.columns)
    return {predicate: engine.encode_table(table.select(*arranged), types)}


def _no_files(paths: Sequence[object], name: str) -> list[Chunk]:
    raise AssertionError("a table is no file")
