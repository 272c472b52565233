"""Facts and rules in numbers alone, for engines that have nothing else in common: names p0, p1, ..., ids of 32 bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.benchmarks.data import exp
from hdlog.program.model import (
    Atom,
    Attribute,
    Bind,
    BodyItem,
    Call,
    Declaration,
    Expression,
    Predicate,
    Program,
    Rule,
)
from hdlog.program.terms import Iri, Term, Variable, integer
from hdlog.reading.identifiers import INTEGERS

Ids = NDArray[Any]
Tables = Mapping[Predicate, list[Ids]]
KINDS = {Iri(exp.NS + kind): number for number, kind in enumerate(exp.KINDS)}
"""The constants of all rule sets, with their ids."""


def make_signed(column: Ids) -> Ids:
    """Ids as they are, integers as their values."""
    if column.dtype == np.uint32:
        return column.view(np.int32)
    return column - INTEGERS if len(column) and column[0] < 0 else column.astype(np.int32)


class Numbers:
    """A program with all its predicates declared, and its facts.

    The term that SKOLEM makes of a node and a case is a number beyond all ids. Values of Exp do not fit in 32 bits; where
    an engine lets them wrap around, they are other values, but as many facts.
    """

    def __init__(self, program: Program, tables: Tables) -> None:
        self.names = {
            predicate: f"p{i}" for i, predicate in enumerate(dict.fromkeys((*program.predicates, *tables)))
        }
        self.tables = {self.names[p]: [make_signed(c) for c in columns] for p, columns in tables.items()}
        self._free = 1 + max((int(c.max()) for cs in self.tables.values() for c in cs if len(c)), default=0)
        skolems = [tables[p][i] for p, i in ((exp.KIND, 0), (exp.INSTANCE, 1)) if p in tables]
        self._span = 1 + max((int(c.max()) for c in skolems if len(c)), default=0)
        assert self._free + self._span**2 < 2**31, "numbers of 32 bits for all terms"
        declarations = tuple(
            Declaration(name, tuple(Attribute(f"c{i}", "number") for i in range(predicate.arity)))
            for predicate, name in self.names.items()
        )
        self.program = Program(tuple(map(self._rule, program.rules)), declarations)

    def _rule(self, rule: Rule) -> Rule:
        variables: dict[str, Variable] = {}

        def variable(old: Variable) -> Variable:
            return variables.setdefault(old.name, Variable(f"V{len(variables)}"))

        def term(old: Term) -> Term:
            if isinstance(old, Variable):
                return variable(old)
            return integer(KINDS[old]) if isinstance(old, Iri) else old

        def atom(old: Atom) -> Atom:
            return Atom(self.names[old.predicate], tuple(map(term, old.terms)))

        def expression(old: Expression) -> Expression:
            if not isinstance(old, Call):
                return term(old)
            if old.function == "skolem":
                _, node, case = old.arguments
                times = Call("mul", (expression(node), integer(self._span)))
                return Call("add", (Call("add", (times, expression(case))), integer(self._free)))
            return Call(old.function, tuple(map(expression, old.arguments)))

        def item(old: BodyItem) -> BodyItem:
            if isinstance(old, Bind):
                return Bind(expression(old.expression), variable(old.variable))
            assert isinstance(old, Atom), "the rule sets have atoms and values only"
            return atom(old)

        body = tuple(map(item, rule.body))
        return Rule(tuple(map(atom, rule.heads)), body)
