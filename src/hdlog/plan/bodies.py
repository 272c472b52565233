"""The body of a normal rule, as joins see it: literals to match, built-ins to apply, columns that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from hdlog.program.model import (
    Atom,
    Bind,
    Expression,
    Filter,
    Negation,
    Predicate,
    Rule,
    expression_variables,
)

Read = tuple[Predicate, bool]
"""What a literal reads: its predicate, and whether it is positive."""


@dataclass(frozen=True)
class Literal:
    atom: Atom
    positive: bool = True

    @property
    def read(self) -> Read:
        return self.atom.predicate, self.positive

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(v.name for v in self.atom.variables())


@dataclass(frozen=True)
class Body:
    rule: Rule

    @cached_property
    def literals(self) -> tuple[Literal, ...]:
        """Positive ones first."""
        negated = (i.body[0] for i in self.rule.body if isinstance(i, Negation))
        return (
            *(Literal(i) for i in self.rule.body if isinstance(i, Atom)),
            *(Literal(atom, False) for atom in negated if isinstance(atom, Atom)),
        )

    @cached_property
    def positive(self) -> tuple[int, ...]:
        """The numbers of the positive literals."""
        return tuple(i for i, literal in enumerate(self.literals) if literal.positive)

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        return tuple(literal.read for literal in self.literals)

    @cached_property
    def built_ins(self) -> tuple[Filter | Bind, ...]:
        return tuple(i for i in self.rule.body if isinstance(i, Filter | Bind))

    @cached_property
    def last(self) -> tuple[Filter | Bind, ...]:
        """Values that nothing but heads asks for: they are made once, for the matches by whatever delta."""
        used = {name for literal in self.literals for name in literal.names}
        last: Sequence[Filter | Bind] = self.built_ins
        while True:
            # What is needed earlier takes with it what it is made of, wherever that stands in the body.
            early = [i for i in last if isinstance(i, Filter) or i.variable.name in used]
            if not early:
                return tuple(last)
            used |= {name for i in early for name in names_used(i)}
            last = [i for i in last if i not in early]

    @cached_property
    def early(self) -> tuple[Filter | Bind, ...]:
        """The other built-ins: applied as soon as what they need is bound."""
        return tuple(i for i in self.built_ins if i not in self.last)

    @cached_property
    def head_names(self) -> frozenset[str]:
        return frozenset(v.name for head in self.rule.heads for v in head.variables())

    def find_needed(self, waiting: Iterable[int], built_ins: Iterable[Filter | Bind]) -> frozenset[str]:
        """The names that heads, waiting literals and built-ins ask for."""
        names = set(self.head_names)
        for i in waiting:
            names |= self.literals[i].names
        for item in (*built_ins, *self.last):
            names |= names_used(item)
            # The delta of a negated literal may have given the variable of a BIND its value.
            names |= {item.variable.name} if isinstance(item, Bind) else set()
        return frozenset(names)


def repeated_names(atom: Atom) -> frozenset[str]:
    """The variables that occur in an atom more than once."""
    names = [v.name for v in atom.variables()]
    return frozenset(name for name in names if names.count(name) > 1)


def expression_of(item: Filter | Bind) -> Expression:
    return item.condition if isinstance(item, Filter) else item.expression


def names_used(item: Filter | Bind) -> frozenset[str]:
    """The names whose values a built-in needs."""
    return frozenset(v.name for v in expression_variables(expression_of(item)))
