"""The README's Python runs, and prints what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_python_examples_print_what_their_comments_say(tmp_path: Path, code: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert run.stderr == ""
    expected = re.findall(r"^\s*(?:print|change = print).*?#\s+(.*)$", code, re.MULTILINE)
    assert expected
    assert run.stdout.splitlines() == expected
