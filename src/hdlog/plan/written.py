"""Plans as JSON, and back: a store keeps how its rules are evaluated, so that nothing is planned again when it is opened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar, get_args

from hdlog.plan.decomposition import Decomposition
from hdlog.plan.decomposition import Node as HypertreeNode
from hdlog.plan.hypergraph import Hypergraph
from hdlog.plan.nodes import NodeRule
from hdlog.plan.planner import Root, RulePlan, TreeNode
from hdlog.program.model import (
    Aggregate,
    AggregateCall,
    Atom,
    Bind,
    Call,
    Filter,
    Negation,
    Predicate,
    Rule,
)
from hdlog.program.ntriples import parse_term, term_text
from hdlog.program.terms import Constant, Variable

Sizes = Mapping[Predicate, int]
"""How many facts predicates had when a rule was planned."""
Kind = TypeVar("Kind")
_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Aggregate,
        AggregateCall,
        Atom,
        Bind,
        Call,
        Decomposition,
        Filter,
        Hypergraph,
        Negation,
        NodeRule,
        Root,
        Rule,
        RulePlan,
        TreeNode,
        Variable,
    )
} | {"HypertreeNode": HypertreeNode}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_CONSTANTS = get_args(Constant)


class UnreadablePlans(Exception):
    """Plans of another version of hdlog, say: rules are planned anew then."""


@dataclass(frozen=True)
class WrittenPlans:
    plans: tuple[tuple[RulePlan, Sizes | None], ...]
    """of rules, each with the sizes it was made for"""
    inner: tuple[Predicate, ...]
    """nodes that read predicates of the component that they are kept in"""

    @property
    def nodes(self) -> dict[Predicate, NodeRule]:
        """What the trees of all rules keep."""
        return {node.predicate: node for plan, _ in self.plans for node in plan.nodes}


def write_plans(written: WrittenPlans) -> bytes:
    plans = [
        (_write(plan), None if sizes is None else [(*p, n) for p, n in sizes.items()])
        for plan, sizes in written.plans
    ]
    return json.dumps({"plans": plans, "inner": written.inner}, separators=(",", ":")).encode()


def read_plans(data: bytes) -> WrittenPlans:
    try:
        content = json.loads(data)
        plans = tuple(
            (_expect(RulePlan, _read(plan)), _read_sizes(sizes)) for plan, sizes in content["plans"]
        )
        return WrittenPlans(plans, tuple(Predicate(*p) for p in content["inner"]))
    except (ValueError, TypeError, KeyError) as error:
        raise UnreadablePlans(str(error)) from None


def _read_sizes(written: list[tuple[str, int, int]] | None) -> Sizes | None:
    return None if written is None else {Predicate(name, arity): n for name, arity, n in written}


def _write(value: object) -> Any:
    """Values of a plan: what is made of others is a list that begins with the name of its kind."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, _CONSTANTS):
        return ["term", term_text(value)]
    if isinstance(value, Predicate):
        return ["predicate", *value]
    if isinstance(value, tuple):
        return ["tuple", *map(_write, value)]
    if isinstance(value, frozenset):
        return ["set", *sorted(map(_write, value))]
    assert is_dataclass(value), f"{value!r} is no part of a plan"
    kind = type(value)
    return [_NAMES[kind], *(_write(getattr(value, name)) for name in _field_names(kind))]


def _read(written: Any) -> Any:
    if not isinstance(written, list):
        return written
    kind, *parts = written
    match kind:
        case "term":
            return parse_term(parts[0])
        case "predicate":
            return Predicate(*parts)
        case "tuple":
            return tuple(map(_read, parts))
        case "set":
            return frozenset(map(_read, parts))
    found = _KINDS[kind]
    names = _field_names(found)
    return found(**dict(zip(names, map(_read, parts), strict=True)))


def _field_names(kind: type[Any]) -> list[str]:
    """What a value is made from; where it was read takes no part in it."""
    return [f.name for f in fields(kind) if f.init and f.name != "span"]


def _expect(kind: type[Kind], value: object) -> Kind:
    if not isinstance(value, kind):
        raise ValueError(f"{value!r} is no {kind.__name__}")
    return value
