"""A server of Spark Connect on this machine, for the time of a test run."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import pyspark

from hdlog.engines.spark.session import prepare_java

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_PATIENCE = 120


@cache
def start_server(master: str = "local[2]", memory: str = "2g") -> str:
    """The address of a server, started when first asked for; it ends with this process."""
    prepare_java()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        *("--class", _SERVER, "--master", master, "--driver-memory", memory),
        *("--conf", f"spark.connect.grpc.binding.port={port}"),
        *("--conf", "spark.connect.grpc.binding.address=127.0.0.1"),
        *("--conf", "spark.ui.enabled=false"),
        "spark-internal",
    ]
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_NO_DAEMONIZE": "1",
        # Workers find the package where this process does.
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    }
    log = Path(tempfile.mkdtemp(prefix="hdlog-connect-")) / "log"
    with log.open("wb") as said:
        server = subprocess.Popen(command, env=environment, stdout=said, stderr=said, start_new_session=True)
    atexit.register(_stop, server)
    _wait(server, port, log)
    return f"sc://127.0.0.1:{port}"


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        if server.poll() is not None:
            raise AssertionError(f"the server of Spark Connect ended: {log.read_text()[-2000:]}")
        with socket.socket() as there:
            if there.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError("the server of Spark Connect does not answer")


def _stop(server: subprocess.Popen[bytes]) -> None:
    os.killpg(server.pid, 15)
    server.wait(20)
