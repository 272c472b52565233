"""Why facts hold, and why others do not: derivations rest on asserted facts, step by step, and none is less deep."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hdlog.program.model import Program, Rule
from hdlog.program.ntriples import parse_term, term_text
from hdlog.program.terms import Constant
from hdlog.query.queries import Queries
from hdlog.query.why import Proof, Search
from tests.engines import Reasoner
from tests.oracle import Facts, consequences, materialise
from tests.properties.test_maintenance import shown_program
from tests.strategies import Fact, Features, facts, programs

KINDS = [
    Features(aggregates=False),
    Features(aggregates=False, nested=True, cycles=True),
    Features(correlated=False, skolems=True),
    Features(triples=True, builtins=False, aggregates=False, negation=False),
]


def levels(program: Program, given_facts: set[Fact]) -> dict[Fact, int]:
    """How deep the least deep derivation of each fact is, by rounds of rules without negation."""
    depth = dict.fromkeys(given_facts, 1)
    found: Facts = {}
    for predicate, row in given_facts:
        found.setdefault(predicate, set()).add(row)
    while True:
        new = {fact for rule in program.rules for fact in consequences(rule, found) if fact not in depth}
        if not new:
            return depth
        depth |= dict.fromkeys(new, max(depth.values(), default=1) + 1)
        for predicate, row in new:
            found.setdefault(predicate, set()).add(row)


def height(proof: Proof) -> int:
    return 1 + max(map(height, proof.children), default=0)


@given(st.data())
def test_every_fact_has_a_derivation_from_asserted_ones(data: st.DataObject) -> None:
    features = data.draw(st.sampled_from(KINDS))
    program = data.draw(programs(features).map(shown_program))
    given_facts = set(data.draw(facts(program, features)))
    reasoner = Reasoner(program)
    reasoner.update(add=sorted(given_facts, key=str))
    found = materialise(program, given_facts)
    queries = Queries(reasoner.core)
    every = sorted(((p, row) for p, rows in found.items() for row in rows), key=str)
    for predicate, row in data.draw(st.permutations(every))[:6]:
        why = queries.why((predicate.name, *row))  # which evaluates each step again
        steps = {step.number: step for step in why.steps}
        assert all(
            step.uses or step.notes or step.kind == "asserted" or not body_of(step.rule) for step in why.steps
        )
        assert (steps[1].kind == "asserted") == ((predicate, row) in given_facts)
        # No step rests on itself.
        done: set[int] = set()
        while len(done) < len(steps):
            ready = {n for n, step in steps.items() if n not in done and all(u in done for u in step.uses)}
            assert ready, "a derivation goes in circles"
            done |= ready


def body_of(rule: str) -> str:
    return rule.partition(":-")[2]


@given(st.data())
def test_no_derivation_is_less_deep(data: st.DataObject) -> None:
    features = Features(negation=False, aggregates=False, builtins=False, cycles=data.draw(st.booleans()))
    program = data.draw(programs(features).map(shown_program))
    single = Program(tuple(Rule((h,), r.body) for r in program.rules for h in r.heads))
    given_facts = set(data.draw(facts(single, features)))
    reasoner = Reasoner(single)
    reasoner.update(add=sorted(given_facts, key=str))
    depth = levels(single, given_facts)
    queries = Queries(reasoner.core)
    search = Search(reasoner.core, queries.evaluation)
    for predicate, row in sorted(depth, key=str)[:8]:
        ids = tuple(int(i) for i in reasoner.core.engine.dictionary.encode_terms(row).tolist())
        (proof, *_) = search.prove((predicate, ids))
        if search.is_smallest:
            assert height(proof) <= depth[predicate, row] + auxiliaries(proof)


def auxiliaries(proof: Proof) -> int:
    """How many steps only the core has, at most, on a way down."""
    own = int(proof.fact[0].name.startswith("#"))
    return own + max(map(auxiliaries, proof.children), default=0)


@given(st.data())
def test_what_does_not_hold_has_a_reason(data: st.DataObject) -> None:
    features = data.draw(st.sampled_from(KINDS[:3]))
    program = data.draw(programs(features).map(shown_program))
    given_facts = data.draw(facts(program, features))
    reasoner = Reasoner(program)
    reasoner.update(add=given_facts)
    found = materialise(program, given_facts)
    queries = Queries(reasoner.core)
    for rule in program.rules[:3]:
        for head in rule.heads:
            row: tuple[Constant, ...] = tuple(
                data.draw(st.sampled_from([parse_term(term_text(t)) for t in _values(found)] or [_ONE]))
                for _ in head.terms
            )
            if row in found.get(head.predicate, ()):
                continue
            why_not = queries.why_not((head.name, *row))
            for miss in why_not.misses:
                assert miss.failed
                assert len(miss.matched) <= max(len(r.body) for r in program.rules)


def _values(found: Facts) -> list[Constant]:
    return sorted({t for rows in found.values() for row in rows for t in row}, key=str)


_ONE = parse_term('"1"^^<http://www.w3.org/2001/XMLSchema#integer>')
