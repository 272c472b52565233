"""Rules with other names for their variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from hdlog.program.model import (
    Aggregate,
    AggregateCall,
    Atom,
    Bind,
    BodyItem,
    Call,
    Expression,
    Filter,
    Negation,
    Rule,
)
from hdlog.program.terms import Term, Variable

Item = TypeVar("Item", bound=BodyItem)


def substitute(item: Item, terms: Mapping[str, Term]) -> Item:
    """A body item with terms in place of variables; names that are not in the mapping stay."""
    return _Substitution(terms).item(item)


def without_names(rule: Rule) -> Rule:
    """The rule with its variables numbered as they come: rules that differ in names only become equal."""
    numbered = _Numbered()
    renaming = _Substitution(numbered)
    heads = tuple(map(renaming.item, rule.heads))
    return Rule(heads, tuple(map(renaming.item, rule.body)), method=rule.method)


class _Numbered(dict[str, Term]):
    def __missing__(self, name: str) -> Variable:
        variable = Variable("_" if name == "_" else str(len(self)))
        self[name] = variable
        return variable

    def get(self, name: str, default: object = None) -> Term:
        return self[name]


class _Substitution:
    def __init__(self, terms: Mapping[str, Term]) -> None:
        self.terms = terms

    def variable(self, variable: Variable) -> Variable:
        replacement = self.terms.get(variable.name, variable)
        assert isinstance(replacement, Variable), "a variable that gets a value stays one"
        return replacement

    def expression(self, expression: Expression) -> Expression:
        if isinstance(expression, Call):
            return Call(
                expression.function, tuple(map(self.expression, expression.arguments)), expression.span
            )
        return self.term(expression)

    def term(self, term: Term) -> Term:
        return self.terms.get(term.name, term) if isinstance(term, Variable) else term

    def item(self, item: Item) -> Item:
        substituted: BodyItem
        match item:
            case Atom():
                substituted = Atom(item.name, tuple(map(self.term, item.terms)), item.span)
            case Negation():
                substituted = Negation(
                    tuple(map(self.item, item.body)), tuple(map(self.variable, item.local)), item.span
                )
            case Filter():
                substituted = Filter(self.expression(item.condition), item.span)
            case Bind():
                substituted = Bind(self.expression(item.expression), self.variable(item.variable), item.span)
            case Aggregate():
                body = tuple(map(self.item, item.body))
                group = tuple(map(self.variable, item.group))
                calls = tuple(map(self.call, item.calls))
                substituted = Aggregate(body, group, calls, item.correlated, item.span)
        return substituted  # type: ignore[return-value]

    def call(self, call: AggregateCall) -> AggregateCall:
        argument = None if call.argument is None else self.expression(call.argument)
        return AggregateCall(call.function, argument, self.variable(call.result), call.distinct)
