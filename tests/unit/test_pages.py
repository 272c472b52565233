"""The examples of the documentation print what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines import ON_SPARK

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["queries.md", "why.md", "ontologies.md"]
pytestmark = pytest.mark.skipif(ON_SPARK, reason="commands choose their engine")


def blocks(page: str, *kinds: str) -> list[str]:
    pattern = rf"```(?:{'|'.join(kinds)})\n(.*?)```"
    return re.findall(pattern, (DOCS / page).read_text(), re.DOTALL)


def run(command: list[str], folder: Path) -> str:
    paths = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, "PATH": paths}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_commands(page: str, tmp_path: Path) -> None:
    for text in blocks(page, "dlog", "text"):
        name, content = text.split("\n", 1)
        # Line numbers in messages are those of the page's block.
        comment = f"{name}\n" if name.endswith(".dlog") else ""
        (tmp_path / name.removeprefix("# ")).write_text(comment + content)
    for text in blocks(page, "console"):
        for part in text.split("$ ")[1:]:
            command, _, expected = part.partition("\n")
            assert run(["bash", "-c", command], tmp_path).replace("\r", "") == expected, command


@pytest.mark.parametrize("page", ["queries.md", "why.md"])
def test_python(page: str, tmp_path: Path) -> None:
    for code in blocks(page, "python"):
        expected = re.findall(r"^print.*?  #\s+(.*)$", code, re.MULTILINE)
        assert expected
        assert run([sys.executable, "-c", code], tmp_path).splitlines() == expected
