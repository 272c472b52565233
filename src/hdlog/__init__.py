"""Datalog over knowledge graphs and tables, kept exact under additions and deletions."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Answers",
    "BlankNode",
    "Event",
    "Explanation",
    "FactInput",
    "FactTable",
    "Failure",
    "Iri",
    "Literal",
    "MixedEngine",
    "OpenStore",
    "Predicate",
    "PreparedQuery",
    "Program",
    "Reasoner",
    "Rule",
    "Skolem",
    "SparkEngine",
    "Tuning",
    "Update",
    "Variable",
    "errors",
    "open",
    "parse",
    "read",
]

if TYPE_CHECKING:
    from hdlog import errors
    from hdlog.api import (
        Event,
        Explanation,
        FactInput,
        FactTable,
        Failure,
        PreparedQuery,
        Reasoner,
        Update,
    )
    from hdlog.engines.mixed.engine import MixedEngine
    from hdlog.engines.spark.engine import SparkEngine
    from hdlog.opening import OpenStore
    from hdlog.opening import open_store as open
    from hdlog.program.model import Predicate, Program, Rule
    from hdlog.program.terms import BlankNode, Iri, Literal, Skolem, Variable
    from hdlog.query.answers import Answers
    from hdlog.text import parse, read
    from hdlog.tuning import Tuning

_HOMES = {
    "hdlog.api": (
        "Event",
        "Explanation",
        "FactInput",
        "FactTable",
        "Failure",
        "PreparedQuery",
        "Reasoner",
        "Update",
    ),
    "hdlog.engines.mixed.engine": ("MixedEngine",),
    "hdlog.engines.spark.engine": ("SparkEngine",),
    "hdlog.opening": ("OpenStore",),
    "hdlog.program.model": ("Predicate", "Program", "Rule"),
    "hdlog.program.terms": ("BlankNode", "Iri", "Literal", "Skolem", "Variable"),
    "hdlog.query.answers": ("Answers",),
    "hdlog.text": ("parse", "read"),
    "hdlog.tuning": ("Tuning",),
}


def __getattr__(name: str) -> Any:
    """Import on first use: a command that only reads rules does not wait for the engine, and nobody for Spark."""
    from importlib import import_module

    if name == "errors":
        return import_module("hdlog.errors")
    if name == "open":
        return import_module("hdlog.opening").open_store
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'hdlog' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
