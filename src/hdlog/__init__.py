"""Datalog over knowledge graphs and tables, kept exact under additions and deletions."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Program", "Reasoner", "parse", "read"]

if TYPE_CHECKING:
    from hdlog.api import Reasoner
    from hdlog.program.model import Program
    from hdlog.text import parse, read


def __getattr__(name: str) -> Any:
    """Import on first use: a command that only reads rules does not wait for the engine."""
    from importlib import import_module

    homes = {
        "Reasoner": "hdlog.api",
        "Program": "hdlog.program.model",
        "parse": "hdlog.text",
        "read": "hdlog.text",
    }
    if name in homes:
        return getattr(import_module(homes[name]), name)
    raise AttributeError(f"module 'hdlog' has no attribute {name!r}")
