"""A real cluster on this machine: a master and two workers, which share nothing with the driver but the file system."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from hdlog.engines.spark.session import prepare_java
from hdlog.operations.stores import materialise
from hdlog.operations.work import Settings
from tests.unit.test_store import RULES, edge, exported, triples, write

HOME = Path(pyspark.__file__).parent


@dataclass
class Cluster:
    url: str
    workers: list[int]

    def executors(self) -> list[int]:
        """Processes of executors that the workers of this very cluster have started."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes().split(b"\0")
                executes = b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in command
                if executes and os.getsid(int(process.name)) in self.workers:
                    found.append(int(process.name))
            except OSError:
                continue
        return sorted(found)


def start(*arguments: str, log: Path) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with log.open("wb") as out:
        return subprocess.Popen(
            [str(HOME / "bin" / "spark-class"), *arguments],
            stdout=out,
            stderr=out,
            env=environment,
            start_new_session=True,
        )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(log: Path, text: str, seconds: float = 90) -> None:
    end = time.time() + seconds
    while text not in log.read_text(errors="replace"):
        assert time.time() < end, f"{text!r} did not come: {log.read_text(errors='replace')[-2000:]}"
        time.sleep(0.2)


@contextmanager
def standalone(folder: Path, workers: int, memory: str) -> Iterator[Cluster]:
    """A master and workers of one core each."""
    prepare_java()
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    place = ("--host", "127.0.0.1", "--webui-port", "0")
    master = start(
        "org.apache.spark.deploy.master.Master", "--port", str(port), *place, log=folder / "master.log"
    )
    wait_for(folder / "master.log", "I have been elected leader")
    started = [
        start(
            "org.apache.spark.deploy.worker.Worker",
            *("--cores", "1", "--memory", memory, "--work-dir", str(folder / f"work{i}")),
            *(*place, url),
            log=folder / f"worker{i}.log",
        )
        for i in range(workers)
    ]
    for i in range(workers):
        wait_for(folder / f"worker{i}.log", "Successfully registered")
    try:
        yield Cluster(url, [process.pid for process in started])
    finally:
        for process in (*started, master):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone(tmp_path_factory.mktemp("cluster"), 2, "1g") as found:
        yield found


def run_job(script: str, *arguments: str) -> subprocess.Popen[str]:
    """A driver of its own: this process has a local session already."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )


MATERIALISE = """
    import sys
    from pathlib import Path
    from hdlog.engines.spark.session import start_session
    from hdlog.operations.stores import materialise, update
    from hdlog.operations.work import Settings
    url, folder = sys.argv[1], Path(sys.argv[2])
    spark = start_session(url, "1g", {"spark.executor.memory": "700m"})
    settings = Settings("spark-only", spark=spark)
    materialise([folder / "rules.dlog"], [str(folder / "in.nt")], folder / "store", settings)
    update(folder / "store", [], [str(folder / "delete.nt")], settings)
    print("executors", len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1)
"""


def test_a_cluster_loads_materialises_and_updates_a_store(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "rules.dlog").write_text(RULES)
    write(tmp_path / "in.nt", *(edge(i, i + 1) for i in range(6)))
    write(tmp_path / "delete.nt", edge(3, 4))
    job = run_job(MATERIALISE, cluster.url, str(tmp_path))
    out, err = job.communicate(timeout=300)
    assert job.returncode == 0, err[-3000:]
    assert "executors 2" in out
    found = exported(tmp_path / "store")
    paths = {(i, j) for i in range(6) for j in range(i + 1, 7) if j <= 3 or i >= 4}
    expected = {f"<http://e/n{i}> <http://e/path> <http://e/n{j}>" for i, j in paths}
    assert {t for t in found if "/path>" in t} == expected
    assert found >= triples("".join(f"{edge(i, i + 1)} .\n" for i in (0, 1, 2, 4, 5)))


LOSING = """
    import os, signal, sys
    from hdlog.api import Reasoner
    from hdlog.engines.spark.engine import SparkEngine
    from hdlog.engines.spark.session import start_session
    spark = start_session(sys.argv[1], "1g", {"spark.executor.memory": "700m", "spark.task.maxFailures": "8"})
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 3:
        pass
    def listen(event):
        if event.round == 6 and event.phase == "add":
            print("now", flush=True)
            sys.stdin.readline()
    reasoner = Reasoner("r[?y] :- r[?x], e[?x, ?y] . r[?x] :- s[?x] .", engine=SparkEngine(spark), progress=listen)
    reasoner.update(add={"e": [(i, i + 1) for i in range(14)], "s": [(0,)]})
    print(sorted(row.c0 for row in reasoner.facts("r").collect()))
"""


def test_the_loss_of_an_executor_does_not_lose_the_run(cluster: Cluster) -> None:
    job = run_job(LOSING, cluster.url)
    assert job.stdout is not None
    assert job.stdin is not None
    assert job.stdout.readline().strip() == "now"
    executors = cluster.executors()
    assert len(executors) == 2
    os.kill(executors[0], signal.SIGKILL)
    job.stdin.write("go\n")
    job.stdin.flush()
    out, err = job.communicate(timeout=300)
    assert job.returncode == 0, err[-3000:]
    assert out.strip().endswith(str(list(range(15))))


LOSING_MOST = """
    import sys
    from pathlib import Path
    from hdlog.engines.spark.session import start_session
    from hdlog.errors import SparkFailed
    from hdlog.operations.stores import materialise, resume
    from hdlog.operations.work import Settings
    url, folder = sys.argv[1], Path(sys.argv[2])
    spark = start_session(url, "1g", {"spark.executor.memory": "700m", "spark.task.maxFailures": "8"})
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 4:
        pass
    asked = []
    def tell(event):
        if event.round == 3 and event.phase == "add" and not asked:
            asked.append(event)
            print("now", flush=True)
            sys.stdin.readline()
    settings = Settings("spark-only", spark=spark, note_every=0.0, tell=tell)
    try:
        materialise([folder / "rules.dlog"], [str(folder / "in.nt")], folder / "store", settings)
        print("went on")
    except SparkFailed:
        print(resume(folder / "store", settings)["lines"][0])
"""


def test_two_executors_of_three_are_lost(tmp_path: Path) -> None:
    """Frames are kept twice: those that were on these two are gone, and the run goes on from what the store has."""
    (tmp_path / "rules.dlog").write_text(RULES)
    data = write(tmp_path / "in.nt", *(edge(i, i + 1) for i in range(7)))
    with standalone(tmp_path, 3, "1g") as cluster:
        job = run_job(LOSING_MOST, cluster.url, str(tmp_path))
        assert job.stdout is not None
        assert job.stdin is not None
        assert job.stdout.readline().strip() == "now"
        executors = cluster.executors()
        assert len(executors) == 3
        for executor in executors[:2]:
            os.kill(executor, signal.SIGKILL)
        job.stdin.write("go\n")
        job.stdin.flush()
        out, err = job.communicate(timeout=300)
    assert job.returncode == 0, err[-3000:]
    assert "went on" in out or "gone on after" in out
    materialise([tmp_path / "rules.dlog"], [data], tmp_path / "whole", Settings("columnar"))
    assert exported(tmp_path / "store") == exported(tmp_path / "whole")
