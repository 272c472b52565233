"""The core program means what the program means."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hdlog.program.model import Aggregate, Atom, Bind, BodyItem, Filter, Negation, Program
from hdlog.program.normalise import is_auxiliary, normalise
from tests.oracle import materialise
from tests.strategies import Features, facts, programs

KINDS = [
    Features(nested=True),
    Features(correlated=False, nested=True),
    Features(triples=True, builtins=False, aggregates=False, negation=False),
]


@given(st.data(), st.sampled_from(KINDS))
def test_the_core_derives_the_same_facts(data: st.DataObject, features: Features) -> None:
    program = data.draw(programs(features))
    given_facts = data.draw(facts(program, features))
    expected = materialise(program, given_facts)
    core = normalise(program, {*(p for p, _ in given_facts), *expected})
    found = materialise(core, given_facts)
    assert {p: rows for p, rows in found.items() if not is_auxiliary(p.name)} == expected
    assert all(map(is_core, core.rules)), core


def is_core(rule: object) -> bool:
    body = rule.body  # type: ignore[attr-defined]
    if any(isinstance(i, Aggregate) for i in body):
        (aggregate,) = body
        return len(aggregate.calls) == 1 and is_core_body(aggregate.body)
    return is_core_body(body)


def is_core_body(body: tuple[BodyItem, ...]) -> bool:
    return all(
        isinstance(i, Atom | Filter | Bind) or (isinstance(i, Negation) and len(i.body) == 1 and not i.local)
        for i in body
    )


def test_names_of_auxiliary_predicates_follow_from_their_content() -> None:
    from hdlog.text import parse

    first = parse("p[?x] :- q[?x], NOT r[?x, _] .")
    second = parse("s[?x] :- t[?x] . p[?x] :- q[?x], NOT r[?x, _] .")
    names = [
        {r.heads[0].name for r in normalise(p).rules if is_auxiliary(r.heads[0].name)}
        for p in (first, second)
    ]
    assert names[0] == names[1] != set()
    assert normalise(Program()).rules == ()
