"""The triples of an ontology, found by their subjects."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

import pyoxigraph as ox

from hdlog.errors import Problem, Source

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
XSD = "http://www.w3.org/2001/XMLSchema#"
Node = ox.NamedNode | ox.BlankNode | ox.Literal
Subject = ox.NamedNode | ox.BlankNode
_XML = re.compile(r"\s*(<\?xml|<!DOCTYPE|<!--|<rdf:RDF)")


Triple = tuple[Subject, str, Node]


class Graph:
    def __init__(self, triples: list[Triple], prefixes: dict[str, str]) -> None:
        self.triples = triples
        self.prefixes = prefixes
        self._objects: dict[tuple[Node, str], list[Node]] = {}
        for subject, property_, value in triples:
            self._objects.setdefault((subject, property_), []).append(value)

    def objects(self, subject: Node, property_: str) -> list[Node]:
        return self._objects.get((subject, property_), [])

    def find(self, subject: Node, property_: str) -> Node | None:
        """The value of a property that has one."""
        found = self.objects(subject, property_)
        return found[0] if found else None

    def has_type(self, subject: Node, name: str) -> bool:
        return any(
            isinstance(o, ox.NamedNode) and o.value == name for o in self.objects(subject, RDF + "type")
        )

    def members(self, node: Node) -> list[Node]:
        """The members of a list."""
        found, seen = [], set()
        while node.value != RDF + "nil" and node not in seen:
            seen.add(node)
            first, rest = self.find(node, RDF + "first"), self.find(node, RDF + "rest")
            if first is None or rest is None:
                break
            found.append(first)
            node = rest
        return found

    @cached_property
    def annotations(self) -> frozenset[str]:
        """Properties that say something about the ontology only."""
        kind = ox.NamedNode(OWL + "AnnotationProperty")
        return frozenset(s.value for s, p, o in self.triples if p == RDF + "type" and o == kind)


def read_graph(source: Source) -> tuple[Graph | None, list[Problem]]:
    """RDF/XML, or Turtle, of which N-Triples are a part."""
    is_xml = _XML.match(source.text) is not None
    form = ox.RdfFormat.RDF_XML if is_xml else ox.RdfFormat.TURTLE
    try:
        # What is relative is so to the file.
        parser = ox.parse(source.text.encode(), format=form, base_iri=Path(source.name).resolve().as_uri())
        triples: list[Triple] = []
        for quad in parser:
            subject, value = quad.subject, quad.object
            assert not isinstance(subject, ox.Triple), "neither syntax quotes triples"
            assert not isinstance(value, ox.Triple), "nor as objects"
            triples.append((subject, quad.predicate.value, value))
    except SyntaxError as error:
        name = "RDF/XML" if is_xml else "Turtle"
        hint = "an ontology is RDF/XML, Turtle or N-Triples"
        return None, [Problem("ontology", f"{source.name}: this is no {name}: {error}", hint=hint)]
    return Graph(triples, dict(parser.prefixes)), []
