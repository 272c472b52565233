"""A program that says the same in other words has the same facts, and the same net changes, after every update; no oracle is asked."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from hdlog.program.model import (
    Atom,
    BodyItem,
    Filter,
    Negation,
    Predicate,
    Program,
    Rule,
    expression_variables,
)
from hdlog.program.terms import Variable
from hdlog.text import parse
from hdlog.text.write import write
from tests.duck import Rows
from tests.engines import ON_SPARK, Reasoner
from tests.properties.test_second_opinion import EDGE, LABEL, MARK, changes, random_program

pytestmark = pytest.mark.skipif(ON_SPARK, reason="programs are those of the other engine")
Way = Callable[[Program, random.Random], Program]


def reorder(program: Program, chance: random.Random) -> Program:
    """Rules and the atoms of their bodies in another order."""
    rules = [replace(r, body=tuple(chance.sample(r.body, len(r.body)))) for r in program.rules]
    return Program(tuple(chance.sample(rules, len(rules))))


def rename(program: Program, chance: random.Random) -> Program:
    """Other names for the variables of each rule."""

    def of_rule(rule: Rule) -> Rule:
        names = sorted({v.name for v in _variables(rule)})
        others = dict(
            zip(names, chance.sample([f"v{i}" for i in range(len(names))], len(names)), strict=True)
        )
        return _substitute(rule, {n: Variable(o) for n, o in others.items()})

    return Program(tuple(map(of_rule, program.rules)))


def repeat(program: Program, chance: random.Random) -> Program:
    """An atom twice in a body."""

    def of_rule(rule: Rule) -> Rule:
        atoms = [item for item in rule.body if isinstance(item, Atom)]
        return replace(rule, body=(*rule.body, chance.choice(atoms)))

    return Program(tuple(map(of_rule, program.rules)))


def split(program: Program, chance: random.Random) -> Program:
    """Some atoms of a body as a rule of their own."""
    made = []
    for number, rule in enumerate(program.rules):
        atoms = [item for item in rule.body if isinstance(item, Atom)]
        some = chance.sample(atoms, chance.randrange(1, len(atoms) + 1))
        others = [item for item in rule.body if item not in some]
        inside = {v.name for a in some for v in a.variables()}
        outside = {v.name for item in (*others, *rule.heads) for v in _variables_of(item)}
        shown = tuple(Variable(n) for n in sorted(inside & outside))
        part = Atom(f"part{number}", shown)
        made += [Rule((part,), tuple(some)), replace(rule, body=(part, *others))]
    return Program(tuple(made))


def join(program: Program, chance: random.Random) -> Program:
    """The program beside another, which shares its input."""
    more = parse(random_program(chance)).rules
    given = {EDGE.name, LABEL.name, MARK.name}

    def apart(item: BodyItem) -> BodyItem:
        if isinstance(item, Atom):
            return item if item.name in given else replace(item, name=f"other_{item.name}")
        if isinstance(item, Negation):
            return replace(item, body=tuple(map(apart, item.body)))
        return item

    others = [replace(r, heads=tuple(map(apart, r.heads)), body=tuple(map(apart, r.body))) for r in more]  # type: ignore[arg-type]
    return Program((*program.rules, *others))


WAYS: dict[str, Way] = {"reorder": reorder, "rename": rename, "repeat": repeat, "split": split, "join": join}


def _variables_of(item: BodyItem) -> set[Variable]:
    match item:
        case Atom():
            return set(item.variables())
        case Negation():
            return {v for inner in item.body for v in _variables_of(inner)}
        case Filter(condition):
            return set(expression_variables(condition))
    raise AssertionError(f"not in these programs: {item}")


def _variables(rule: Rule) -> set[Variable]:
    return {v for item in (*rule.heads, *rule.body) for v in _variables_of(item)}


def _substitute(rule: Rule, names: dict[str, Variable]) -> Rule:
    """By way of the text, in which a name is a word."""
    text = write(Program((rule,)), "rdfox")
    for name in names:
        text = text.replace(f"?{name}", f"?#{name}#")
    for name, other in names.items():
        text = text.replace(f"?#{name}#", f"?{other.name}")
    return parse(text).rules[0]


def check(seed: int, way: str, edges: int) -> int:
    """How many facts were compared."""
    chance = random.Random(seed)
    program = parse(random_program(chance))
    other = WAYS[way](program, chance)
    methods = [chance.choice(["combined", "hd"]) for _ in range(2)]
    one, two = Reasoner(program, method=methods[0]), Reasoner(other, method=methods[1])
    present: dict[Predicate, Rows] = {EDGE: set(), LABEL: set(), MARK: set()}
    heads = sorted({h.predicate for r in program.rules for h in r.heads})
    compared = 0
    for add, delete in changes(chance, present, edges):
        told = [reasoner.update(add, delete) for reasoner in (one, two)]
        for predicate, rows in delete.items():
            present[predicate] -= rows
        for predicate, rows in add.items():
            present[predicate] |= rows
        for predicate in heads:
            where = f"{write(program, 'rdfox')}\n{write(other, 'rdfox')}\n{predicate}"
            found = [_sorted(r.facts(predicate.name, predicate.arity).arrow) for r in (one, two)]
            assert found[0].equals(found[1]), where
            compared += len(found[0])
            for side in ("added", "removed"):
                first, second = (getattr(t, side).get(predicate) for t in told)
                assert (0 if first is None else len(first)) == (0 if second is None else len(second)), where
    return compared


def _sorted(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("way", WAYS)
def test_the_same_in_other_words(seed: int, way: str) -> None:
    assert check(seed, way, 400) > 0
