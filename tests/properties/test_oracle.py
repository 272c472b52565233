"""The naive evaluator against clingo, on random positive and stratified programs."""

from __future__ import annotations

from collections.abc import Iterable

import clingo
from hypothesis import given
from hypothesis import strategies as st

from hdlog.program.functions import number
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
)
from hdlog.program.terms import Constant, Literal, Term, Variable, integer
from tests.oracle import Facts, materialise
from tests.strategies import POSITIVE, Fact, Features, facts, programs

SIGNS = {
    "eq": "=",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "add": "+",
    "sub": "-",
    "mul": "*",
}


@given(st.data())
def test_positive_programs_have_the_model_clingo_finds(data: st.DataObject) -> None:
    agree(data, POSITIVE)


@given(st.data())
def test_stratified_programs_have_the_model_clingo_finds(data: st.DataObject) -> None:
    agree(data, Features())


@given(st.data())
def test_programs_with_uncorrelated_aggregates_have_the_model_clingo_finds(data: st.DataObject) -> None:
    agree(data, Features(correlated=False, builtins=False))


@given(st.data())
def test_programs_with_nested_negation_have_the_model_clingo_finds(data: st.DataObject) -> None:
    agree(data, Features(nested=True, aggregates=False))


def agree(data: st.DataObject, features: Features) -> None:
    program = data.draw(programs(features))
    given = data.draw(facts(program, features))
    assert materialise(program, given) == clingo_model(program, given)


def clingo_model(program: Program, given: Iterable[Fact]) -> Facts:
    writer = Writer()
    lines = [f"{atom(Atom(p.name, row))}." for p, row in given]
    for rule in program.rules:
        body = ", ".join(writer.item(i) for i in rule.body)
        lines += [f"{atom(head)} :- {body}." for head in rule.heads]
    control = clingo.Control(["--warn=none"])
    control.add("base", [], "\n".join(lines + writer.lines))
    control.ground([("base", [])])
    found: Facts = {}
    with control.solve(yield_=True) as handle:
        (model,) = handle
        for symbol in model.symbols(atoms=True):
            if not symbol.name.startswith("aux"):
                predicate = Predicate(symbol.name, len(symbol.arguments))
                row = tuple(integer(a.number) for a in symbol.arguments)
                found.setdefault(predicate, set()).add(row)
    return found


def term(value: Term) -> str:
    if isinstance(value, Variable):
        return "_" if value.is_wildcard else value.name.upper()
    assert isinstance(value, Literal)
    return str(number(value))


def atom(value: Atom) -> str:
    return f"{value.name}({','.join(map(term, value.terms))})" if value.terms else value.name


def expression(value: Expression) -> str:
    if isinstance(value, Call):
        left, right = value.arguments
        return f"({expression(left)} {SIGNS[value.function]} {expression(right)})"
    return term(value)


class Writer:
    """Body items as clingo text; what clingo has no form for gets rules of its own."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def item(self, item: BodyItem) -> str:
        match item:
            case Atom():
                return atom(item)
            case Filter(Call(function, (left, right))):
                return f"{expression(left)} {SIGNS[function]} {expression(right)}"
            case Bind(value, variable):
                return f"{term(variable)} = {expression(value)}"
            case Negation():
                return self.negation(item)
            case Aggregate():
                return self.aggregate(item)
        raise AssertionError(item)

    def negation(self, item: Negation) -> str:
        atoms = [a for a in item.body if isinstance(a, Atom)]
        if len(atoms) == 1 and not item.local:
            return f"not {atom(atoms[0])}"
        shared = sorted({v.name.upper() for a in atoms for v in a.variables()} - {"_", "L"})
        head = f"aux{len(self.lines)}({','.join(shared)})"
        self.lines.append(f"{head} :- {', '.join(map(atom, atoms))}.")
        return f"not {head}"

    def aggregate(self, item: Aggregate) -> str:
        (call,) = item.calls
        atoms = [a for a in item.body if isinstance(a, Atom)]
        own = sorted({v.name.upper() for a in atoms for v in a.variables()} & {"I", "J"})
        # The tuple names the match, so that equal values of different matches both count.
        element = ",".join(
            [*([term(call.argument)] if isinstance(call.argument, Variable) else []), *own, "0"]
        )
        inner = ", ".join(map(atom, atoms))
        result = f"{term(call.result)} = #{call.function}{{ {element} : {inner} }}"
        if call.function in ("min", "max") or not item.correlated:
            group = ",".join(term(v) for v in item.group)
            head = f"aux{len(self.lines)}({group})"
            self.lines.append(f"{head} :- {inner}.")
            return f"{head}, {result}"
        return result


def constants_of(facts_: Facts) -> set[Constant]:
    return {c for rows in facts_.values() for row in rows for c in row}
