"""One cell of the evaluation, in a process of its own: `python -m hdlog.benchmarks.paper.cell '{...}'` prints a JSON object.

The store is read, the rules are materialised, and facts are deleted and added as the task says. Times are those of the
task alone; trees are looked for within them. Memory is that of the process: at its peak, and when the task is done.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdlog.benchmarks.data.rule_sets import rules
from hdlog.benchmarks.paper.figures import LARGE, SMALL
from hdlog.compiling import compile_known
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.columnar.facts import Facts
from hdlog.engines.protocol import Engine
from hdlog.errors import IntermediateTooLarge
from hdlog.operations.work import Settings
from hdlog.program.model import Predicate
from hdlog.reasoning import Reasoning
from hdlog.store.catalogue import Catalogue
from hdlog.store.columnar import EmbeddedGate
from hdlog.store.store import Store, open_store
from hdlog.tuning import Tuning

OUT_OF_MEMORY = "out of memory"


class Cell:
    def __init__(self, asked: Mapping[str, Any]) -> None:
        self.asked = asked
        self.store = open_store(Path(asked["store"]))
        tuning = Tuning(asked["method"])
        self.engine, self.gate = _open(self.store, asked["engine"], asked["memory"], tuning)
        self.reasoner: Reasoning[Any, Any, Any] = Reasoning(self.engine, tuning=tuning)

    def run(self) -> dict[str, Any]:
        task = self.asked["task"]
        facts = {
            line.predicate: self.given(line.predicate) for line in Catalogue(self.store).lines() if line.rows
        }
        given = sum(map(self.engine.count, facts.values()))
        chosen = (
            None if task == "materialisation" else self.choose_facts(facts, large=task.startswith("large"))
        )
        fresh = self.asked["fresh"]
        if fresh and chosen is not None:
            facts = {p: self.engine.minus(f, chosen[p]) if p in chosen else f for p, f in facts.items()}
        self.reasoner.add_program(rules(self.asked["benchmark"]))
        compile_known()  # what is read from disk once is no part of an update
        seconds = self.measure(lambda: self.reasoner.materialise(facts))
        facts.clear()
        times = [seconds]
        if chosen is not None and not fresh:
            times = self.measure_updates(task, chosen)
        gc.collect()
        result: dict[str, Any] = {
            "seconds": min(times),
            "times": times,
            "static": (static := memory("VmRSS")),
            # The kernel counts the two apart, each a few pages off.
            "peak": max(static, memory("VmHWM")),
        }
        result |= {
            "given": given,
            "facts": len(self.reasoner),
            "rounds": len(self.reasoner.trace.events),
            "changed": sum(map(self.engine.count, chosen.values())) if chosen is not None else 0,
        }
        return {**result, "checksums": self.checksums()}

    def given(self, predicate: Predicate) -> Any:
        """The facts of the store, in memory; as ids of the engine."""
        facts = self.engine.facts(self.gate.find(predicate))
        if isinstance(facts, Facts):
            return Facts(facts.pairs, facts.arity, facts.keys.copy())
        return facts

    def measure_updates(self, task: str, some: Mapping[Predicate, Any]) -> list[float]:
        """How long a deletion or adding back took: small ones several times, for what a machine does beside is not small."""

        def delete() -> None:
            self.reasoner.update_silently({}, some)

        def add() -> None:
            self.reasoner.update_silently(some, {})

        measured, other = (add, delete) if task == "small additions" else (delete, add)
        times: list[float] = []
        for _ in range(self.asked["repeat"] if task.startswith("small") else 1):
            if times or measured is add:
                other()
            times.append(self.measure(measured))
        return times

    def measure(self, run: Any) -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    def choose_facts(self, facts: Mapping[Predicate, Any], large: bool) -> dict[Predicate, Any]:
        """Some of the facts given, at random but always the same: 1,000 or a quarter of them."""
        chance = np.random.default_rng([self.asked["seed"], int(large)])
        total = sum(map(self.engine.count, facts.values()))
        picked = np.zeros(total, np.bool_)
        picked[chance.permutation(total)[: int(LARGE * total) if large else min(SMALL, total)]] = True
        selection, start = {}, 0
        for predicate, several in facts.items():
            rows = self.engine.count(several)
            mask = picked[start : start + rows]
            start += rows
            if mask.any():
                ids = [c[mask] for c in self.sort_by_store(self.columns(several))]
                selection[predicate] = self.engine.facts_from_columns(ids, int(mask.sum()))
        return selection

    def columns(self, facts: Any) -> list[NDArray[Any]]:
        """Ids of the engine."""
        if isinstance(facts, Facts):
            return list(facts.columns())
        engine: Any = self.engine
        table: pa.Table = engine.keeper.collect(facts.sums().select(*facts.keys))
        return [table[c].to_numpy() for c in facts.keys]

    def sort_by_store(self, columns: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """In the order of the ids that the store has, which is the same for all engines."""
        order = np.lexsort([self.store_ids(c) for c in columns][::-1])
        return [c[order] for c in columns]

    def store_ids(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        return self.gate.ids.store_ids(ids) if isinstance(self.gate, EmbeddedGate) else ids

    def checksums(self) -> dict[str, tuple[int, str]]:
        """For each predicate, how many facts there are, and a sum over them that no order changes."""
        sums = {}
        for predicate, table in self.reasoner.stored_tables().items():
            if len(table) and not predicate.name.startswith("#"):
                rows = checksum_rows(self.ids(predicate))
                sums[f"{predicate.name}/{predicate.arity}"] = (
                    len(table),
                    f"{int(rows.sum(dtype=np.uint64)):016x}",
                )
        return sums

    def ids(self, predicate: Predicate) -> list[NDArray[np.int64]]:
        facts = self.engine.facts(self.reasoner.stored_tables()[predicate])
        return [self.store_ids(c) for c in self.columns(facts)]


def _open(store: Store, name: str, memory: float, tuning: Tuning) -> tuple[Engine[Any, Any, Any], Any]:
    settings = Settings(engine=name, memory=memory, tuning=tuning, master="local[*]")  # type: ignore[arg-type]
    if name == "spark":
        from hdlog.engines.spark.engine import SparkEngine
        from hdlog.store.spark import SparkGate

        spark = SparkEngine(settings.session(), numbers=tuning.numbers)
        return spark, SparkGate(store, spark)
    embedded = ColumnarEngine(settings.budget, numbers=tuning.numbers)
    return embedded, EmbeddedGate(store, embedded)


def checksum_rows(several: list[NDArray[np.int64]]) -> NDArray[np.uint64]:
    """64 bits for each row, mixed from all its columns in order."""
    hashes = np.zeros(len(several[0]), np.uint64)
    for column in several:
        hashes = mix_bits(hashes * np.uint64(0x9E3779B97F4A7C15) + column.view(np.uint64))
    return hashes


def mix_bits(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def memory(name: str, process: int | None = None) -> float:
    """GB of a process, this one unless told, and of those it started, such as Spark's.

    Not ru_maxrss, for a process begins with that of the one that started it.
    """
    total, waiting = 0.0, [process or os.getpid()]
    while waiting:
        place = Path(f"/proc/{waiting.pop()}")
        try:
            status = (place / "status").read_text().partition(f"{name}:")[2].split()
            started = [task.read_text().split() for task in place.glob("task/*/children")]
        except FileNotFoundError:
            continue
        total += int(status[0]) * 1024 / 1e9 if status else 0.0
        waiting += [int(child) for children in started for child in children]
    return total


def main() -> None:
    asked = json.loads(sys.argv[1])
    room = int((asked["memory"] + 2) * 1e9)
    if asked["engine"] == "columnar":
        resource.setrlimit(resource.RLIMIT_DATA, (room, room))
    try:
        result = {"status": "ok", **Cell(asked).run()}
    except (MemoryError, IntermediateTooLarge) as error:
        result = {"status": OUT_OF_MEMORY, "why": str(error)}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
