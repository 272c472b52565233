"""Each broken program in messages against the exact messages it must give."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hdlog.text import dialect_of, examine

CASES = Path(__file__).parents[1] / "messages"
PROGRAMS = sorted(p for p in CASES.iterdir() if p.suffix in (".dl", ".dlog"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.name)
def test_a_broken_program_gives_exactly_these_messages(path: Path) -> None:
    """Set HDLOG_ACCEPT=1 to write the messages anew, then read the difference."""
    reading = examine(path.read_text(), dialect_of(path), path.name)
    messages = "\n\n".join(map(str, reading.problems)) + "\n"
    expected = path.with_name(path.name + ".messages")
    if os.environ.get("HDLOG_ACCEPT"):
        expected.write_text(messages)
    assert messages == expected.read_text()
