"""Runs the C preprocessor over Soufflé text that asks for it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from hdlog.errors import Problem, Source, Span

_DIRECTIVE = re.compile(r"^[ \t]*#", re.MULTILINE)
_MARKER = re.compile(r'#(?:line)?\s+(\d+)\s+"((?:[^"\\]|\\.)*)"')
# Traditional mode and -C leave blanks and comments as they are, and so the columns of a place.
_OPTIONS = ("-w", "-undef", "-traditional-cpp", "-C")
COMMANDS = (("cpp", *_OPTIONS), ("gcc", "-E", "-xc", *_OPTIONS, "-"), ("mcpp", "-W0", "-C"))
_COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
SECONDS = 60


def preprocess(source: Source, folder: Path) -> tuple[Source, list[Problem]]:
    """The text after `#include` and `#define`; as it was where it has no such line."""
    directive = _DIRECTIVE.search(_COMMENT_OR_STRING.sub(_blank_out, source.text))
    if not directive:
        return source, []
    line = source.text.count("\n", 0, directive.start()) + 1
    span = Span(source, line, 1, len(source.line(line)) + 1)
    command = next((c for c in COMMANDS if shutil.which(c[0])), None)
    if command is None:
        message = "this line needs a C preprocessor, and there is none on this machine"
        return _blank_directives(source), [Problem("preprocessor", message, span, "install cpp or mcpp")]
    try:
        run = subprocess.run(
            command, input=source.text.encode(), capture_output=True, cwd=folder, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        message = f"{command[0]} did not end within {SECONDS} seconds"
        return _blank_directives(source), [Problem("preprocessor", message, span)]
    if run.returncode:
        complaint = run.stderr.decode(errors="replace").strip().split("\n")[0]
        return _blank_directives(source), [Problem("preprocessor", f"{command[0]} failed: {complaint}", span)]
    return _map_lines(source.name, run.stdout.decode(errors="replace")), []


def _blank_out(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def _blank_directives(source: Source) -> Source:
    """The text without its directives, line for line."""
    lines = ("" if _DIRECTIVE.match(line) else line for line in source.text.split("\n"))
    return Source(source.name, "\n".join(lines))


def _map_lines(name: str, text: str) -> Source:
    """The preprocessor's output, each line with the place its line markers give it."""
    origins, lines = [], []
    file, number = name, 1
    for line in text.split("\n"):
        marker = _MARKER.match(line)
        origins.append((file, number))
        lines.append("" if marker else line)
        number += 1
        if marker:
            number, file = int(marker.group(1)), marker.group(2)
            file = name if file in ("<stdin>", "") else file
    return Source(name, "\n".join(lines), tuple(origins))
