"""All axioms of an ontology, and the facts of its individuals, as rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import pyoxigraph as ox

from hdlog.program.model import Atom, Program, Rule
from hdlog.program.terms import RDF_TYPE, Iri, Variable
from hdlog.text.owl.classes import Body, Inclusion, NeedsEquality, Outside, X, chain
from hdlog.text.owl.expressions import (
    THING,
    And,
    Expression,
    Named,
    Not,
    Only,
    Or,
    Property,
    Some,
    constant,
    read_expression,
    read_property,
    read_structure,
)
from hdlog.text.owl.graph import OWL, RDF, RDFS, Graph, Node
from hdlog.text.write import write

if TYPE_CHECKING:
    from hdlog.text.owl import Level

Y, Z = Variable("y"), Variable("z")
_RDFS_AXIOMS = {RDFS + word for word in ("subClassOf", "subPropertyOf", "domain", "range")}
_VOCABULARY = (RDF, RDFS, OWL)
_CHARACTERISTICS: dict[str, Callable[[Property, Inclusion], list[Rule]]] = {
    "SymmetricProperty": lambda p, _: [chain([p], p.inverse())],
    "TransitiveProperty": lambda p, _: [Rule((p.atom(X, Z),), (p.atom(X, Y), p.atom(Y, Z)))],
    "AsymmetricProperty": lambda p, axiom: [axiom.contradiction(X, (p.atom(X, Y), p.atom(Y, X)))],
    "IrreflexiveProperty": lambda p, axiom: [axiom.contradiction(X, (p.atom(X, X),))],
}
"""What a type says of a property."""
_NO_CLASSES = {OWL + "NamedIndividual", OWL + "Thing"}


class Axioms:
    def __init__(self, graph: Graph, level: Level) -> None:
        self.graph = graph
        self.is_rl = level == "owl-rl"
        self.left_out: list[str] = []
        """axioms that are in no rule, and why"""
        self._parts: list[tuple[str, tuple[Rule, ...]]] = []
        self._translate()

    def text(self) -> str:
        """The rules, below the axioms that they are of."""
        prefixes = tuple((name, iri) for name, iri in self.graph.prefixes.items())
        lines = [f"PREFIX {name}: <{iri}>" for name, iri in prefixes]
        seen: set[Rule] = set()
        for words, rules in self._parts:
            new = tuple(rule for rule in rules if rule not in seen and not _says_nothing(rule))
            seen.update(new)
            if new:
                made = write(Program(new, prefixes=prefixes), "rdfox").splitlines()
                lines += [
                    "",
                    f"# {words}",
                    *(line for line in made if line and not line.startswith("PREFIX ")),
                ]
        return "\n".join(lines) + "\n"

    # Every triple that is an axiom.

    def _translate(self) -> None:
        kinds = self._kinds()
        for subject, property_, value in self.graph.triples:
            make = kinds.get(property_)
            if make is not None:
                make(subject, value)
            elif property_ == RDF_TYPE and isinstance(value, ox.NamedNode):
                self._characteristic(subject, value.value)
        for triple in self.graph.triples:
            self._individual(*triple)

    def _kinds(self) -> dict[str, Callable[[Node, Node], None]]:
        kinds: dict[str, Callable[[Node, Node], None]] = {
            RDFS + "subClassOf": lambda s, o: self._include("SubClassOf", s, o),
            RDFS + "subPropertyOf": lambda s, o: self._sub_property("SubObjectPropertyOf", s, o),
            RDFS + "domain": self._domain,
            RDFS + "range": self._range,
            OWL + "equivalentClass": self._equivalent,
            OWL + "disjointWith": lambda s, o: self._disjoint("DisjointClasses", s, o),
            OWL + "intersectionOf": lambda s, _: self._define(s),
            OWL + "unionOf": lambda s, _: self._define(s),
            OWL + "oneOf": lambda s, _: self._define(s),
            OWL + "complementOf": lambda s, _: self._define(s),
            OWL + "disjointUnionOf": self._disjoint_union,
            OWL + "equivalentProperty": self._equivalent_property,
            OWL + "inverseOf": self._inverse,
            OWL + "propertyDisjointWith": self._disjoint_properties,
            OWL + "propertyChainAxiom": self._chain,
            OWL + "hasKey": lambda s, _: self._leave_out(f"HasKey({self._class(s)})", _EQUALITY),
            OWL + "imports": lambda _, o: self._leave_out(f"Import(<{o.value}>)", "give that file, too"),
        }
        kinds |= {
            OWL + word: lambda s, o, w=word: self._leave_out(f"{w}({s} {o})", _EQUALITY)  # type: ignore[misc]
            for word in ("sameAs", "differentFrom")
        }
        if self.is_rl:
            return kinds
        return {name: make if name in _RDFS_AXIOMS else self._skip(name) for name, make in kinds.items()}

    def _skip(self, name: str) -> Callable[[Node, Node], None]:
        def skip(subject: Node, value: Node) -> None:
            if isinstance(subject, ox.NamedNode):
                self._leave_out(f"{name.removeprefix(OWL)}({subject} {value})", "it is not in RDFS")

        return skip

    def _class(self, node: Node) -> Expression:
        return read_expression(self.graph, node)

    def _add(self, words: str, make: Callable[[Inclusion], list[Rule]]) -> None:
        """The rules of an axiom, or why it has none."""
        try:
            self._parts.append((words, tuple(make(Inclusion(words)))))
        except NeedsEquality as why:
            self._leave_out(words, f"{why}; {_EQUALITY}")
        except Outside as why:
            self._leave_out(words, str(why))

    def _leave_out(self, words: str, why: str) -> None:
        self.left_out.append(f"{words}: {why}")

    # Classes.

    def _include(self, word: str, left: Node, right: Node) -> None:
        c, d = self._class(left), self._class(right)
        if not self.is_rl and not (isinstance(c, Named) and isinstance(d, Named)):
            self._leave_out(f"{word}({c} {d})", "it is not in RDFS")
            return
        self._add_inclusion(f"{word}({c} {d})", c, d)

    def _add_inclusion(self, words: str, left: Expression, right: Expression) -> None:
        """The rules of an inclusion, part by part: what can be said is, though another part cannot."""
        if isinstance(right, And):
            for part in right.parts:
                self._add_inclusion(words, left, part)
        elif isinstance(left, Or):
            for part in left.parts:
                self._add_inclusion(words, part, right)
        else:
            self._add(words, lambda axiom: axiom.rules(left, right))

    def _equivalent(self, left: Node, right: Node) -> None:
        c, d = self._class(left), self._class(right)
        self._both_ways(f"EquivalentClasses({c} {d})", c, d)

    def _both_ways(self, words: str, c: Expression, d: Expression) -> None:
        self._add_inclusion(words, c, d)
        self._add_inclusion(words, d, c)

    def _define(self, node: Node) -> None:
        """A class with a name that is described by its parts."""
        structure = read_structure(self.graph, node)
        if isinstance(node, ox.NamedNode) and structure is not None:
            self._both_ways(
                f"EquivalentClasses({Named(node.value)} {structure})", Named(node.value), structure
            )

    def _disjoint(self, word: str, left: Node, right: Node) -> None:
        c, d = self._class(left), self._class(right)
        self._add_inclusion(f"{word}({c} {d})", c, Not(d))

    def _disjoint_union(self, node: Node, parts: Node) -> None:
        members = [self._class(part) for part in self.graph.members(parts)]
        words = f"DisjointUnion({self._class(node)} {' '.join(map(str, members))})"
        for part in members:
            self._add_inclusion(words, part, self._class(node))
        for c, d in combinations(members, 2):
            self._add_inclusion(words, c, Not(d))
        self._leave_out(words, "that there are no other members cannot be said by rules")

    def _domain(self, node: Node, class_: Node) -> None:
        p, c = read_property(self.graph, node), self._class(class_)
        self._add_inclusion(f"ObjectPropertyDomain({p} {c})", Some(p, THING), c)

    def _range(self, node: Node, class_: Node) -> None:
        p, c = read_property(self.graph, node), self._class(class_)
        self._add_inclusion(f"ObjectPropertyRange({p} {c})", THING, Only(p, c))

    # Properties.

    def _sub_property(self, word: str, left: Node, right: Node) -> None:
        p, q = read_property(self.graph, left), read_property(self.graph, right)
        if p.name in self.graph.annotations or q.name in self.graph.annotations:
            return
        self._add(f"{word}({p} {q})", lambda _: [chain([p], q)])

    def _equivalent_property(self, left: Node, right: Node) -> None:
        self._sub_property("EquivalentObjectProperties", left, right)
        self._sub_property("EquivalentObjectProperties", right, left)

    def _inverse(self, left: Node, right: Node) -> None:
        if isinstance(left, ox.BlankNode):
            return  # a property in an expression
        p, q = read_property(self.graph, left), read_property(self.graph, right)
        words = f"InverseObjectProperties({p} {q})"
        self._add(words, lambda _: [chain([p], q.inverse()), chain([q], p.inverse())])

    def _chain(self, node: Node, parts: Node) -> None:
        p = read_property(self.graph, node)
        members = [read_property(self.graph, part) for part in self.graph.members(parts)]
        words = f"SubObjectPropertyOf(ObjectPropertyChain({' '.join(map(str, members))}) {p})"
        self._add(words, lambda _: [chain(members, p)])

    def _disjoint_properties(self, left: Node, right: Node) -> None:
        p, q = read_property(self.graph, left), read_property(self.graph, right)
        body: Body = (p.atom(X, Y), q.atom(X, Y))
        self._add(f"DisjointObjectProperties({p} {q})", lambda axiom: [axiom.contradiction(X, body)])

    def _characteristic(self, node: Node, kind: str) -> None:
        """What a type says of a property, or of the members of a list."""
        word = kind.removeprefix(OWL)
        if not kind.startswith(OWL):
            return
        if word in _CHARACTERISTICS:
            p = read_property(self.graph, node)
            words = f"{word.removesuffix('Property')}ObjectProperty({p})"
            if self.is_rl:
                self._add(words, lambda axiom: _CHARACTERISTICS[word](p, axiom))
            else:
                self._leave_out(words, "it is not in RDFS")
        elif word in ("FunctionalProperty", "InverseFunctionalProperty"):
            self._leave_out(
                f"{word}({Property(node.value)})", _EQUALITY if self.is_rl else "it is not in RDFS"
            )
        elif word == "ReflexiveProperty":
            self._leave_out(f"{word}({Property(node.value)})", "it speaks of everything there is")
        elif self.is_rl:
            self._list_axiom(node, word)

    def _list_axiom(self, node: Node, word: str) -> None:
        members = self.graph.find(node, OWL + "members") or self.graph.find(node, OWL + "distinctMembers")
        listed = [] if members is None else self.graph.members(members)
        match word:
            case "AllDisjointClasses":
                for left, right in combinations(listed, 2):
                    self._disjoint(word, left, right)
            case "AllDisjointProperties":
                for left, right in combinations(listed, 2):
                    self._disjoint_properties(left, right)
            case "AllDifferent":
                self._leave_out(f"{word}({' '.join(map(str, listed))})", _EQUALITY)
            case "NegativePropertyAssertion":
                self._negative(node)

    def _negative(self, node: Node) -> None:
        find = self.graph.find
        subject, on = find(node, OWL + "sourceIndividual"), find(node, OWL + "assertionProperty")
        value = find(node, OWL + "targetIndividual") or find(node, OWL + "targetValue")
        if subject is None or on is None or value is None:
            self._leave_out(f"NegativePropertyAssertion({node})", "it does not say of what")
            return
        p, x = read_property(self.graph, on), constant(subject)
        body: Body = (p.atom(x, constant(value)),)
        words = f"NegativePropertyAssertion({p} {subject} {value})"
        self._add(words, lambda axiom: [axiom.contradiction(x, body)])

    # Individuals.

    def _individual(self, subject: Node, property_: str, value: Node) -> None:
        """A triple about an individual, as a fact."""
        if not isinstance(subject, ox.NamedNode):
            return
        x = Iri(subject.value)
        if property_ == RDF_TYPE:
            is_named = isinstance(value, ox.NamedNode)
            if not (is_named and value.value.startswith(_VOCABULARY)) and (is_named or self.is_rl):
                c = self._class(value)
                make = partial(_member, c, x)
                self._add(f"ClassAssertion({c} {subject})", make)
            return
        is_annotation = property_.startswith(_VOCABULARY) or property_ in self.graph.annotations
        if not is_annotation and not self._is_of_ontology(subject):
            fact = Atom(property_, (x, constant(value)))
            self._add(
                f"PropertyAssertion({Property(property_)} {subject} {value})", lambda _: [Rule((fact,))]
            )

    def _is_of_ontology(self, node: ox.NamedNode) -> bool:
        """Whether a name is that of a class, a property or the ontology: what it has are annotations."""
        kinds = {o.value for o in self.graph.objects(node, RDF_TYPE) if isinstance(o, ox.NamedNode)}
        return any(kind.startswith(_VOCABULARY) and kind not in _NO_CLASSES for kind in kinds)


_EQUALITY = "equality of names is not supported"


def _member(c: Expression, x: Iri, axiom: Inclusion) -> list[Rule]:
    return [axiom.rule(head, ()) for head in axiom.heads(c, x)]


def _says_nothing(rule: Rule) -> bool:
    return bool(rule.body) and all(head in rule.body for head in rule.heads)
