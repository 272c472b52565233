"""Nodes of decompositions as predicates of their own, named by what they stand for.

Two nodes that differ only in the names of variables get the same name, so rules share them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, permutations, product
from math import factorial

from hdlog.program.model import (
    Atom,
    Bind,
    BodyItem,
    Filter,
    Negation,
    Predicate,
    Rule,
    expression_variables,
)
from hdlog.program.renaming import substitute
from hdlog.program.terms import Term, Variable
from hdlog.tuning import Numbers

_VIEW, _NODE = "#view-", "#node-"
"""What names of nodes begin with, counted ones and others."""


def is_view(name: str) -> bool:
    return name.startswith(_VIEW)


def is_node(name: str) -> bool:
    return name.startswith((_VIEW, _NODE))


@dataclass(frozen=True)
class NodeRule:
    """What a node keeps: its rule over the program's predicates and other nodes.

    A counted node (a *view*) keeps, for each row, how many matches of its definition there are; another (the paper's
    node) keeps a set, its inst, and how many matches of its rule support each row.
    """

    rule: Rule
    definition: Rule
    """the same without other nodes"""
    counted: bool
    estimate: float = field(default=0.0, compare=False)
    """rows, as the planner saw it"""

    @property
    def predicate(self) -> Predicate:
        return self.rule.heads[0].predicate


def make_node(
    items: Sequence[BodyItem],
    columns: Iterable[str],
    nodes: Mapping[str, NodeRule],
    counted: bool,
    estimate: float = 0.0,
    salt: str = "",
    most_orders: int = Numbers.most_orders,
) -> tuple[NodeRule, Atom]:
    """A node for body items projected to columns, and the atom by which the rule uses it.

    `nodes` are those among the items, by name. Nodes of another `salt` are kept apart.
    """
    wanted = set(columns)
    ordered, names = _canonicalise(items, wanted, most_orders)
    canonical = tuple(_rename(item, names) for item in ordered)
    used = sorted((n for n in names if n in wanted), key=lambda n: names[n])
    heading = tuple(Variable(f"v{names[n]}") for n in used)
    text = f"{salt}{heading}{canonical}{counted}"
    name = f"{_VIEW if counted else _NODE}{hashlib.sha1(text.encode()).hexdigest()[:12]}"
    head = Atom(name, heading)
    definition = Rule((head,), tuple(_flatten(canonical, nodes)))
    node = NodeRule(Rule((head,), canonical), definition, counted, estimate)
    return node, Atom(name, tuple(Variable(n) for n in used))


def item_variables(item: BodyItem) -> frozenset[str]:
    return frozenset(v.name for v in _variables(item))


def _variables(item: BodyItem) -> Iterator[Variable]:
    match item:
        case Atom():
            yield from item.variables()
        case Negation():
            for inner in item.body:
                yield from _variables(inner)
        case Filter():
            yield from expression_variables(item.condition)
        case Bind():
            yield from expression_variables(item.expression)
            yield item.variable


def _canonicalise(
    items: Sequence[BodyItem], columns: set[str], most_orders: int
) -> tuple[list[BodyItem], dict[str, int]]:
    """An order of the items, and numbers for their variables, that do not depend on names."""
    groups: dict[str, list[BodyItem]] = {}
    for item in items:
        marks = {n: ("column" if n in columns else "other", 0) for n in item_variables(item)}
        groups.setdefault(_text(item, marks), []).append(item)
    tied: list[list[tuple[BodyItem, ...]]] = []
    orders = 1
    for key in sorted(groups):
        # Large groups of items that look alike keep the order they have: then isomorphic nodes may go unnoticed.
        orders *= factorial(len(groups[key]))
        tied.append(list(permutations(groups[key])) if orders <= most_orders else [tuple(groups[key])])
    best: tuple[str, list[BodyItem], dict[str, int]] | None = None
    for choice in product(*tied):
        ordered = [item for group in choice for item in group]
        numbers: dict[str, int] = {}
        for item in ordered:
            for variable in _variables(item):
                numbers.setdefault(variable.name, len(numbers))
        text = " ".join(_text(item, {n: ("v", i) for n, i in numbers.items()}) for item in ordered)
        if best is None or text < best[0]:
            best = (text, ordered, numbers)
    assert best is not None
    return best[1], best[2]


def _text(item: BodyItem, marks: Mapping[str, tuple[str, int]]) -> str:
    named = {n: Variable(f"{kind}{number}") for n, (kind, number) in marks.items()}
    return repr(substitute(item, named))


def _rename(item: BodyItem, numbers: Mapping[str, int]) -> BodyItem:
    return substitute(item, {n: Variable(f"v{i}") for n, i in numbers.items()})


def _flatten(items: Iterable[BodyItem], nodes: Mapping[str, NodeRule]) -> Iterator[BodyItem]:
    """The items with the definitions of the nodes among them."""
    fresh = count()
    for item in items:
        if isinstance(item, Atom) and item.name in nodes:
            definition = nodes[item.name].definition
            terms: dict[str, Term] = dict(
                zip((v.name for v in definition.heads[0].variables()), item.terms, strict=True)
            )
            for inner in definition.body:
                for variable in _variables(inner):
                    if variable.name not in terms:
                        terms[variable.name] = Variable(f"{variable.name}_{next(fresh)}")
                yield substitute(inner, terms)
        else:
            yield item
