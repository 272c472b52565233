"""Declared types: what each name stands for, what type an expression has, and what clashes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hdlog.errors import Problem, Span, did_you_mean
from hdlog.program.functions import INTEGER_TYPES
from hdlog.program.model import (
    Aggregate,
    AggregateCall,
    Atom,
    Attribute,
    Bind,
    BodyItem,
    Call,
    Expression,
    Filter,
    Negation,
    Program,
    Rule,
    TypeDeclaration,
)
from hdlog.program.terms import XSD_DOUBLE, XSD_FLOAT, XSD_STRING, Constant, Literal, Term, Variable

PRIMITIVES = ("number", "unsigned", "float", "symbol", "any")
_STRING_FUNCTIONS = frozenset(
    [
        "concat",
        "str",
        "souffle_string",
        "substr",
        "bytesubstr",
        "ucase",
        "lcase",
        "replace",
        "strbefore",
        "strafter",
    ]
)
_NUMERIC_FUNCTIONS = frozenset(["add", "sub", "mul", "neg", "min", "max", "abs", "pow"])
_LENGTHS = frozenset(["strlen", "bytelen"])
_PARSED = frozenset(["souffle_number", "souffle_unsigned"])
_INTEGER_FUNCTIONS = (
    frozenset(["idiv", "mod", "band", "bor", "bxor", "bshl", "bshr", "bnot"]) | _LENGTHS | _PARSED
)


def resolve(types: tuple[TypeDeclaration, ...]) -> dict[str, str]:
    """Each type name with the primitive it comes down to; "" where it comes down to none or two."""
    declared = {t.name: t for t in types}
    primitives = {p: p for p in PRIMITIVES}

    def primitive(name: str, above: tuple[str, ...]) -> str:
        if name in primitives:
            return primitives[name]
        if name not in declared or name in above:
            return ""
        members = {primitive(m, (*above, name)) for m in declared[name].members}
        return members.pop() if len(members) == 1 else ""

    for name in declared:
        primitives.setdefault(name, primitive(name, ()))
    return primitives


def attribute_types(program: Program) -> dict[str, tuple[str, ...]]:
    """Per declared predicate the primitive of each attribute."""
    known = resolve(program.types)
    return {d.name: tuple(known.get(a.type, "") for a in d.attributes) for d in program.declarations}


def attribute_layout(program: Program) -> dict[str, tuple[Attribute, ...]]:
    """Per declared predicate its attributes, with primitive types; empty ones where there is none.

    What rules have without arguments needs no declaration: it has no attributes.
    """
    known = resolve(program.types)
    arities: dict[str, set[int]] = {}
    for predicate in program.predicates:
        arities.setdefault(predicate.name, set()).add(predicate.arity)
    return {name: () for name, several in arities.items() if several == {0}} | {
        d.name: tuple(Attribute(a.name, known.get(a.type, "")) for a in d.attributes)
        for d in program.declarations
    }


def constant_type(term: Constant) -> str:
    if isinstance(term, Literal):
        if term.datatype == XSD_STRING:
            return "symbol"
        if term.datatype in INTEGER_TYPES:
            return "number"
        if term.datatype in (XSD_DOUBLE, XSD_FLOAT):
            return "float"
    return ""


def fits(constant: Constant, wanted: str) -> bool:
    if wanted in ("", "any"):
        return True
    actual = constant_type(constant)
    if wanted == "unsigned":
        return actual == "number" and isinstance(constant, Literal) and constant.lexical[:1] != "-"
    return actual == wanted


def expression_type(expression: Expression, variables: Mapping[str, str]) -> str:
    """The primitive type of an expression, or "" where it is not known."""
    if isinstance(expression, Variable):
        return variables.get(expression.name, "")
    if not isinstance(expression, Call):
        return constant_type(expression)
    if expression.function in _STRING_FUNCTIONS:
        return "symbol"
    if expression.function in _INTEGER_FUNCTIONS:
        return "number"
    if expression.function == XSD_DOUBLE:
        return "float"
    if expression.function in _NUMERIC_FUNCTIONS or expression.function == "div":
        arguments = [expression_type(a, variables) for a in expression.arguments]
        if "float" in arguments:
            return "float"
        return arguments[0] if expression.function != "div" else ""
    return ""


def variable_types(rule: Rule, attributes: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Types of the variables of a rule, from the atoms they occur in and the values they are given."""
    types: dict[str, str] = {}
    for atom in _atoms(rule.body):
        for term, wanted in _pair_with_types(atom, attributes):
            if isinstance(term, Variable) and not term.is_wildcard and wanted not in ("", "any"):
                types.setdefault(term.name, wanted)
    for _ in range(2):
        _assign(rule.body, types)
    return types


def _assign(body: tuple[BodyItem, ...], types: dict[str, str]) -> None:
    for item in body:
        if isinstance(item, Bind):
            _set(types, item.variable.name, expression_type(item.expression, types))
        elif isinstance(item, Negation):
            _assign(item.body, types)
        elif isinstance(item, Aggregate):
            _assign(item.body, types)
            for call in item.calls:
                _set(types, call.result.name, aggregate_type(call, types))


def aggregate_type(call: AggregateCall, types: Mapping[str, str]) -> str:
    if call.function == "count":
        return "number"
    if call.function == "mean":
        return "float"
    if call.function == "avg" or call.argument is None:
        return ""
    return expression_type(call.argument, types)


def _set(types: dict[str, str], name: str, type_: str) -> None:
    if type_:
        types.setdefault(name, type_)


def _atoms(body: tuple[BodyItem, ...]) -> Iterator[Atom]:
    for item in body:
        if isinstance(item, Atom):
            yield item
        elif isinstance(item, Negation | Aggregate):
            yield from _atoms(item.body)


def _pair_with_types(atom: Atom, attributes: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Term, str]]:
    wanted = attributes.get(atom.name, ())
    return zip(atom.terms, wanted, strict=False)


def check_types(program: Program) -> Iterator[Problem]:
    """Unknown types, and constants and variables of another type than their place has."""
    yield from _check_type_names(program)
    attributes = attribute_types(program)
    if not attributes:
        return
    for rule in program.rules:
        types = variable_types(rule, attributes)
        for expression, span in _expressions(rule.body):
            yield from _check_expression(expression, types, span)
        for atom in (*_atoms(rule.body), *rule.heads):
            for position, (term, wanted) in enumerate(_pair_with_types(atom, attributes)):
                place = f"attribute {program.declared[atom.name].attributes[position].name} of {atom.name}"
                if isinstance(term, Variable):
                    actual = types.get(term.name, "")
                    if actual and wanted not in ("", "any") and not _is_compatible(actual, wanted):
                        yield _clash(f"variable {term}", actual, place, wanted, term.span or atom.span)
                elif not fits(term, wanted):
                    actual = constant_type(term) or "resource"
                    yield _clash(f"constant {term}", actual, place, wanted, term_span(term) or atom.span)


_SYMBOL_ARGUMENTS = frozenset(
    ["concat", "strlen", "bytelen", "ucase", "lcase", "contains", "match", "strstarts", "strends"]
)
_NUMBER_ARGUMENTS = _INTEGER_FUNCTIONS - _LENGTHS - _PARSED | frozenset(
    ["add", "sub", "mul", "div", "neg", "pow", "abs"]
)
_COMPARISONS = frozenset(["eq", "ne", "lt", "le", "gt", "ge", "min", "max"])


def _check_expression(
    expression: Expression, types: Mapping[str, str], span: Span | None
) -> Iterator[Problem]:
    """Arguments of another type than a function takes, as far as types are known."""
    if not isinstance(expression, Call):
        return
    span = expression.span or span
    argument_types = [expression_type(a, types) for a in expression.arguments]
    known = {t for t in argument_types if t not in ("", "any")}
    others = ", ".join(sorted(known - {"symbol"}))
    if expression.function in _SYMBOL_ARGUMENTS and others:
        yield Problem("type", f"{expression.function} takes symbols, not a {others}", span)
    if expression.function in _NUMBER_ARGUMENTS and "symbol" in known:
        yield Problem("type", f"{expression.function} takes numbers, not a symbol", span)
    if expression.function in _COMPARISONS and "symbol" in known and others:
        yield Problem("type", f"a symbol is compared with a {others}", span)
    for argument in expression.arguments:
        yield from _check_expression(argument, types, span)


def _expressions(body: tuple[BodyItem, ...]) -> Iterator[tuple[Expression, Span | None]]:
    for item in body:
        match item:
            case Filter(condition, span):
                yield condition, span
            case Bind(expression, _, span):
                yield expression, span
            case Negation(inner):
                yield from _expressions(inner)
            case Aggregate():
                yield from _expressions(item.body)
                yield from ((c.argument, item.span) for c in item.calls if c.argument is not None)


def _is_compatible(actual: str, wanted: str) -> bool:
    return actual == wanted or {actual, wanted} == {"number", "unsigned"}


def term_span(term: Term) -> Span | None:
    return getattr(term, "span", None)


def _clash(what: str, actual: str, place: str, wanted: str, span: Span | None) -> Problem:
    return Problem("type", f"{what} is a {actual}, but {place} is a {wanted}", span)


def _check_type_names(program: Program) -> Iterator[Problem]:
    known = resolve(program.types)
    for declared in program.types:
        if not known[declared.name]:
            unknown = [m for m in declared.members if m not in known]
            if unknown:
                hint = did_you_mean(unknown[0], known)
                yield Problem("type", f"unknown type {unknown[0]}", declared.span, hint)
            else:
                message = f"type {declared.name} does not come down to one primitive type"
                hint = "the members of a union share one of number, unsigned, float, symbol"
                yield Problem("type", message, declared.span, hint)
    for declaration in program.declarations:
        for attribute in declaration.attributes:
            if attribute.type not in known:
                hint = (
                    did_you_mean(attribute.type, known) or "primitive types: number, unsigned, float, symbol"
                )
                message = f"unknown type {attribute.type} of attribute {attribute.name}"
                yield Problem("type", message, declaration.span, hint)
