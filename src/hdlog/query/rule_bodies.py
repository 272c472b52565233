"""Rule bodies as queries: the answers are what a rule with that body would derive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from hdlog.program import model
from hdlog.program.model import Atom, Bind, BodyItem, Call, Filter, Negation, Rule
from hdlog.program.renaming import substitute
from hdlog.program.terms import Variable
from hdlog.query.algebra import (
    Aggregate,
    Condition,
    Extend,
    Given,
    Group,
    Join,
    Match,
    Node,
    Select,
    expression_names,
    names_of,
)
from hdlog.query.rows import NO_NAMES


def translate_body(items: Sequence[BodyItem], given: Sequence[str] = ()) -> Node:
    """The matches of a body; some names are given values when it is asked."""
    return _Translation().body(items, NO_NAMES, tuple(given))


def answer_names(query: Rule) -> tuple[str, ...]:
    return tuple(v.name for v in query.heads[0].variables())


class _Translation:
    def __init__(self) -> None:
        self._fresh: Iterator[int] = count()

    def body(self, items: Sequence[BodyItem], around: frozenset[str], given: tuple[str, ...] = ()) -> Node:
        """The matches of a body; names `around` it have values where its conditions look for them."""
        atoms = tuple(self._name_wildcards(i) for i in items if isinstance(i, Atom))
        node: Node = Join(Given(given), Match(atoms)) if given else Match(atoms)
        for item in items:
            if isinstance(item, model.Aggregate):
                node = Join(node, self._aggregate(item))
        node = self._apply_built_ins(node, [i for i in items if isinstance(i, Filter | Bind)], around)
        for item in items:
            if isinstance(item, Negation):
                node = self._negate(node, item, around)
        return node

    def _name_wildcards(self, atom: Atom) -> Atom:
        """Each `_` is a variable of its own."""
        terms = [
            Variable(f"#any{next(self._fresh)}") if isinstance(t, Variable) and t.is_wildcard else t
            for t in atom.terms
        ]
        return replace(atom, terms=tuple(terms))

    def _apply_built_ins(self, node: Node, waiting: Sequence[Filter | Bind], around: frozenset[str]) -> Node:
        """Filters and values, each as soon as what it needs is there; a variable that has a value already must have that one."""
        rest = list(waiting)
        while rest:
            known = names_of(node) | around
            item = next((i for i in rest if self._needs(i) <= known), rest[0])
            rest.remove(item)
            if isinstance(item, Filter):
                node = Select(node, Condition(item.condition))
            elif item.variable.name in known:
                node = Select(node, Condition(Call("sameterm", (item.variable, item.expression))))
            else:
                node = Extend(node, item.variable.name, Condition(item.expression), strict=True)
        return node

    def _needs(self, item: Filter | Bind) -> frozenset[str]:
        expression = item.condition if isinstance(item, Filter) else item.expression
        return frozenset(expression_names(expression))

    def _negate(self, node: Node, item: Negation, around: frozenset[str]) -> Node:
        own = {v.name: Variable(f"#own{next(self._fresh)}") for v in item.local}
        inner = self.body([substitute(i, own) for i in item.body], names_of(node) | around)
        name = f"#exists{next(self._fresh)}"
        return Select(node, Condition(Call("not", (Variable(name),)), ((name, inner),)))

    def _aggregate(self, item: model.Aggregate) -> Node:
        assert not item.correlated, "queries are written in a dialect whose aggregates stand for themselves"
        # Names that are not in the group belong to the aggregate alone.
        group = {v.name for v in item.group}
        own = {
            name: Variable(f"#own{next(self._fresh)}") for name in _all_names(item.body) if name not in group
        }
        body = self.body([substitute(i, own) for i in item.body], frozenset())
        calls = tuple(
            Aggregate(
                call.function,
                None if call.argument is None else substitute(Filter(call.argument), own).condition,
                call.result.name,
                call.distinct,
                strict=True,
            )
            for call in item.calls
        )
        return Group(body, tuple(v.name for v in item.group), calls, strict=True)


def _all_names(body: Sequence[BodyItem]) -> dict[str, None]:
    """Every name that occurs in a body, but for what is local to a part of it."""
    names: dict[str, None] = {}
    for item in body:
        match item:
            case Atom():
                names |= dict.fromkeys(v.name for v in item.variables() if not v.is_wildcard)
            case Filter(condition):
                names |= dict.fromkeys(expression_names(condition))
            case Bind(expression, variable):
                names |= dict.fromkeys((*expression_names(expression), variable.name))
            case Negation(inner, local):
                hidden = {v.name for v in local}
                names |= dict.fromkeys(n for n in _all_names(inner) if n not in hidden)
            case model.Aggregate(_, group, calls):
                names |= dict.fromkeys((*(v.name for v in group), *(c.result.name for c in calls)))
    return names
