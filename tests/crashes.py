"""Processes that end in the midst of work on a store, and what is left of it.

python -m tests.crashes --kills 1000 kills as many at random moments, of every kind of work, and prints what was found; with --spark 50, as many that
work with Spark, streams among them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hdlog.operations.stores import (
    begin_living,
    change_rules,
    compact,
    load,
    materialise,
    rollback,
    update,
    verify,
)
from hdlog.operations.work import Settings
from hdlog.store import disk
from hdlog.store.store import open_for_reading

POINTS = ("write", "sync_descriptor", "replace", "remove")
"""What a store does with the file system, by the names of the functions of `hdlog.store.disk`."""
State = dict[str, list[tuple[Any, ...]]]
ENDED = 77
RULES = """
path[?x, ?y] :- edge[?x, ?y] . path[?x, ?z] :- path[?x, ?y], edge[?y, ?z] .
named[?k, ?x] :- edge[?x, ?y], BIND(SKOLEM("f", ?x) AS ?k) .
"""
MORE_RULES = "back[?y, ?x] :- edge[?x, ?y] ."


def memory_folder() -> str | None:
    """Where files are quickly on the disk: it is not the disk that is tested here."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Scene:
    """A folder with a store and what is needed to work on it."""

    def __init__(self, root: Path, edges: int = 60) -> None:
        self.root, self.store = root, root / "store"
        (root / "rules.dlog").write_text(RULES)
        (root / "more.dlog").write_text(MORE_RULES)
        self._write("first", [(f"a{i}", f"b{i % 7}") for i in range(edges)] + [("b1", "b2"), ("b2", "a3")])
        self._write("come", [("b3", "new"), ("new", "b4")])
        self._write("go", [("b1", "b2"), ("a5", "b5")])
        materialise([root / "rules.dlog"], [root / "first/edge.facts"], self.store, Settings())
        update(self.store, [str(root / "come/edge.facts")], [], Settings())
        update(self.store, [], [str(root / "come/edge.facts")], Settings())

    def _write(self, name: str, rows: list[tuple[str, str]]) -> None:
        (self.root / name).mkdir()
        (self.root / name / "edge.facts").write_text("".join(f"{a}\t{b}\n" for a, b in rows))

    def works(self, store: Path) -> dict[str, Callable[[], object]]:
        come, go = (str(self.root / name / "edge.facts") for name in ("come", "go"))
        rules, first = self.root / "rules.dlog", self.root / "first/edge.facts"
        return {
            "update": lambda: update(store, [come], [go], Settings()),
            "rules": lambda: change_rules(store, [self.root / "more.dlog"], [], Settings()),
            "compact": lambda: compact(store, Settings(), keep=1),
            "rollback": lambda: rollback(store, 2),
            "materialise": lambda: materialise([rules], [first, come], store, Settings(), overwrite=True),
            "load": lambda: load(store, [first, come], Settings(), overwrite=True),
        }

    @contextmanager
    def copy(self) -> Iterator[Path]:
        """The store once more, to be spoilt."""
        with tempfile.TemporaryDirectory(dir=self.root) as folder:
            shutil.copytree(self.store, Path(folder) / "store")
            yield Path(folder) / "store"

    def after(self, name: str) -> State:
        """What the store has when some work is done."""
        with self.copy() as store:
            self.works(store)[name]()
            return state_of(store)


def state_of(store: Path) -> State:
    """All facts with their supports."""
    with open_for_reading(store) as opened:
        tables = begin_living(opened, Settings("columnar")).work.reasoner.supports()
    return {str(p): sorted((str(r), a, s) for r, a, s in rows) for p, rows in tables.items() if rows}


def check(scene: Scene, store: Path, allowed: list[State]) -> int:
    """Which state a store is in: one of those, whole, and it takes an update."""
    verify(store, Settings())
    found = state_of(store)
    assert found in allowed, "neither the old version nor the new one"
    update(store, [str(scene.root / "come/edge.facts")], [], Settings())
    verify(store, Settings(), deep=True)
    return allowed.index(found)


class Fault:
    """At one of the calls to a function of the file system, something happens in its place."""

    def __init__(self, name: str, number: int, happens: Callable[[Any, tuple[Any, ...]], None]) -> None:
        self.name, self.number, self.happens = name, number, happens
        self.calls = 0
        self.original = getattr(disk, name)

    def __call__(self, *arguments: Any) -> None:
        self.calls += 1
        if self.calls == self.number:
            self.happens(self.original, arguments)
        else:
            self.original(*arguments)

    @contextmanager
    def within(self) -> Iterator[None]:
        setattr(disk, self.name, self)
        try:
            yield
        finally:
            setattr(disk, self.name, self.original)


def count_calls(name: str, work: Callable[[], object]) -> int:
    counting = Fault(name, -1, _nothing)
    with counting.within():
        work()
    return counting.calls


def _nothing(original: Any, arguments: tuple[Any, ...]) -> None:
    raise AssertionError("never called")


def end_before(original: Any, arguments: tuple[Any, ...]) -> None:
    os._exit(ENDED)


def end_after(original: Any, arguments: tuple[Any, ...]) -> None:
    original(*arguments)
    os._exit(ENDED)


def end_within(original: Any, arguments: tuple[Any, ...]) -> None:
    """Half of what was to be written is."""
    file, data = arguments
    original(file, data[: len(data) // 2])
    file.flush()
    os._exit(ENDED)


def refuse(original: Any, arguments: tuple[Any, ...]) -> None:
    raise OSError(28, os.strerror(28))


def in_child(work: Callable[[], object], fault: Fault | None = None, kill_after: float | None = None) -> int:
    """Do it in a process of its own, which may be killed; how that ended."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115
            if fault is not None:
                with fault.within():
                    work()
            else:
                work()
            status = 0
        finally:
            os._exit(status)
    if kill_after is not None:
        time.sleep(kill_after)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class SparkWork:
    """Commands that work on a store with Spark, each a process with a Java machine of its own, and all of them killed together."""

    def __init__(self, scene: Scene) -> None:
        self.scene, root = scene, scene.root
        come, go = (root / name / "edge.facts" for name in ("come", "go"))
        self.changes = root / "stream"
        self.changes.mkdir()
        for number, name in enumerate(("come", "go")):
            kind = "add" if name == "come" else "delete"
            lines = [line.split("\t") for line in (root / name / "edge.facts").read_text().splitlines()]
            facts = [json.dumps({"predicate": "edge", "args": row}) for row in lines]
            (self.changes / f"{number}.{kind}.jsonl").write_text("".join(f"{fact}\n" for fact in facts))
        first = root / "first/edge.facts"
        self.commands: dict[str, list[object]] = {
            "update": ["update", "STORE", "--add", come, "--delete", go],
            "rules": ["rules", "STORE", "--add", root / "more.dlog"],
            "compact": ["compact", "STORE", "--keep", "1"],
            "materialise": [
                "materialise",
                root / "rules.dlog",
                first,
                come,
                "--store",
                "STORE",
                "--overwrite",
            ],
            "load": ["load", first, come, "--store", "STORE", "--overwrite"],
            "stream": ["stream", "--store", "STORE", "--changes", self.changes, "--once"],
        }

    def run(self, name: str, store: Path, kill_after: float | None = None) -> int:
        """How a command ended; a negative number if it was killed."""
        words = [str(store) if word == "STORE" else str(word) for word in self.commands[name]]
        command = [sys.executable, "-m", "hdlog", *words, "--engine", "spark", "--master", "local[2]"]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            return process.wait(kill_after)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.wait()


def kill_with_spark(scene: Scene, kills: int, chance: random.Random) -> Counter[str]:
    found: Counter[str] = Counter()
    work = SparkWork(scene)
    before = state_of(scene.store)
    allowed, took = {}, {}
    for name in work.commands:
        with scene.copy() as store:
            started = time.perf_counter()
            assert work.run(name, store) == 0, name
            took[name] = time.perf_counter() - started
            allowed[name] = [before, state_of(store)]
    with scene.copy() as store:  # of a stream, one batch may be in the store and the other not
        update(store, [str(scene.root / "come/edge.facts")], [], Settings())
        allowed["stream"].append(state_of(store))
    for number in range(kills):
        name = list(work.commands)[number % len(work.commands)]
        with scene.copy() as store:
            status = work.run(name, store, chance.uniform(0.5, 1.4) * took[name])
            place = min(check(scene, store, allowed[name]), 1)
            if name == "stream":
                assert work.run(name, store) == 0, "the stream goes on"
                verify(store, Settings(), deep=True)
            found[f"{name}: {('old', 'new')[place]} version, {'killed' if status < 0 else 'done'}"] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--spark", type=int, default=0, help="kill as many that work with Spark instead")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    found: Counter[str] = Counter()
    if given.spark:
        with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
            found = kill_with_spark(Scene(Path(folder), edges=2000), given.spark, chance)
        _report(found, given.spark, given.seed)
        return
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        scene = Scene(Path(folder), edges=2000)
        before = state_of(scene.store)
        names = list(scene.works(scene.store))
        after = {name: scene.after(name) for name in names}
        took = {}
        for name in names:
            with scene.copy() as store:
                started = time.perf_counter()
                assert in_child(scene.works(store)[name]) == 0
                took[name] = time.perf_counter() - started
        for number in range(given.kills):
            name = names[number % len(names)]
            with scene.copy() as store:
                status = in_child(scene.works(store)[name], kill_after=chance.uniform(0, 1.05 * took[name]))
                place = check(scene, store, [before, after[name]])
                found[f"{name}: {('old', 'new')[place]} version, {'killed' if status < 0 else 'done'}"] += 1
    _report(found, given.kills, given.seed)


def _report(found: Counter[str], processes: int, seed: int) -> None:
    for line, times in sorted(found.items()):
        print(f"{times:6}  {line}")
    print(f"{processes} processes, seed {seed}: every store was whole, and took the next update")


if __name__ == "__main__":
    main()
