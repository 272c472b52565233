"""What a query asks, as immutable values: the algebra of SPARQL, which has all that a rule body has.

A node stands for a bag of *rows*: values for some names. A name may have no value in some rows, as after an OPTIONAL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Literal as Choice

from hdlog.program.model import Atom, Expression, expression_variables
from hdlog.program.terms import Constant, Term


@dataclass(frozen=True)
class Match:
    """All matches of atoms; one with a variable in place of a predicate is a triple of any."""

    atoms: tuple[Atom, ...]


@dataclass(frozen=True)
class Values:
    """Rows that are written in the query; None where there is no value."""

    names: tuple[str, ...]
    rows: tuple[tuple[Constant | None, ...], ...]


@dataclass(frozen=True)
class Given:
    """Rows that are given when the query is asked."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Join:
    """Rows of both sides that agree where both have values."""

    left: Node
    right: Node


@dataclass(frozen=True)
class LeftJoin:
    """Rows of the left with those of the right, or alone where there are none for which the condition holds."""

    left: Node
    right: Node
    condition: Condition | None = None


@dataclass(frozen=True)
class Union:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Minus:
    """Rows of the left that agree with no row of the right with which they have a name in common."""

    left: Node
    right: Node


@dataclass(frozen=True)
class Condition:
    """An expression, in which some names stand for whether a node has rows that agree with the one that is looked at."""

    expression: Expression
    exists: tuple[tuple[str, Node], ...] = ()


@dataclass(frozen=True)
class Select:
    node: Node
    condition: Condition


@dataclass(frozen=True)
class Extend:
    """Rows with the value of an expression, or no value where it has none."""

    node: Node
    name: str
    value: Condition
    strict: bool = False
    """whether rows for which it has none go, as in a rule"""


Function = Choice["count", "sum", "min", "max", "avg", "mean", "sample", "group_concat"]


@dataclass(frozen=True)
class Aggregate:
    """One value of a group; `argument` is None for a count of rows."""

    function: Function
    argument: Expression | None
    name: str
    distinct: bool = False
    separator: str = " "
    strict: bool = False
    """whether groups without a value go, as in a rule"""


@dataclass(frozen=True)
class Group:
    """One row for each combination of keys; without keys, one row in any case, unless it is `strict`."""

    node: Node
    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    strict: bool = False


@dataclass(frozen=True)
class Selection:
    """What a query asks for, and a query within a query: some names of some rows of a node."""

    node: Node
    names: tuple[str, ...]
    distinct: bool = False
    """whether each row is there once"""
    order: tuple[tuple[Condition, bool], ...] = ()
    """expressions by which rows are ordered, each with whether it falls"""
    start: int = 0
    length: int | None = None

    @property
    def is_cut(self) -> bool:
        return self.start > 0 or self.length is not None


# Paths.


@dataclass(frozen=True)
class Step:
    """A property, forwards or backwards."""

    predicate: str
    backwards: bool = False


@dataclass(frozen=True)
class AnyStep:
    """Any property but some, forwards or backwards."""

    but: frozenset[str]
    backwards: bool = False


@dataclass(frozen=True)
class Sequence:
    parts: tuple[PathExpression, ...]


@dataclass(frozen=True)
class Alternative:
    parts: tuple[PathExpression, ...]


@dataclass(frozen=True)
class Repeat:
    """Pairs of nodes that a path links in some steps: none, one or more; each pair once."""

    path: PathExpression
    least: Choice[0, 1]
    most: Choice[1] | None = None


PathExpression = Step | AnyStep | Sequence | Alternative | Repeat


@dataclass(frozen=True)
class Path:
    """Pairs that a path links; `graph` is where, the default graph if it is None."""

    subject: Term
    path: PathExpression
    object: Term
    graph: Term | None = None


Node = Match | Values | Given | Join | LeftJoin | Union | Minus | Select | Extend | Group | Selection | Path


def names_of(node: Node) -> frozenset[str]:
    """The names that rows may have values for."""
    match node:
        case Match(atoms):
            return frozenset(v.name for atom in atoms for v in atom.variables())
        case Values(names) | Given(names) | Selection(_, names):
            return frozenset(names)
        case Join(left, right) | LeftJoin(left, right):
            return names_of(left) | names_of(right)
        case Union(parts):
            return frozenset().union(*map(names_of, parts))
        case Minus(left, _):
            return names_of(left)
        case Extend(inner, name):
            return names_of(inner) | {name}
        case Group(_, keys, aggregates):
            return frozenset(keys) | {a.name for a in aggregates}
        case Path(subject, _, value, graph):
            return frozenset(expression_names(subject, value, *([] if graph is None else [graph])))
    return names_of(node.node)


def expression_names(*expressions: Expression) -> Iterator[str]:
    return (v.name for e in expressions for v in expression_variables(e))


def condition_names(condition: Condition) -> frozenset[str]:
    """What a condition asks for: names of its expression, and those by which rows are compared with nodes."""
    own = frozenset(expression_names(condition.expression)) - {name for name, _ in condition.exists}
    return own.union(*(mentioned_names(node) for _, node in condition.exists))


def mentioned_names(node: Node) -> frozenset[str]:
    """The names of a node, and those that its conditions ask for though it has no values for them: within an EXISTS these are names of
    the rows that it is asked for."""
    own = names_of(node)
    match node:
        case Join(left, right) | Minus(left, right):
            return own | mentioned_names(left) | mentioned_names(right)
        case LeftJoin(left, right, condition):
            asked = condition_names(condition) if condition is not None else frozenset()
            return own | asked | mentioned_names(left) | mentioned_names(right)
        case Union(parts):
            return own.union(*map(mentioned_names, parts))
        case Select(inner, condition):
            return own | condition_names(condition) | mentioned_names(inner)
        case Extend(inner, _, value):
            return own | condition_names(value) | mentioned_names(inner)
    return own


def find_atoms(part: object) -> Iterator[Atom]:
    """All atoms of a query, wherever they are."""
    if isinstance(part, Atom):
        yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from find_atoms(inner)
    elif is_dataclass(part):
        for field in fields(part):
            yield from find_atoms(getattr(part, field.name))
