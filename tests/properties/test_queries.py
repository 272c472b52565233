"""Rule bodies as queries: the answers are the matches that a naive evaluator finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, note
from hypothesis import strategies as st

from hdlog.program.model import Negation, Program, Rule
from hdlog.program.terms import Constant, Variable
from hdlog.query.algebra import Selection
from hdlog.query.queries import Prepared, Queries
from hdlog.query.rule_bodies import translate_body
from tests.engines import ON_SPARK, Reasoner
from tests.oracle import Facts, matches, materialise
from tests.properties.test_maintenance import compact, shown_program, tunings, wide_covers
from tests.strategies import Features, facts, programs

KINDS = [
    Features(correlated=False, nested=True, cycles=True),
    Features(correlated=False, skolems=True),
    Features(triples=True, builtins=False, aggregates=False),
    Features(triples=True, graphs=True, builtins=False, aggregates=False),
]


def matched(rule: Rule, names: tuple[str, ...], found: Facts) -> Counter[tuple[Constant, ...]]:
    """How many matches of a body there are for each row of some names."""
    return Counter(tuple(binding[Variable(n)] for n in names) for binding in matches(rule.body, {}, found))


@given(st.data())
def test_answers_are_the_matches_of_the_body(data: st.DataObject) -> None:
    features = data.draw(st.sampled_from(KINDS))
    if ON_SPARK:
        features = replace(features, max_rules=2)
    program = data.draw(programs(features).map(shown_program))
    given_facts = data.draw(facts(program, features))
    note(f"facts {compact(given_facts)}")
    # Half of the rules are materialised, and all of them asked.
    usable = [
        r for r in program.rules if not features.triples or not any(isinstance(i, Negation) for i in r.body)
    ]
    kept = Program(tuple(r for r in usable if data.draw(st.booleans())))
    with wide_covers(data):
        reasoner = Reasoner(kept, tuning=data.draw(tunings()))
        reasoner.update(add=given_facts)
        found = materialise(kept, given_facts)
        queries = Queries(reasoner.core)
        for rule in program.rules[: 1 if ON_SPARK else None]:
            bound = sorted({v.name for h in rule.heads for v in h.variables()})
            names = tuple(data.draw(st.permutations(bound))[: data.draw(st.integers(0, len(bound)))])
            expected = matched(rule, names, found)
            node = translate_body(rule.body)
            note(f"{names} <- {rule.body}")
            rows = queries.evaluation.answer(Selection(node, names))
            assert Counter(rows.terms()) == expected
            once = queries.evaluation.answer(Selection(node, names, distinct=True))
            assert sorted(map(str, once.terms())) == sorted(map(str, expected))


@given(st.data())
def test_parameters_are_values_of_variables(data: st.DataObject) -> None:
    features = data.draw(st.sampled_from([KINDS[0], KINDS[2]]))
    program = data.draw(programs(features).map(shown_program))
    given_facts = data.draw(facts(program, features))
    reasoner = Reasoner()
    reasoner.update(add=given_facts)
    found = materialise(Program(), given_facts)
    queries = Queries(reasoner.core)
    for rule in program.rules:
        names = tuple(sorted({v.name for a in rule.atoms() for v in a.variables() if not v.is_wildcard}))
        if not names:
            continue
        everything = matched(rule, names, found)
        parameter = data.draw(st.sampled_from(names))
        place = names.index(parameter)
        values = sorted({row[place] for row in everything}, key=str)[:3]
        query = Selection(translate_body(rule.body, (parameter,)), names)
        prepared = Prepared(queries.evaluation, query, (parameter,))
        for value in values:
            expected = Counter({row: n for row, n in everything.items() if row[place] == value})
            assert Counter(prepared.ask({parameter: value}).terms()) == expected
