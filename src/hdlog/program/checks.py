"""What can be wrong with a program, each with its place and a hint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from hdlog.errors import Problem, Span, did_you_mean
from hdlog.program.dependencies import NO_RULE, Dependency, DependencyGraph
from hdlog.program.directives import directive_problems
from hdlog.program.functions import is_pattern
from hdlog.program.model import (
    Aggregate,
    Atom,
    Bind,
    BodyItem,
    Call,
    Expression,
    Filter,
    Negation,
    Predicate,
    Program,
    Rule,
    body_atoms,
    expression_variables,
)
from hdlog.program.ntriples import is_iri
from hdlog.program.terms import BlankNode, Iri, Literal, Variable
from hdlog.program.types import PRIMITIVES, check_types


def check(program: Program, declared_only: bool = False, whole: bool = True) -> list[Problem]:
    """All problems of a program; with `declared_only` every predicate needs a declaration.

    A program that is not `whole` (a part of its text could not be read) is not blamed for what
    that part may have held.
    """
    problems = [
        *check_declarations(program),
        *check_directives(program, declared_only and whole),
        *check_arities(program, declared_only, whole),
        *check_types(program),
    ]
    for rule in program.rules:
        problems += check_size(rule)
        problems += check_rule(rule)
        problems += check_constants(rule)
    if whole:
        problems += check_strata(program)
    return problems


MOST_ATOMS = 1000
"""Of a body: an update joins it once from each of them."""


def check_size(rule: Rule) -> Iterator[Problem]:
    atoms = len(rule.atoms())
    if atoms > MOST_ATOMS:
        yield Problem(
            "size",
            f"a body of {atoms:,} atoms; at most {MOST_ATOMS:,} are evaluated together",
            rule.span,
            "give a part of it a predicate and a rule of its own",
        )


def check_declarations(program: Program) -> Iterator[Problem]:
    for type_ in program.types:
        if type_.name in PRIMITIVES:
            yield Problem("duplicate", f"{type_.name} is a primitive type", type_.span, "choose another name")
    for kind, declared in (("predicate", program.declarations), ("type", program.types)):
        first: dict[str, Span | None] = {}
        for declaration in declared:
            if declaration.name in first:
                note = f"first declared at {first[declaration.name]}"
                message = f"{kind} {declaration.name} is declared twice"
                yield Problem("duplicate", message, declaration.span, "remove one of the two", notes=(note,))
            first.setdefault(declaration.name, declaration.span)
    for declaration in program.declarations:
        repeated = [n for n, c in Counter(a.name for a in declaration.attributes).items() if c > 1]
        for name in repeated:
            message = f"attribute {name} of {declaration.name} is declared twice"
            yield Problem("duplicate", message, declaration.span)


def check_directives(program: Program, declared_only: bool) -> Iterator[Problem]:
    known = {p.name for p in program.predicates}
    for directive in program.directives:
        if directive.name not in known and (declared_only or known):
            hint = did_you_mean(directive.name, known) or "declare it, or remove this line"
            message = f"unknown predicate {directive.name} in .{directive.kind}"
            yield Problem("predicate", message, directive.span, hint)
        yield from directive_problems(directive)
        columns = dict(directive.parameters).get("columns", "")
        declared = program.declared.get(directive.name)
        if columns and declared is not None and columns.count(":") + 1 != len(declared.attributes):
            message = f"columns names {columns.count(':') + 1} columns of the file, {directive.name} has {len(declared.attributes)}"
            yield Problem("directive", message, directive.span)


def check_arities(program: Program, declared_only: bool, whole: bool) -> Iterator[Problem]:
    declared = {d.name: len(d.attributes) for d in program.declarations}
    first: dict[str, Predicate] = {}
    for rule in program.rules:
        for atom in (*rule.heads, *(a for a, _ in body_atoms(rule.body))):
            if atom.is_triple:
                continue
            predicate = atom.predicate
            if atom.name in declared:
                if declared[atom.name] != predicate.arity:
                    yield _wrong_arity(atom, declared[atom.name], "is declared with")
            elif declared_only:
                hint = did_you_mean(atom.name, declared)
                if hint or whole:
                    hint = hint or f"declare it: .decl {atom.name}({_sample(predicate.arity)})"
                    yield Problem("predicate", f"unknown predicate {atom.name}", atom.span, hint)
            else:
                seen = first.setdefault(atom.name, predicate)
                # An IRI may name a class and a property at once.
                arities = {seen.without_graph().arity, predicate.without_graph().arity}
                punned = ":" in atom.name and arities <= {1, 2}
                if seen != predicate and not punned:
                    yield _wrong_arity(atom, seen.arity, "was used before with")


def _sample(arity: int) -> str:
    return ", ".join(f"x{i}: symbol" for i in range(1, arity + 1))


def _wrong_arity(atom: Atom, wanted: int, how: str) -> Problem:
    count = len(atom.terms)
    message = f"predicate {atom.name} has {_arguments(count)} here, but {how} {_arguments(wanted)}"
    return Problem("arity", message, atom.span)


def _arguments(count: int) -> str:
    return f"{count} argument{'' if count == 1 else 's'}"


# Constants.


def check_constants(rule: Rule) -> Iterator[Problem]:
    """IRIs that are not absolute, blank nodes that look like variables, patterns that no text can match."""
    for atom in (*rule.heads, *(a for a, _ in body_atoms(rule.body))):
        for term in atom.terms:
            if isinstance(term, Iri) and not is_iri(term.value):
                hint = "give it a scheme, as in <http://example.org/a>, or declare a BASE"
                yield Problem("iri", f"{term} is no absolute IRI", term.span or atom.span, hint)
    atoms = [(a, "use a variable, such as ?{}, or _ for any value") for a, _ in body_atoms(rule.body)]
    if rule.body:
        made = 'for a new node for each match, BIND(SKOLEM("{}", ...) AS ?{})'
        atoms += [(head, made) for head in rule.heads]
    for atom, hint in atoms:
        for term in atom.terms:
            if isinstance(term, BlankNode):
                message = f"{term} stands for one certain node here, not for any"
                yield Problem("blank", message, term.span or atom.span, hint.format(term.label, term.label))
    for call in _calls(rule.body):
        yield from _check_pattern(call)


_PATTERNS = {"regex": (1, 2), "replace": (1, 3), "match": (0, None)}
"""Functions with a regular expression: where it is, and where its flags are."""


def _check_pattern(call: Call) -> Iterator[Problem]:
    pattern, flags = (
        None if place is None or place >= len(call.arguments) else call.arguments[place]
        for place in _PATTERNS.get(call.function, (None, None))
    )
    if isinstance(pattern, Literal) and (flags is None or isinstance(flags, Literal)):
        letters = flags.lexical if isinstance(flags, Literal) else ""
        if not is_pattern(pattern.lexical, letters):
            with_flags = f" with the flags {letters!r}" if letters else ""
            message = f"{pattern} is no regular expression{with_flags}"
            yield Problem("pattern", message, pattern.span or call.span)


def _calls(body: Iterable[BodyItem]) -> Iterator[Call]:
    for item in body:
        match item:
            case Filter(condition):
                yield from _inner_calls(condition)
            case Bind(expression):
                yield from _inner_calls(expression)
            case Negation():
                yield from _calls(item.body)
            case Aggregate():
                yield from _calls(item.body)
                for call in item.calls:
                    if call.argument is not None:
                        yield from _inner_calls(call.argument)


def _inner_calls(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        yield expression
        for argument in expression.arguments:
            yield from _inner_calls(argument)


# Safety, rule by rule.


def check_rule(rule: Rule) -> list[Problem]:
    """What is unsafe; only where nothing is, what is unused."""
    return list(check_safety(rule)) or list(check_unused(rule))


def check_safety(rule: Rule) -> Iterator[Problem]:
    bound = bound_variables(rule.body, set())
    yield from check_body(rule.body, set(), _names_outside(rule))
    for head in rule.heads:
        for variable in head.variables():
            if variable.is_wildcard:
                yield Problem(
                    "unsafe", "_ stands for any value, which a head cannot give", _at(variable, head)
                )
            elif variable.name not in bound:
                if rule.is_fact:
                    message = f"a fact has no variables, but this one has {variable}"
                    hint = 'write a string as "text"' if ":" not in head.name else ""
                else:
                    message = f"variable {variable} of the head does not occur in the body"
                    hint = f"add a body atom with {variable}, or give it a value"
                yield Problem("unsafe", message, _at(variable, head), hint)


def _at(variable: Variable, item: Atom | Filter | Bind | Negation | Aggregate) -> Span | None:
    return variable.span or item.span


def bound_variables(body: tuple[BodyItem, ...], outer: set[str]) -> set[str]:
    """Names of the variables that have a value wherever the body matches."""
    bound = outer | {v.name for i in body if isinstance(i, Atom) for v in i.variables()}
    bound.discard("_")
    before = -1
    while before != len(bound):
        before = len(bound)
        for item in body:
            if isinstance(item, Bind) and _names(item.expression) <= bound:
                bound.add(item.variable.name)
            elif isinstance(item, Aggregate):
                group = {v.name for v in item.group}
                if not item.correlated or group <= bound:
                    bound |= group | {c.result.name for c in item.calls}
    return bound


def _names(expression: Expression) -> set[str]:
    return {v.name for v in expression_variables(expression)}


def check_body(body: tuple[BodyItem, ...], outer: set[str], elsewhere: Counter[str]) -> Iterator[Problem]:
    """`outer` have a value from around the body; `elsewhere` counts names outside nested bodies."""
    bound = bound_variables(body, outer)
    times_bound = Counter(dict.fromkeys(outer, 1))
    times_bound.update(
        {v.name for i in body if isinstance(i, Atom) for v in i.variables()}
        | {v.name for i in body if isinstance(i, Aggregate) and not i.correlated for v in i.group}
    )
    for item in body:
        match item:
            case Filter(condition):
                yield from _check_bound(condition, bound, item, "the filter")
            case Bind(expression, variable):
                yield from _check_bound(expression, bound, item, "the expression")
                times_bound[variable.name] += 1
                if times_bound[variable.name] > 1 or variable.is_wildcard:
                    hint = f"use another variable, or compare: FILTER({variable} = ...)"
                    yield Problem(
                        "rebound", f"variable {variable} has a value already", _at(variable, item), hint
                    )
            case Negation():
                yield from check_negation(item, bound, elsewhere)
            case Aggregate():
                yield from check_aggregate(item, bound, elsewhere)
                for call in item.calls:
                    times_bound[call.result.name] += 1
                    if times_bound[call.result.name] > 1:
                        message = f"variable {call.result} has a value already"
                        yield Problem("rebound", message, _at(call.result, item), "use another variable")


def _check_bound(
    expression: Expression, bound: set[str], item: Filter | Bind | Aggregate, where: str
) -> Iterator[Problem]:
    for variable in dict.fromkeys(expression_variables(expression)):
        if variable.is_wildcard:
            yield Problem("unsafe", f"_ has no value that {where} could use", _at(variable, item))
        elif variable.name not in bound:
            message = f"variable {variable} of {where} has no value"
            hint = f"add a body atom with {variable}"
            yield Problem("unsafe", message, _at(variable, item), hint)


def check_negation(item: Negation, bound: set[str], elsewhere: Counter[str]) -> Iterator[Problem]:
    local = {v.name for v in item.local}
    for variable in item.local:
        if elsewhere[variable.name]:
            message = f"variable {variable} is local to NOT EXISTS, but occurs outside of it"
            yield Problem("scope", message, _at(variable, item), "rename one of the two")
    for atom, _ in body_atoms(item.body):
        for variable in atom.variables():
            if (
                not variable.is_wildcard
                and variable.name not in bound | local
                and not _is_inner(variable, item.body)
            ):
                message = f"variable {variable} of the negated atom has no value"
                hint = f"add a positive atom with {variable}, or use _ for any value"
                yield Problem("unsafe", message, _at(variable, atom), hint)
    yield from check_body(item.body, bound - local, elsewhere)


def _is_inner(variable: Variable, body: tuple[BodyItem, ...]) -> bool:
    """Whether a variable belongs to an aggregate or negation inside `body`."""
    own = {v.name for i in body if isinstance(i, Atom) for v in i.variables()}
    return variable.name not in own


def check_aggregate(item: Aggregate, bound: set[str], elsewhere: Counter[str]) -> Iterator[Problem]:
    group = {v.name for v in item.group}
    inner = bound_variables(item.body, bound & group if item.correlated else set())
    for variable in item.group:
        if item.correlated and variable.name not in bound:
            message = f"variable {variable} occurs outside the aggregate, but only the aggregate has it"
            hint = f"add a body atom with {variable} outside the aggregate"
            yield Problem("unsafe", message, _at(variable, item), hint)
        elif not item.correlated and variable.name not in inner:
            message = f"variable {variable} of ON does not occur in the aggregate"
            yield Problem("unsafe", message, _at(variable, item))
    if not item.correlated:
        for name in sorted(inner - group):
            if elsewhere[name]:
                message = f"variable ?{name} is local to the aggregate, but occurs outside of it"
                yield Problem("scope", message, item.span, "add it to ON, or rename one of the two")
    yield from check_body(item.body, group if item.correlated else set(), elsewhere)
    for call in item.calls:
        if call.argument is not None:
            yield from _check_bound(call.argument, inner, item, f"{call.function.upper()}")


def _names_outside(rule: Rule) -> Counter[str]:
    """How often each name occurs outside the negations and aggregates of a rule."""
    counts: Counter[str] = Counter()
    for head in rule.heads:
        counts.update(v.name for v in head.variables())
    for item in rule.body:
        match item:
            case Atom():
                counts.update(v.name for v in item.variables())
            case Filter(condition):
                counts.update(v.name for v in expression_variables(condition))
            case Bind(expression, variable):
                counts.update([variable.name, *(v.name for v in expression_variables(expression))])
            case Aggregate():
                counts.update(c.result.name for c in item.calls)
    return counts


def check_unused(rule: Rule) -> Iterator[Problem]:
    occurrences = list(_occurrences(rule))
    counts = Counter(v.name for v in occurrences)
    for variable in occurrences:
        if counts[variable.name] == 1 and not variable.name.startswith("_") and rule.body:
            message = f"variable {variable} occurs only once"
            hint = "use _ where the value does not matter"
            yield Problem("unused", message, variable.span or rule.span, hint, "warning")


def _occurrences(rule: Rule) -> Iterator[Variable]:
    for head in rule.heads:
        yield from head.variables()
    yield from _body_occurrences(rule.body)


def _body_occurrences(body: Iterable[BodyItem]) -> Iterator[Variable]:
    for item in body:
        match item:
            case Atom():
                yield from item.variables()
            case Filter(condition):
                yield from expression_variables(condition)
            case Bind(expression, variable):
                yield from (*expression_variables(expression), variable)
            case Negation():
                yield from (*item.local, *_body_occurrences(item.body))
            case Aggregate():
                yield from _body_occurrences(item.body)
                yield from item.group
                for call in item.calls:
                    yield call.result
                    if call.argument is not None:
                        yield from expression_variables(call.argument)


# Stratification.


def check_strata(program: Program) -> Iterator[Problem]:
    for cycle in DependencyGraph(program).find_unstratified_cycles():
        first = cycle[0]
        how = "negation" if first.sign == "negated" else "aggregation"
        message = f"recursion through {how}: {_show_predicate(first.head)} depends on itself"
        notes = tuple(_step(program, d) for d in cycle if d.rule != NO_RULE)
        hint = f"break the cycle: {how} may only look at predicates that do not depend on the head"
        yield Problem("stratification", message, program.rules[first.rule].span, hint, notes=notes)


def _step(program: Program, dependency: Dependency) -> str:
    word = {"positive": "", "negated": "NOT ", "aggregated": "an aggregate of "}[dependency.sign]
    span = program.rules[dependency.rule].span
    place = f" ({span})" if span else ""
    return f"{_show_predicate(dependency.head)} needs {word}{_show_predicate(dependency.body)}{place}"


def _show_predicate(predicate: Predicate) -> str:
    return predicate.name.removeprefix("head ")
