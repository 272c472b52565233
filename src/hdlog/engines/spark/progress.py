"""How far the jobs of Spark are, told while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Say = Callable[[str], None]


@contextmanager
def watch_jobs(context: Any, what: str, say: Say) -> Iterator[None]:
    """Tell how far the jobs of Spark are, from a thread beside them."""
    done = threading.Event()

    def watch() -> None:
        tracker = context.statusTracker()
        while not done.wait(0.3):
            stages = [tracker.getStageInfo(s) for s in tracker.getActiveStageIds()]
            tasks = [(s.numCompletedTasks, s.numTasks, s.numActiveTasks) for s in stages if s is not None]
            if tasks:
                finished, all_, active = (sum(column) for column in zip(*tasks, strict=True))
                say(f"{what}: {finished:,} of {all_:,} tasks done, {active:,} running")

    thread = threading.Thread(target=watch, daemon=True)
    say(what)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
