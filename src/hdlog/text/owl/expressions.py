"""Class expressions of OWL 2 as values."""

from __future__ import annotations

from dataclasses import dataclass

import pyoxigraph as ox

from hdlog.program.model import Atom
from hdlog.program.ntriples import parse_term
from hdlog.program.terms import Constant, Term, last_part
from hdlog.text.owl.graph import OWL, RDF, RDFS, XSD, Graph, Node


@dataclass(frozen=True)
class Property:
    name: str
    is_inverse: bool = False

    def atom(self, x: Term, y: Term) -> Atom:
        return Atom(self.name, (y, x) if self.is_inverse else (x, y))

    def inverse(self) -> Property:
        return Property(self.name, not self.is_inverse)

    def __str__(self) -> str:
        return f"ObjectInverseOf({_short(self.name)})" if self.is_inverse else _short(self.name)


@dataclass(frozen=True)
class Named:
    name: str

    def __str__(self) -> str:
        return _short(self.name)


@dataclass(frozen=True)
class Datatype:
    name: str

    def __str__(self) -> str:
        return _short(self.name)


@dataclass(frozen=True)
class And:
    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"ObjectIntersectionOf({' '.join(map(str, self.parts))})"


@dataclass(frozen=True)
class Or:
    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"ObjectUnionOf({' '.join(map(str, self.parts))})"


@dataclass(frozen=True)
class Not:
    part: Expression

    def __str__(self) -> str:
        return f"ObjectComplementOf({self.part})"


@dataclass(frozen=True)
class Some:
    property: Property
    filler: Expression

    def __str__(self) -> str:
        return f"ObjectSomeValuesFrom({self.property} {self.filler})"


@dataclass(frozen=True)
class Only:
    property: Property
    filler: Expression

    def __str__(self) -> str:
        return f"ObjectAllValuesFrom({self.property} {self.filler})"


@dataclass(frozen=True)
class Has:
    property: Property
    value: Constant

    def __str__(self) -> str:
        return f"ObjectHasValue({self.property} {self.value})"


@dataclass(frozen=True)
class OneOf:
    values: tuple[Constant, ...]

    def __str__(self) -> str:
        return f"ObjectOneOf({' '.join(map(str, self.values))})"


@dataclass(frozen=True)
class AtMost:
    number: int
    property: Property
    filler: Expression

    def __str__(self) -> str:
        return f"ObjectMaxCardinality({self.number} {self.property} {self.filler})"


@dataclass(frozen=True)
class Other:
    """What no rule can say."""

    words: str

    def __str__(self) -> str:
        return self.words


Expression = Named | Datatype | And | Or | Not | Some | Only | Has | OneOf | AtMost | Other
THING, NOTHING = Named(OWL + "Thing"), Named(OWL + "Nothing")
_NUMBERS = {
    "maxCardinality": "ObjectMaxCardinality",
    "maxQualifiedCardinality": "ObjectMaxCardinality",
    "minCardinality": "ObjectMinCardinality",
    "minQualifiedCardinality": "ObjectMinCardinality",
    "cardinality": "ObjectExactCardinality",
    "qualifiedCardinality": "ObjectExactCardinality",
}


def constant(node: Node) -> Constant:
    return parse_term(str(node))


def read_property(graph: Graph, node: Node) -> Property:
    inner = graph.find(node, OWL + "inverseOf") if isinstance(node, ox.BlankNode) else None
    return Property(node.value) if inner is None else read_property(graph, inner).inverse()


def read_expression(graph: Graph, node: Node) -> Expression:
    """The class that a node stands for."""
    if isinstance(node, ox.NamedNode):
        is_datatype = node.value.startswith(XSD) or graph.has_type(node, RDFS + "Datatype")
        is_datatype |= node.value in (RDFS + "Literal", RDF + "PlainLiteral", RDF + "langString")
        return Datatype(node.value) if is_datatype else Named(node.value)
    return read_structure(graph, node) or Other(f"an expression without a name, {node}")


def read_structure(graph: Graph, node: Node) -> Expression | None:
    """What a node says by its parts; None if it has none."""
    for word, kind in (("intersectionOf", And), ("unionOf", Or)):
        parts = graph.find(node, OWL + word)
        if parts is not None:
            return kind(tuple(read_expression(graph, part) for part in graph.members(parts)))
    whole = graph.find(node, OWL + "complementOf")
    if whole is not None:
        return Not(read_expression(graph, whole))
    values = graph.find(node, OWL + "oneOf")
    if values is not None:
        return OneOf(tuple(map(constant, graph.members(values))))
    on = graph.find(node, OWL + "onProperty")
    return None if on is None else _read_restriction(graph, node, read_property(graph, on))


def _read_restriction(graph: Graph, node: Node, on: Property) -> Expression:
    for word, kind in (("someValuesFrom", Some), ("allValuesFrom", Only)):
        filler = graph.find(node, OWL + word)
        if filler is not None:
            return kind(on, read_expression(graph, filler))
    value = graph.find(node, OWL + "hasValue")
    if value is not None:
        return Has(on, constant(value))
    given = graph.find(node, OWL + "onClass") or graph.find(node, OWL + "onDataRange")
    filler_of = THING if given is None else read_expression(graph, given)
    for word, name in _NUMBERS.items():
        number = graph.find(node, OWL + word)
        if number is not None and number.value.isdigit():
            if name == "ObjectMaxCardinality":
                return AtMost(int(number.value), on, filler_of)
            return Other(f"{name}({number.value} {on} {filler_of})")
    return Other(f"a restriction on {on}")


def _short(name: str) -> str:
    return last_part(name) or name
