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
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hdlog.benchmarks.data.rule_sets import rules
from hdlog.benchmarks.paper.figures import LARGE, SMALL
from hdlog.errors import IntermediateTooLarge
from hdlog.operations.work import Settings, begin_work
from hdlog.program.model import Predicate
from hdlog.reasoning import Reasoning
from hdlog.store.columnar import EmbeddedGate
from hdlog.store.store import Store, open_store
from hdlog.tuning import Tuning

Columns = dict[Predicate, list[NDArray[np.int64]]]
OUT_OF_MEMORY = "out of memory"


class Cell:
    def __init__(self, asked: Mapping[str, Any]) -> None:
        self.asked = asked
        self.store = open_store(Path(asked["store"]))
        settings = Settings(
            engine=asked["engine"], memory=asked["memory"], tuning=Tuning(asked["method"]), master="local[*]"
        )
        self.work = begin_work(self.store, rules(asked["benchmark"]), settings, 0)
        self.reasoner: Reasoning[Any, Any, Any]

    def run(self) -> dict[str, Any]:
        task = self.asked["task"]
        chosen = None if task == "materialisation" else self.choose_facts(large=task.startswith("large"))
        fresh = self.asked["fresh"]
        if fresh and chosen is not None:
            facts = self.leave_out(chosen)
        else:
            facts = dict(self.work.gate.read_facts(self.store.manifest.facts))
        self.reasoner = self.work.start(restore=False)
        seconds = self.measure(lambda: self.reasoner.materialise(facts))
        facts.clear()
        times = [seconds]
        if chosen is not None and not fresh:
            times = self.measure_updates(task, self.facts(chosen))
        gc.collect()
        result: dict[str, Any] = {
            "seconds": min(times),
            "times": times,
            "static": (static := memory("VmRSS")),
            # The kernel counts the two apart, each a few pages off.
            "peak": max(static, memory("VmHWM")),
        }
        result |= {
            "given": sum(f.rows for f in self.store.manifest.facts),
            "facts": len(self.reasoner),
            "rounds": len(self.reasoner.trace.events),
            "changed": int(sum(len(c[0]) for c in chosen.values())) if chosen is not None else 0,
        }
        return {**result, "checksums": self.checksums()}

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

    def choose_facts(self, large: bool) -> Columns:
        """Some of the facts given, at random but always the same: 1,000 or a quarter of them."""
        chance = np.random.default_rng([self.asked["seed"], int(large)])
        stored = self.store.manifest.facts
        total = sum(f.rows for f in stored)
        picked = np.zeros(total, np.bool_)
        picked[chance.permutation(total)[: int(LARGE * total) if large else min(SMALL, total)]] = True
        selection, start = {}, 0
        for facts in stored:
            mask = picked[start : start + facts.rows]
            start += facts.rows
            if mask.any():
                selection[facts.predicate] = [c[mask] for c in columns(self.store, facts.predicate)]
        return selection

    def leave_out(self, chosen: Columns) -> dict[Predicate, Any]:
        """All facts but the chosen ones."""
        rest = {}
        for stored in self.store.manifest.facts:
            whole = columns(self.store, stored.predicate)
            if stored.predicate in chosen:
                gone = checksum_rows(chosen[stored.predicate])
                keep = ~np.isin(checksum_rows(whole), gone)
                whole = [c[keep] for c in whole]
            rest[stored.predicate] = whole
        return self.facts(rest)

    def facts(self, tables: Columns) -> dict[Predicate, Any]:
        """Columns of store ids as facts of the engine."""
        gate = self.work.gate
        if isinstance(gate, EmbeddedGate):
            own = {p: [gate.engine_ids(c) for c in several] for p, several in tables.items()}
            return {p: gate.engine.facts_from_columns(ids, len(ids[0])) for p, ids in own.items()}
        engine = self.work.engine
        return {p: engine.facts_from_columns(several, len(several[0])) for p, several in tables.items()}

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
        gate = self.work.gate
        facts = self.work.engine.facts(self.reasoner.stored_tables()[predicate])
        if isinstance(gate, EmbeddedGate):
            return [gate.store_ids(c) for c in facts.columns()]
        engine: Any = self.work.engine
        table: pa.Table = engine.keeper.collect(facts.sums().select(*facts.keys))
        return [table[c].to_numpy() for c in facts.keys]


def columns(store: Store, predicate: Predicate) -> list[NDArray[np.int64]]:
    stored = store.manifest.of(predicate)
    assert stored is not None
    names = [f"c{i}" for i in range(stored.arity)]
    table = pa.concat_tables(pq.read_table(store.path(f), columns=names) for f in stored.files)
    return [table[n].to_numpy() for n in names]


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
