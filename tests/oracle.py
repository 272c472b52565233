"""The truth: a naive evaluator of the whole language over Python sets, with no planning at all.

It reads the definition of the language off the program: components in order, all rules of one over
all facts until nothing is new. Used by tests only; `properties/test_oracle.py` holds it against clingo.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from hdlog.program.dependencies import DependencyGraph
from hdlog.program.functions import NoValue, aggregate, evaluate, holds
from hdlog.program.model import (
    Aggregate,
    AggregateCall,
    Atom,
    Bind,
    BodyItem,
    Filter,
    Negation,
    Predicate,
    Program,
    Rule,
    in_graph,
    triple_atom,
)
from hdlog.program.terms import RDF_TYPE, Constant, Iri, Term, Variable

Row = tuple[Constant, ...]
Facts = dict[Predicate, set[Row]]
Binding = Mapping[Variable, Constant]


def materialise(program: Program, given: Iterable[tuple[Predicate, Row]] = ()) -> Facts:
    """Every fact that the given facts and the program stand for."""
    facts: Facts = defaultdict(set)
    for predicate, row in given:
        facts[predicate].add(row)
    for component in DependencyGraph(program).components:
        rules = [program.rules[number] for number in component.rules]
        changed = True
        while changed:
            new = {f for rule in rules for f in consequences(rule, facts) if f[1] not in facts[f[0]]}
            for predicate, row in new:
                facts[predicate].add(row)
            changed = bool(new) and component.recursive
    return {predicate: rows for predicate, rows in facts.items() if rows}


def consequences(rule: Rule, facts: Facts) -> Iterator[tuple[Predicate, Row]]:
    for binding in matches(rule.body, {}, facts):
        for head in rule.heads:
            predicate, row = fact(head, binding)
            if not Atom(predicate.name, row).is_triple:  # a triple's predicate is an IRI
                yield predicate, row


def derivations(program: Program, facts: Facts) -> Counter[tuple[Predicate, Row]]:
    """How many (rule, head, match) derive each fact from the facts of a materialisation."""
    return Counter(f for rule in program.rules if rule.body for f in consequences(rule, facts))


def fact(head: Atom, binding: Binding) -> tuple[Predicate, Row]:
    atom = Atom(head.name, tuple(value(t, binding) for t in head.terms))
    if atom.is_triple:
        s, p, o, *graph = atom.terms
        atom = triple_atom(s, p, o)
        atom = in_graph(atom, graph[0]) if graph else atom
    return atom.predicate, tuple(value(t, {}) for t in atom.terms)


def value(term: Term, binding: Binding) -> Constant:
    return binding[term] if isinstance(term, Variable) else term


def matches(body: tuple[BodyItem, ...], binding: Binding, facts: Facts) -> Iterator[Binding]:
    """Every assignment of the variables of a body; items wait until what they need is bound."""
    if not body:
        yield binding
        return
    item = next(i for i in body if is_ready(i, body, binding))
    rest = tuple(i for i in body if i is not item)
    for extended in item_matches(item, binding, facts):
        yield from matches(rest, extended, facts)


def is_ready(item: BodyItem, body: tuple[BodyItem, ...], binding: Binding) -> bool:
    if isinstance(item, Atom):
        return True
    if any(isinstance(i, Atom) for i in body):
        return False
    if isinstance(item, Bind):
        return _bound(item.expression, binding)
    if isinstance(item, Aggregate):
        return not item.correlated or all(v in binding for v in item.group)
    return not any(isinstance(i, Bind | Aggregate) for i in body)


def _bound(expression: object, binding: Binding) -> bool:
    if isinstance(expression, Variable):
        return expression in binding
    return all(_bound(a, binding) for a in getattr(expression, "arguments", ()))


def item_matches(item: BodyItem, binding: Binding, facts: Facts) -> Iterator[Binding]:
    match item:
        case Atom():
            for row in rows(item, facts):
                extended = unified(item.terms, row, binding)
                if extended is not None:
                    yield extended
        case Filter(condition):
            if holds(condition, binding):
                yield binding
        case Bind(expression, variable):
            assert variable not in binding, f"{variable} has two values"
            try:
                yield {**binding, variable: evaluate(expression, binding)}
            except NoValue:
                return
        case Negation(body, local):
            outer = {v: c for v, c in binding.items() if v not in local}
            if not any(True for _ in matches(body, outer, facts)):
                yield binding
        case Aggregate():
            yield from aggregate_matches(item, binding, facts)


def rows(atom: Atom, facts: Facts) -> Iterable[Row]:
    if not atom.is_triple:
        return facts.get(atom.predicate, ())
    has_graph = atom.predicate.has_graph
    return [
        triple
        for predicate, found in facts.items()
        if predicate.has_graph == has_graph
        for row in found
        for triple in triples(predicate, row)
    ]


def triples(predicate: Predicate, row: Row) -> Iterator[Row]:
    plain = predicate.without_graph()
    graph = row[plain.arity :]
    if plain.arity == 2:
        yield (row[0], Iri(plain.name), row[1], *graph)
    elif plain.arity == 1:
        yield (row[0], Iri(RDF_TYPE), Iri(plain.name), *graph)


def unified(terms: tuple[Term, ...], row: Row, binding: Binding) -> Binding | None:
    extended = dict(binding)
    for term, constant in zip(terms, row, strict=True):
        if isinstance(term, Variable):
            if not term.is_wildcard and extended.setdefault(term, constant) != constant:
                return None
        elif term != constant:
            return None
    return extended


def aggregate_matches(item: Aggregate, binding: Binding, facts: Facts) -> Iterator[Binding]:
    start = {v: binding[v] for v in item.group} if item.correlated else {}
    groups: dict[Row, list[Binding]] = defaultdict(list)
    for found in matches(item.body, start, facts):
        group = groups[tuple(found[v] for v in item.group)]
        if not (item.correlated and asks_only_whether(item) and found in group):
            group.append(found)
    if item.correlated:
        groups.setdefault(tuple(binding[v] for v in item.group), [])
    for key, group in groups.items():
        extended = unified(item.group, key, binding)
        try:
            results = {call.result: aggregated(call, group, item.correlated) for call in item.calls}
        except NoValue:
            continue
        if extended is not None:
            yield {**extended, **results}


def asks_only_whether(item: Aggregate) -> bool:
    """Soufflé: in an aggregate of several atoms, or of one that repeats a variable, `_` is no part of a match."""
    atoms = [a for a in item.body if isinstance(a, Atom)]
    names = [v for a in atoms for v in a.variables() if not v.is_wildcard]
    return len(atoms) != 1 or len(names) != len(set(names))


def aggregated(call: AggregateCall, group: list[Binding], correlated: bool) -> Constant:
    """A match whose argument has no value does not count."""
    values = []
    for found in group:
        try:
            values.append(Iri("") if call.argument is None else evaluate(call.argument, found))
        except NoValue:
            continue
    if not values and not correlated:
        raise NoValue
    return aggregate(call, values)
