"""Small updates on a store for a long time, with readers beside them: memory, latency, and the state in the end.

python -m tests.soak --minutes 30 --universities 10
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import hdlog
from hdlog.memory import used_memory
from hdlog.operations.stores import verify
from hdlog.operations.work import Settings
from hdlog.program.model import Predicate

_WARM = 0.2
"""Share of the time after which memory is expected to stay."""


def make_store(folder: Path, universities: int) -> Path:
    for arguments in (
        ["generate", "lubm", "--universities", str(universities), "--out", str(folder / "data")],
        [
            "materialise",
            str(folder / "data/rules.dlog"),
            str(folder / "data"),
            "--store",
            str(folder / "store"),
        ],
    ):
        subprocess.run([sys.executable, "-m", "hdlog", *arguments], check=True, capture_output=True)
    return folder / "store"


def read_on(folder: Path) -> None:
    """What a reader does, until it is ended: opens the store, and looks whether it is whole."""
    while True:
        with hdlog.open(folder, read_only=True) as store:
            name, facts = max(store.counts().items(), key=lambda item: item[1])
            assert len(store.facts(name)) == facts, "a version that is not whole"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--universities", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = make_store(Path(name), given.universities)
        reader = os.fork()
        if reader == 0:
            read_on(folder)
        try:
            soak(folder, given.minutes * 60, chance)
            assert os.waitpid(reader, os.WNOHANG) == (0, 0), "the reader has failed"
        finally:
            os.kill(reader, 9)
            os.waitpid(reader, 0)
        print(verify(folder, Settings(), deep=True)["lines"][-1])


def soak(folder: Path, seconds: float, chance: random.Random) -> None:
    times: list[float] = []
    memory: list[tuple[float, int]] = []
    with hdlog.open(folder) as store:
        pool = [(p, row) for p in list(store.counts()) for row in _some_rows(store, p, chance)]
        away: list[tuple[Predicate, tuple[Any, ...]]] = []
        started = time.perf_counter()
        while (now := time.perf_counter() - started) < seconds:
            gone = chance.sample(pool, min(len(pool), chance.choice((1, 10, 100))))
            update = time.perf_counter()
            store.update(add=away, delete=gone)
            times.append(time.perf_counter() - update)
            memory.append((now, used_memory()))
            away = gone
        store.update(add=away)
    early = np.median([m for t, m in memory if t < seconds * _WARM][-50:])
    late = np.median([m for _, m in memory][-50:])
    share = np.percentile(times, [50, 95, 99, 100]) * 1000
    print(
        f"{len(times):,} updates of 1 to 100 facts; ms: half {share[0]:.1f}, 95 % {share[1]:.1f}, 99 % {share[2]:.1f}, all {share[3]:.1f}"
    )
    print(
        f"memory {early / 1e6:,.0f} MB after a fifth of the time, {late / 1e6:,.0f} MB in the end: {late / early - 1:+.1%}"
    )


def _some_rows(
    store: hdlog.OpenStore[Any], predicate: Predicate, chance: random.Random
) -> list[tuple[Any, ...]]:
    rows = store.facts(predicate).rows()
    return chance.sample(rows, min(len(rows), 200))


if __name__ == "__main__":
    main()
