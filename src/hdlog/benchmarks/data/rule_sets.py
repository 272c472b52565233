"""The rules of each benchmark."""

from __future__ import annotations

from importlib.resources import files

from hdlog.benchmarks.data import univ_bench
from hdlog.program.model import Program
from hdlog.text import parse
from hdlog.text.write import write

NAMES = ("lubm-l", "lubm-l+c", "exp", "yago", "collaborators")


def rule_text(name: str) -> str:
    """The rules in the RDFox dialect."""
    if name == "lubm-l":
        return write(univ_bench.rules())
    if name == "lubm-l+c":
        return f"{rule_text('lubm-l')}\n{_file('lubm_complex')}"
    assert name in NAMES, name
    return _file(name)


def rules(name: str) -> Program:
    return parse(rule_text(name))


def _file(name: str) -> str:
    return (files("hdlog.benchmarks.data") / "rules" / f"{name}.dlog").read_text()
