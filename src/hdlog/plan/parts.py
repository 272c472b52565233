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
    Call,
    Expression,
    Filter,
    Negation,
    Predicate,
    Rule,
    expression_variables,
)
from hdlog.program.terms import Term, Variable

_MOST_ORDERS = 240


@dataclass(frozen=True)
class Part:
    """A node: its rule over the program's predicates and other parts.

    A counted part (a *view*) keeps, for each row, how many matches of its definition there are; another (the paper's
    *node*) keeps a set, its inst, and how many matches of its rule support each row.
    """

    rule: Rule
    definition: Rule
    """the same without other parts"""
    counted: bool
    estimate: float = field(default=0.0, compare=False)
    """rows, as the planner saw it"""

    @property
    def predicate(self) -> Predicate:
        return self.rule.heads[0].predicate


def make_part(
    items: Sequence[BodyItem],
    columns: Iterable[str],
    parts: Mapping[str, Part],
    counted: bool,
    estimate: float = 0.0,
    salt: str = "",
) -> tuple[Part, Atom]:
    """A part for body items projected to columns, and the atom by which the rule uses it.

    `parts` are the parts among the items, by name. Parts of another `salt` are kept apart.
    """
    wanted = set(columns)
    ordered, names = _canonical(items, wanted)
    canonical = tuple(_renamed(item, names) for item in ordered)
    used = sorted((n for n in names if n in wanted), key=lambda n: names[n])
    heading = tuple(Variable(f"v{names[n]}") for n in used)
    text = f"{salt}{heading}{canonical}{counted}"
    name = f"#{'view' if counted else 'node'}-{hashlib.sha1(text.encode()).hexdigest()[:12]}"
    head = Atom(name, heading)
    definition = Rule((head,), tuple(_flat(canonical, parts)))
    part = Part(Rule((head,), canonical), definition, counted, estimate)
    return part, Atom(name, tuple(Variable(n) for n in used))


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


def _canonical(items: Sequence[BodyItem], columns: set[str]) -> tuple[list[BodyItem], dict[str, int]]:
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
        tied.append(list(permutations(groups[key])) if orders <= _MOST_ORDERS else [tuple(groups[key])])
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
    return repr(_substituted(item, named))


def _renamed(item: BodyItem, numbers: Mapping[str, int]) -> BodyItem:
    return _substituted(item, {n: Variable(f"v{i}") for n, i in numbers.items()})


def _substituted(item: BodyItem, terms: Mapping[str, Term]) -> BodyItem:
    def term(t: Term) -> Term:
        return terms.get(t.name, t) if isinstance(t, Variable) else t

    def expression(e: Expression) -> Expression:
        return Call(e.function, tuple(expression(a) for a in e.arguments)) if isinstance(e, Call) else term(e)

    match item:
        case Atom():
            return Atom(item.name, tuple(term(t) for t in item.terms))
        case Negation():
            return Negation(tuple(_substituted(i, terms) for i in item.body), item.local)
        case Filter():
            return Filter(expression(item.condition))
        case Bind():
            variable = term(item.variable)
            assert isinstance(variable, Variable)
            return Bind(expression(item.expression), variable)
    return item


def _flat(items: Iterable[BodyItem], parts: Mapping[str, Part]) -> Iterator[BodyItem]:
    """The items with the definitions of the parts among them."""
    fresh = count()
    for item in items:
        if isinstance(item, Atom) and item.name in parts:
            definition = parts[item.name].definition
            terms: dict[str, Term] = dict(
                zip((v.name for v in definition.heads[0].variables()), item.terms, strict=True)
            )
            for inner in definition.body:
                for variable in _variables(inner):
                    if variable.name not in terms:
                        terms[variable.name] = Variable(f"{variable.name}_{next(fresh)}")
                yield _substituted(inner, terms)
        else:
            yield item
