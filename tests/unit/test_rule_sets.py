"""The project's own rules of the benchmarks against the paper's, where the paper is beside the project."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from hdlog.benchmarks.data.rule_sets import rules
from hdlog.program.model import Atom, Bind, BodyItem, Call, Expression, Rule
from hdlog.program.terms import Term, Variable
from hdlog.text import parse, read

PAPER_RULES = Path(__file__).parents[3] / "shared" / "paper" / "rules"
FILES = {
    "lubm-l": "LUBM_L.dlog",
    "lubm-l+c": "LUBM_L-C.dlog",
    "yago": "YAGO_rules.dlog",
    "exp": "exp-rules.dlog",
}
Names = dict[Variable, Variable]
Part = list[str | Term]


def flat(item: BodyItem | Expression) -> Part:
    """What stands in an item, from left to right."""
    match item:
        case Atom():
            return [item.name, *item.terms]
        case Bind():
            return [*flat(item.expression), item.variable]
        case Call():
            inside = [part for argument in item.arguments for part in flat(argument)]
            return [f"{item.function}/{len(item.arguments)}", *inside]
    assert isinstance(item, Term), f"the rules of the paper have no {item}"
    return [item]


def parts_of(rule: Rule) -> list[Part]:
    heads = [[f"head {i}", *flat(head)] for i, head in enumerate(rule.heads)]
    return [*heads, *map(flat, rule.body)]


def renamed(one: Part, other: Part, names: Names) -> Names | None:
    """The names with those that make a part another one; None where none do."""
    if len(one) != len(other):
        return None
    found = dict(names)
    for a, b in zip(one, other, strict=True):
        if isinstance(a, Variable) and isinstance(b, Variable):
            if found.setdefault(a, b) != b:
                return None
        elif a != b:
            return None
    return found if len(set(found.values())) == len(found) else None


def alike(parts: list[Part], others: list[Part], names: Names) -> bool:
    """Whether parts are others in some order, with variables renamed one to one."""
    if not parts:
        return not others
    for i, other in enumerate(others):
        more = renamed(parts[0], other, names)
        if more is not None and alike(parts[1:], others[:i] + others[i + 1 :], more):
            return True
    return False


def same(one: Rule, other: Rule) -> bool:
    """Up to the order of the body and the names of variables."""
    return alike(parts_of(one), parts_of(other), {})


def rule(text: str) -> Rule:
    (found,) = parse(text).rules
    return found


def test_order_and_names_of_variables_do_not_count_but_what_they_connect_does() -> None:
    ring = rule("<p>[?x] :- <e>[?x, ?y], <e>[?y, ?z], <e>[?z, ?x] .")
    assert same(ring, rule("<p>[?b] :- <e>[?c, ?a], <e>[?a, ?b], <e>[?b, ?c] ."))
    assert not same(ring, rule("<p>[?x] :- <e>[?x, ?y], <e>[?y, ?z], <e>[?x, ?z] ."))
    assert not same(ring, rule("<p>[?x] :- <e>[?x, ?y], <e>[?y, ?y], <e>[?y, ?x] ."))
    minus = rule("<p>[?z] :- <a>[?x], <b>[?y], BIND(?x - ?y AS ?z) .")
    assert not same(minus, rule("<p>[?z] :- <a>[?x], <b>[?y], BIND(?y - ?x AS ?z) ."))


@pytest.mark.parametrize(
    ("name", "count"), [("lubm-l", 98), ("lubm-l+c", 114), ("yago", 23), ("exp", 3), ("collaborators", 1)]
)
def test_rules_are_different_and_as_many_as_in_the_paper(name: str, count: int) -> None:
    found = rules(name).rules
    assert len(found) == count
    assert not any(same(a, b) for a, b in combinations(found, 2))


@pytest.mark.skipif(not PAPER_RULES.is_dir(), reason="the paper is not beside the project")
@pytest.mark.parametrize("name", FILES)
def test_rules_are_those_of_the_paper(name: str) -> None:
    theirs = list(read(PAPER_RULES / FILES[name]).rules)
    for ours in rules(name).rules:
        found = [i for i, other in enumerate(theirs) if same(ours, other)]
        assert found, f"not in the paper: {ours}"
        del theirs[found[0]]
    assert not theirs
