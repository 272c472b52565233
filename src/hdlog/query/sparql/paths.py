"""Paths of properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from hdlog.query.algebra import Alternative, AnyStep, PathExpression, Repeat
from hdlog.query.algebra import Sequence as PathSequence
from hdlog.query.algebra import Step as PathStep
from hdlog.query.paths import reverse
from hdlog.query.sparql.parsing import refuse


def translate_path(path: Any) -> PathExpression:
    match type(path).__name__:
        case "URIRef":
            return PathStep(str(path))
        case "SequencePath":
            return PathSequence(tuple(map(translate_path, path.args)))
        case "AlternativePath":
            return Alternative(tuple(map(translate_path, path.args)))
        case "InvPath":
            return reverse(translate_path(path.arg))
        case "MulPath":
            least: Literal[0, 1] = 0 if path.zero else 1
            return Repeat(translate_path(path.path), least, None if path.more else 1)
        case "NegatedPath":
            return _negated(path.args)
    raise refuse(f"the path {path} is not supported")


def _negated(parts: Sequence[Any]) -> PathExpression:
    """Any property but some, forwards, backwards or both ways."""
    forwards, backwards = [], []
    for part in parts:
        match type(part).__name__:
            case "URIRef":
                forwards.append(str(part))
            case "InvPath":
                backwards.append(str(part.arg))
            case _:
                backwards.append(str(part.part))
    ways: list[PathExpression] = []
    if forwards or not backwards:
        ways.append(AnyStep(frozenset(forwards)))
    if backwards:
        ways.append(AnyStep(frozenset(backwards), backwards=True))
    return ways[0] if len(ways) == 1 else Alternative(tuple(ways))
