"""The program as immutable values: atoms, expressions, rules, declarations, directives.

Equality ignores where something was read (spans) and which prefixes a text used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal as Choice
from typing import NamedTuple

from hdlog.errors import Span
from hdlog.program.terms import (
    RDF_TYPE,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    Iri,
    Literal,
    Term,
    Variable,
)

TRIPLE = "[]"
"""Predicate of arity 3 for atoms with a variable in predicate or class position.

It holds (s, p, o) for every fact p(s, o) and (s, rdf:type, C) for every fact C(s). A class that is no IRI has no predicate: its members are
facts of the property rdf:type.
"""
GRAPH = " GRAPH"
"""What the name of a predicate ends with whose last argument is a named graph: p(s, o) in the graph g is `p GRAPH`(s, o, g)."""


class Predicate(NamedTuple):
    name: str
    arity: int

    def __str__(self) -> str:
        return f"{self.name}/{self.arity}"

    @property
    def has_graph(self) -> bool:
        """Whether its last argument is a named graph."""
        return self.name.endswith(GRAPH)

    def without_graph(self) -> Predicate:
        """The predicate of the default graph."""
        return Predicate(self.name.removesuffix(GRAPH), self.arity - 1) if self.has_graph else self


@dataclass(frozen=True, slots=True)
class Atom:
    name: str
    terms: tuple[Term, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def predicate(self) -> Predicate:
        return Predicate(self.name, len(self.terms))

    @property
    def is_triple(self) -> bool:
        """Whether a variable stands in the place of its predicate or class."""
        return self.name in _TRIPLES and len(self.terms) == _TRIPLES[self.name]

    def variables(self) -> Iterator[Variable]:
        return (t for t in self.terms if isinstance(t, Variable))


_TRIPLES = {TRIPLE: 3, TRIPLE + GRAPH: 4}


def triple_atom(s: Term, p: Term, o: Term, span: Span | None = None) -> Atom:
    """(s, p, o) as the atom of the predicate it stands for, where that is known."""
    if isinstance(p, Iri) and not (p.value == RDF_TYPE and isinstance(o, Variable)):
        return (
            Atom(o.value, (s,), span)
            if p.value == RDF_TYPE and isinstance(o, Iri)
            else Atom(p.value, (s, o), span)
        )
    return Atom(TRIPLE, (s, p, o), span)


def in_graph(atom: Atom, graph: Term) -> Atom:
    """The atom in a named graph."""
    return Atom(atom.name + GRAPH, (*atom.terms, graph), atom.span)


@dataclass(frozen=True, slots=True)
class Call:
    """An application of a built-in function; `hdlog.program.functions` says what each means."""

    function: str
    arguments: tuple[Expression, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


Expression = Term | Call


def negate(operand: Expression, span: Span | None = None) -> Expression:
    """-operand; the negation of a number written in the text is that number."""
    numeric = isinstance(operand, Literal) and operand.datatype in (XSD_INTEGER, XSD_DECIMAL, XSD_DOUBLE)
    if numeric and isinstance(operand, Literal) and operand.lexical[:1] not in ("+", "-", "N", "I", ""):
        return Literal("-" + operand.lexical, operand.datatype, span=span)
    return Call("neg", (operand,), span)


def expression_variables(expression: Expression) -> Iterator[Variable]:
    if isinstance(expression, Variable):
        yield expression
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from expression_variables(argument)


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Bind:
    expression: Expression
    variable: Variable
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """No match of `body`; the variables in `local` belong to it alone."""

    body: tuple[BodyItem, ...]
    local: tuple[Variable, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


AggregateFunction = Choice["count", "sum", "min", "max", "avg", "mean"]


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregated value; `argument` is None for a count of matches."""

    function: AggregateFunction
    argument: Expression | None
    result: Variable
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Aggregated values over the matches of `body`, one row per value of the `group` variables.

    A match is an assignment of all variables of `body`. The other variables of `body` are its own.
    A `correlated` aggregate (Soufflé's) takes its group from the rest of the rule, and counts or
    sums an empty group to 0; otherwise (RDFox's) the aggregate yields just the groups it finds.
    """

    body: tuple[BodyItem, ...]
    group: tuple[Variable, ...]
    calls: tuple[AggregateCall, ...]
    correlated: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


BodyItem = Atom | Negation | Filter | Bind | Aggregate


EvaluationMethod = Choice["standard", "hd", "combined"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Each head holds for each match of the body; a fact is a rule without body."""

    heads: tuple[Atom, ...]
    body: tuple[BodyItem, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    method: EvaluationMethod | None = None
    """how to evaluate it, where the author knows better"""
    _hash: int = field(init=False, compare=False, repr=False)
    """worked out once: rules are keys wherever something is known of them"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.heads, self.body, self.method)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def is_fact(self) -> bool:
        return not self.body

    def atoms(self) -> tuple[Atom, ...]:
        """The positive atoms of the body, nested ones excluded."""
        return tuple(item for item in self.body if isinstance(item, Atom))


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Declaration:
    name: str
    attributes: tuple[Attribute, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """`name` as a subtype of one type (`<:`), or as an alias or union of `members` (`=`)."""

    name: str
    members: tuple[str, ...]
    subtype: bool
    span: Span | None = field(default=None, compare=False, repr=False)


DirectiveKind = Choice["input", "output", "printsize"]


@dataclass(frozen=True, slots=True)
class Directive:
    kind: DirectiveKind
    name: str
    parameters: tuple[tuple[str, str], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Program:
    rules: tuple[Rule, ...] = ()
    declarations: tuple[Declaration, ...] = ()
    types: tuple[TypeDeclaration, ...] = ()
    directives: tuple[Directive, ...] = ()
    prefixes: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)

    @cached_property
    def declared(self) -> dict[str, Declaration]:
        return {d.name: d for d in self.declarations}

    @cached_property
    def predicates(self) -> tuple[Predicate, ...]:
        """Every predicate that occurs, in the order of first occurrence."""
        predicates = dict.fromkeys(Predicate(d.name, len(d.attributes)) for d in self.declarations)
        for rule in self.rules:
            for head in rule.heads:
                predicates.setdefault(head.predicate)
            for atom, _ in body_atoms(rule.body):
                predicates.setdefault(atom.predicate)
        return tuple(predicates)

    @cached_property
    def has_triples(self) -> bool:
        """Whether an atom has a variable in place of a predicate or class, so that it is about all of them."""
        atoms = (a for r in self.rules for a in (*r.heads, *(b for b, _ in body_atoms(r.body))))
        return any(a.is_triple for a in atoms)

    def without_facts(self) -> Program:
        return replace(self, rules=tuple(r for r in self.rules if not r.is_fact))

    def __add__(self, other: Program) -> Program:
        return Program(
            self.rules + other.rules,
            self.declarations + other.declarations,
            self.types + other.types,
            self.directives + other.directives,
            tuple(dict(self.prefixes + other.prefixes).items()),
        )


Sign = Choice["positive", "negated", "aggregated"]


def body_atoms(body: tuple[BodyItem, ...], sign: Sign = "positive") -> Iterator[tuple[Atom, Sign]]:
    """All atoms of a body, nested ones too, with how the rule depends on them."""
    for item in body:
        match item:
            case Atom():
                yield item, sign
            case Negation():
                yield from body_atoms(item.body, "negated")
            case Aggregate():
                yield from body_atoms(item.body, "negated" if sign == "negated" else "aggregated")


def is_ground(atom: Atom) -> bool:
    return not any(isinstance(t, Variable) for t in atom.terms)
