"""Expressions: functions, comparisons, and whether a pattern has a match."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from hdlog.program.functions import FUNCTIONS, IS_BOUND, NEW_NODE, RANDOM, UUID, UUID_TEXT
from hdlog.program.model import Call, Expression
from hdlog.program.ntriples import parse_term
from hdlog.program.terms import Constant, Term, Variable
from hdlog.query.algebra import Node
from hdlog.query.rows import ROW
from hdlog.query.sparql.parsing import part, refuse
from hdlog.reading.values import graph_text, value_text

_VOLATILE = {"rand": RANDOM, "uuid": UUID, "struuid": UUID_TEXT, "bnode": NEW_NODE}
_OPERATORS = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
_ARGUMENTS = ("arg", "arg1", "arg2", "arg3", "text", "start", "length", "pattern", "replacement", "flags")


@dataclass
class Expressions:
    """Translates an expression; patterns that it asks for are gathered in `exists`."""

    pattern: Callable[[Any], Node]
    fresh: Callable[[str], str]
    now: Constant
    exists: list[tuple[str, Node]] = field(default_factory=list)

    def expression(self, expression: Any) -> Expression:
        name = getattr(expression, "name", None)
        if name is None or type(expression).__name__ in ("Variable", "URIRef", "Literal"):
            return translate_term(expression)
        match name:
            case "ConditionalOrExpression" | "ConditionalAndExpression":
                function = "or" if name == "ConditionalOrExpression" else "and"
                parts = [expression.expr, *(expression.other or ())]
                return reduce(lambda a, b: Call(function, (a, b)), map(self.expression, parts))
            case "RelationalExpression":
                return self._compare(expression)
            case "AdditiveExpression" | "MultiplicativeExpression":
                made = self.expression(expression.expr)
                for operator, other in zip(expression.op, expression.other, strict=True):
                    made = Call(_ARITHMETIC[str(operator)], (made, self.expression(other)))
                return made
            case "UnaryNot":
                return Call("not", (self.expression(expression.expr),))
            case "UnaryMinus":
                return Call("neg", (self.expression(expression.expr),))
            case "UnaryPlus":
                return Call("add", (self.expression(expression.expr), parse_term(value_text(0))))
            case "Builtin_EXISTS" | "Builtin_NOTEXISTS":
                return self._ask(expression.graph, name == "Builtin_NOTEXISTS")
            case "Function":
                arguments = tuple(map(self.expression, expression.expr or ()))
                return self._call(str(expression.iri), f"<{expression.iri}>", arguments)
            case "TrueFilter":
                return parse_term(value_text(True))
        if name.startswith("Builtin_"):
            return self._built_in(name.removeprefix("Builtin_"), expression)
        raise refuse(f"{name} is not supported in an expression")

    def _compare(self, expression: Any) -> Expression:
        if expression.op is None:
            return self.expression(expression.expr)
        left = self.expression(expression.expr)
        if str(expression.op) in ("IN", "NOT IN"):
            others = expression.other
            listed = [] if not isinstance(others, list) else others
            # Equal to one of them, or an error if it is equal to none and one of the comparisons is.
            tests: list[Expression] = [Call("eq", (left, self.expression(o))) for o in listed]
            no: Expression = parse_term(value_text(False))
            made = reduce(lambda a, b: Call("or", (a, b)), tests, no)
            return Call("not", (made,)) if str(expression.op) == "NOT IN" else made
        return Call(_OPERATORS[str(expression.op)], (left, self.expression(expression.other)))

    def _ask(self, pattern: Any, negated: bool) -> Expression:
        from rdflib.plugins.sparql import algebra

        if pattern.name == "GroupGraphPatternSub":
            pattern = algebra.translateGroupGraphPattern(pattern)
        name = self.fresh("exists")
        self.exists.append((name, self.pattern(pattern)))
        found = Variable(name)
        return Call("not", (found,)) if negated else found

    def _built_in(self, name: str, expression: Any) -> Expression:
        arguments: list[Expression] = []
        for word in _ARGUMENTS:
            given = part(expression, word)
            if given is not None:
                several = given if isinstance(given, list) else [given]
                arguments += map(self.expression, several)
        function = name.lower()
        match function:
            case "bound":
                return Call(IS_BOUND, tuple(arguments))
            case "now":
                return self.now
            case "uri":
                function = "iri"
            case "isuri":
                function = "isiri"
            case "rand" | "uuid" | "struuid":
                return Call(_VOLATILE[function], (Variable(ROW),))
            case "bnode":
                return Call(_VOLATILE[function], (Variable(ROW), *arguments))
        return self._call(function, name, tuple(arguments))

    def _call(self, function: str, shown: str, arguments: tuple[Expression, ...]) -> Expression:
        known = FUNCTIONS.get(function)
        if known is None:
            raise refuse(f"there is no function {shown}")
        if not known.accepts(len(arguments)):
            raise refuse(f"{shown} does not take {len(arguments)} arguments")
        return Call(function, arguments)


def translate_term(term: Any) -> Term:
    match type(term).__name__:
        case "Variable":
            return Variable(str(term))
        case "BNode":
            return Variable(f"#node {term}")
    return parse_term(graph_text(term))
