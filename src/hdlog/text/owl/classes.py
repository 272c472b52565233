"""Inclusions of classes as rules: what stands on the left is a body, what stands on the right heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, product

from hdlog.program.model import Atom, BodyItem, Call, Filter, Rule
from hdlog.program.terms import Iri, Term, Variable, string
from hdlog.text.owl.expressions import (
    NOTHING,
    THING,
    And,
    AtMost,
    Datatype,
    Expression,
    Has,
    Named,
    Not,
    OneOf,
    Only,
    Or,
    Property,
    Some,
)

INCONSISTENCY = "urn:hdlog:inconsistency"
"""The property that has each thing that cannot be, and the axiom that says so."""
X = Variable("x")
Body = tuple[BodyItem, ...]


class Outside(Exception):
    """An axiom, or a part of it, lies outside of OWL 2 RL."""


class NeedsEquality(Outside):
    """It says that two names are of one thing."""


@dataclass(frozen=True)
class Head:
    """What follows from a body, with what must match beside it."""

    atom: Atom
    body: Body = ()


class Inclusion:
    """Rules for one axiom, which is told where it is broken."""

    def __init__(self, words: str) -> None:
        self.words = words
        self._fresh = count(1)

    def rules(self, left: Expression, right: Expression) -> list[Rule]:
        """SubClassOf(left right)."""
        bodies = list(self.bodies(left, X))
        heads = list(self.heads(right, X))
        return [self.rule(head, body) for body in bodies for head in heads]

    def rule(self, head: Head, body: Body) -> Rule:
        """A rule, if it is one: somebody must say of which things it speaks."""
        atom, whole = _put_in(head.atom, (*body, *head.body))
        known = {v for item in whole if isinstance(item, Atom) for v in item.variables()}
        if not set(atom.variables()) <= known:
            raise Outside("it speaks of everything there is")
        return Rule((atom,), whole)

    def contradiction(self, x: Term, body: Body) -> Rule:
        """What must not be."""
        return self.rule(self._broken(x), body)

    def _broken(self, x: Term, *body: BodyItem) -> Head:
        return Head(Atom(INCONSISTENCY, (x, string(self.words))), body)

    def _variable(self) -> Variable:
        return Variable(f"y{next(self._fresh)}")

    # Left.

    def bodies(self, expression: Expression, x: Term) -> Iterator[Body]:
        """Bodies of which one matches just for the members of a class."""
        match expression:
            case Named() if expression == THING:
                yield ()
            case Named() if expression == NOTHING:
                return
            case Named(name):
                yield (Atom(name, (x,)),)
            case Datatype(name):
                yield (_has_type(x, name),)
            case And(parts):
                for several in product(*(list(self.bodies(part, x)) for part in parts)):
                    yield tuple(item for body in several for item in body)
            case Or(parts):
                for part in parts:
                    yield from self.bodies(part, x)
            case Some(property_, filler):
                y = self._variable()
                for body in self.bodies(filler, y):
                    yield (property_.atom(x, y), *body)
            case Has(property_, value):
                yield (property_.atom(x, value),)
            case OneOf(values):
                for value in values:
                    yield (Filter(Call("eq", (x, value))),)
            case _:
                raise Outside(f"{expression} cannot stand on the left of an inclusion")

    # Right.

    def heads(self, expression: Expression, x: Term) -> Iterator[Head]:
        """What holds for a member of a class."""
        match expression:
            case Named() if expression == THING:
                return
            case Named() if expression == NOTHING:
                yield self._broken(x)
            case Named(name):
                yield Head(Atom(name, (x,)))
            case And(parts):
                for part in parts:
                    yield from self.heads(part, x)
            case Not(part):
                for body in self.bodies(part, x):
                    yield self._broken(x, *body)
            case Only(property_, filler):
                y = self._variable()
                for head in self.heads(filler, y):
                    yield Head(head.atom, (property_.atom(x, y), *head.body))
            case Has(property_, value):
                yield Head(property_.atom(x, value))
            case AtMost(0, property_, filler):
                y = self._variable()
                for body in self.bodies(filler, y):
                    yield self._broken(x, property_.atom(x, y), *body)
            case AtMost(1):
                raise NeedsEquality(f"{expression} says that two names are of one thing")
            case Datatype():
                raise Outside(f"values are not checked to be of the datatype {expression}")
            case _:
                raise Outside(f"{expression} cannot stand on the right of an inclusion")


def _put_in(head: Atom, body: Body) -> tuple[Atom, Body]:
    """A rule with the members of an enumeration in place of the variables that stand for them."""
    values: dict[Term, Term] = {}
    rest: list[BodyItem] = []
    for item in body:
        match item:
            case Filter(Call("eq", (Variable() as name, Iri() as value))) if name not in values:
                values[name] = value
            case _:
                rest.append(item)

    def put(atom: Atom) -> Atom:
        return Atom(atom.name, tuple(values.get(term, term) for term in atom.terms))

    return put(head), tuple(put(item) if isinstance(item, Atom) else item for item in rest)


def chain(properties: Sequence[Property], target: Property) -> Rule:
    """A chain of properties makes another one."""
    names = [Variable(f"x{i}") for i in range(len(properties) + 1)]
    body = tuple(p.atom(a, b) for p, a, b in zip(properties, names, names[1:], strict=False))
    return Rule((target.atom(names[0], names[-1]),), body)


def _has_type(x: Term, datatype: str) -> BodyItem:
    return Filter(Call("eq", (Call("datatype", (x,)), Iri(datatype))))
