"""After every update: facts, supports and net change are those of evaluation from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, Protocol, get_args

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from hdlog.api import Update
from hdlog.plan import planner
from hdlog.plan.decompose import decompose
from hdlog.plan.decomposition import Decomposition, verify
from hdlog.plan.decomposition import Node as HypertreeNode
from hdlog.program.model import Predicate, Program, Rule
from hdlog.program.normalise import normalise
from hdlog.tuning import SWITCHES, Method, Numbers, Tuning
from tests.engines import ON_SPARK, Reasoner
from tests.oracle import Facts, Row, derivations, materialise
from tests.strategies import POSITIVE, Fact, Features, facts, programs

Flat = set[Fact]


def flat(found: Facts) -> Flat:
    return {(p, row) for p, rows in found.items() for row in rows}


def shown(program: Program) -> str:
    lines = []
    for rule in program.rules:
        heads = ", ".join(f"{h.name}{tuple(map(str, h.terms))}" for h in rule.heads)
        lines.append(f"{heads} :- {rule.body}")
    return "\n".join(lines).replace("http://www.w3.org/2001/XMLSchema#", "")


def told(update: Update) -> tuple[Flat, Flat]:
    came = {(p, row) for p, found in update.added.items() for row in found.rows()}
    went = {(p, row) for p, found in update.removed.items() for row in found.rows()}
    return came, went


class Kept(Protocol):
    """What a reasoner keeps, as tests see it."""

    def counts(self) -> dict[Predicate, int]: ...

    def tables(self) -> dict[Predicate, list[tuple[Row, bool, int]]]: ...

    def nodes(self) -> dict[Predicate, tuple[Rule, dict[Row, int]]]: ...

    def __len__(self) -> int: ...


def stored(reasoner: Kept) -> Flat:
    counts, tables = reasoner.counts(), reasoner.tables()
    found = {(p, row) for p in counts for row, _, _ in tables[p]}
    assert len(found) == len(reasoner)
    return found


Check = Literal["facts", "nodes", "supports", "net change"]
CHECKS: tuple[Check, ...] = get_args(Check)


class Wrong(AssertionError):
    """Something is not as evaluation from scratch has it; says which check has found it."""

    def __init__(self, check: Check, found: object, expected: object) -> None:
        super().__init__(f"wrong {check}:\nfound    {found}\nexpected {expected}")
        self.check = check


def compare(check: Check, found: object, expected: object, checks: Container[Check] = CHECKS) -> None:
    if check in checks and found != expected:
        raise Wrong(check, found, expected)


def check_state(
    reasoner: Kept, program: Program, given_facts: Flat, checks: Container[Check] = CHECKS
) -> Flat:
    """Facts and supports of every predicate, auxiliary ones too, against the oracle."""
    truth = flat(materialise(program, given_facts))
    compare("facts", stored(reasoner), truth, checks)
    normal = normalise(program, {p for p, _ in given_facts} | set(reasoner.counts()))
    everything = materialise(normal, given_facts)
    check_nodes(reasoner, everything, checks)
    nodes = reasoner.nodes()
    supports: dict[Fact, tuple[bool, int]] = {}
    for predicate, rows in reasoner.tables().items():
        if predicate not in nodes:
            supports |= {(predicate, row): (asserted, support) for row, asserted, support in rows}
    counts = derivations(normal, everything)
    expected = {fact: (fact in given_facts, counts[fact]) for fact in flat(everything)}
    compare("supports", supports, expected, checks)
    return truth


def check_nodes(reasoner: Kept, everything: Facts, checks: Container[Check] = CHECKS) -> None:
    """Rows and counts of every node and view, against the matches of its definition."""
    for predicate, (definition, rows) in reasoner.nodes().items():
        expected = derivations(Program((definition,)), everything)
        compare("nodes", {(predicate, row): n for row, n in rows.items()}, dict(expected), checks)


@st.composite
def changes(
    draw: st.DrawFn, program: Program, features: Features, present: Flat
) -> tuple[list[Fact], list[Fact]]:
    """Additions and deletions: few, many, everything, and facts that are not there."""
    add = draw(st.one_of(st.just([]), facts(program, features, 0, 6), facts(program, features)))
    known = sorted(present | set(add), key=str)
    share = draw(st.sampled_from([0, 0.25, 0.5, 0.95, 1])) if known else 0
    chosen = draw(st.permutations(known)) if share not in (0, 1) else known
    delete = list(chosen[: round(share * len(known))])
    delete += draw(st.one_of(st.just([]), facts(program, features, 0, 2)))
    return add, delete


def _fit_engine(features: Features) -> tuple[Features, int]:
    """Programs and numbers of updates that an engine can take many of: every round is a job on Spark."""
    return (replace(features, max_rules=3), 2) if ON_SPARK else (features, 4)


DIARY: list[Any] = []
"""The program that was drawn last, and its updates: of a failure that hypothesis has shrunk, the smallest."""


def maintain(
    data: st.DataObject, features: Features, checks: Container[Check] = CHECKS, **options: Any
) -> Counter[str]:
    """Random updates of a random program; how much was checked."""
    counts: Counter[str] = Counter()
    features, most = _fit_engine(features)
    program = data.draw(programs(features).map(shown_program))
    reasoner = Reasoner(program, **options)
    present: Flat = set()
    DIARY[:] = [program]
    before = check_state(reasoner, program, present, checks)
    for step in range(data.draw(st.integers(1, most))):
        add, delete = (
            data.draw(changes(program, features, present))
            if step
            else (data.draw(facts(program, features)), [])
        )
        note(f"add {compact(add)}\ndelete {compact(delete)}")
        DIARY.append((add, delete))
        came, went = told(reasoner.update(add, delete))
        present = (present - set(delete)) | set(add)
        after = check_state(reasoner, program, present, checks)
        compare("net change", (came, went), (after - before, before - after), checks)
        counts["updates"] += 1
        counts["derived facts"] += len(after - present)
        counts["facts removed"] += len(went)
        before = after
    return counts


def shown_program(program: Program) -> Program:
    note(shown(program))
    return program


def compact(given_facts: list[Fact]) -> list[tuple[str, ...]]:
    return [(p.name, *(str(t) for t in row)) for p, row in given_facts]


@st.composite
def tunings(draw: st.DrawFn) -> Tuning:
    """Every method, every improvement on or off, and numbers for which tiny tables go every way.

    On tiny tables views do not pay; a low price makes the planner use many. Nor do other starts, sums and halves.
    """
    method: Method = draw(st.sampled_from(["hd", "hd", "combined", "combined", "paper"]))
    off = draw(st.one_of(st.just([]), st.just(["views"]), st.lists(st.sampled_from(SWITCHES), max_size=6)))
    usual = Numbers()
    tuning = (
        Tuning(method)
        .without(",".join(off))
        .steered(
            kept_row=draw(st.sampled_from([usual.kept_row, -1e6])),
            many_rows=draw(st.sampled_from([0, usual.many_rows])),
            worth_halves=draw(st.sampled_from([1, usual.worth_halves])),
            few_rows=draw(st.sampled_from([0.0, usual.few_rows])),
            patience=draw(st.sampled_from([0.01, 2.0, usual.patience])),
            trial=draw(st.sampled_from([1e9, 0.0, usual.trial])),
            worth_trying=draw(st.sampled_from([1e9, usual.worth_trying])),
            worth_asking=draw(st.sampled_from([0.0, usual.worth_asking])),
            worth_adding=draw(st.sampled_from([-1.0, usual.worth_adding])),
            rows_a_view=draw(st.sampled_from([1e-6, usual.rows_a_view])),
            small_view_run=draw(st.sampled_from([0, usual.small_view_run])),
            looked_up=draw(st.sampled_from([1, usual.looked_up])),
        )
    )
    note(str(tuning))
    return tuning


@contextmanager
def wide_covers(data: st.DataObject) -> Iterator[None]:
    """Decompositions with more atoms in their covers than they need, half of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "decompose", data.draw(st.sampled_from([decompose, padded])))
        yield


def padded(*arguments: Any, **options: Any) -> Decomposition | None:
    """A decomposition with more atoms in its covers than it needs.

    Then a tuple of a node stands for several matches, which in the normal form is rare: all that overdeletion,
    inst_re and the counts of a node are about.
    """
    found = decompose(*arguments, **options)
    if found is None:
        return None
    edges = found.hypergraph.edges

    def pad(node: HypertreeNode) -> HypertreeNode:
        below = frozenset().union(*(n.bag for n in node.subtree()))
        more = [
            e
            for e, variables in enumerate(edges)
            if e not in node.cover and not variables <= node.bag and variables & below <= node.bag
        ]
        return HypertreeNode(node.bag, (*node.cover, *more), tuple(map(pad, node.children)))

    wider = Decomposition(found.hypergraph, pad(found.root))
    verify(wider)
    return wider


@given(st.data())
def test_positive_programs_over_decompositions(data: st.DataObject) -> None:
    with wide_covers(data):
        maintain(data, replace(POSITIVE, cycles=True), tuning=data.draw(tunings()))


@given(st.data())
def test_programs_with_negation_and_built_ins_over_decompositions(data: st.DataObject) -> None:
    features = Features(aggregates=False, cycles=True, skolems=data.draw(st.booleans()))
    with wide_covers(data):
        maintain(data, features, tuning=data.draw(tunings()))


@given(st.data())
def test_rules_change_sides_within_an_update(data: st.DataObject) -> None:
    """Any row is too many, and any tree looks good; trials fail or not."""
    tuning = Tuning().steered(
        few_rows=0.0,
        worth_trying=1e9,
        worth_asking=0.0,
        worth_adding=data.draw(st.sampled_from([-1.0, 6.0])),
        rows_a_view=1e-6,
        patience=data.draw(st.sampled_from([0.01, 1.0, 4.0])),
        trial=data.draw(st.sampled_from([0.0, 3.0, 1e9])),
        kept_row=data.draw(st.sampled_from([5.0, 5.0, -1e6])),
        small_view_run=data.draw(st.sampled_from([0, 1 << 12])),
    )
    negation = data.draw(st.booleans())
    maintain(
        data, Features(aggregates=False, builtins=negation, negation=negation, cycles=True), tuning=tuning
    )


@given(st.data())
def test_positive_programs(data: st.DataObject) -> None:
    maintain(data, POSITIVE)


@given(st.data())
def test_stratified_programs_with_built_ins_and_correlated_aggregates(data: st.DataObject) -> None:
    maintain(data, Features(nested=True))


@given(st.data())
def test_stratified_programs_with_aggregates_of_their_own_groups(data: st.DataObject) -> None:
    maintain(data, Features(correlated=False, skolems=True))


@given(st.data())
def test_programs_with_variables_in_place_of_predicates(data: st.DataObject) -> None:
    graphs = data.draw(st.booleans())
    maintain(data, Features(triples=True, graphs=graphs, builtins=False, aggregates=False, negation=False))


@given(st.data())
def test_rules_come_and_go_on_a_living_materialisation(data: st.DataObject) -> None:
    with wide_covers(data):
        change_rules(data)


def change_rules(data: st.DataObject) -> None:
    features, most = _fit_engine(
        Features(aggregates=data.draw(st.booleans()), cycles=data.draw(st.booleans()))
    )
    program = data.draw(programs(features).map(shown_program))
    present = set(data.draw(facts(program, features)))
    reasoner = Reasoner(Program(), tuning=data.draw(tunings()))
    reasoner.update(sorted(present, key=str))
    current = Program()
    before = stored(reasoner)
    for _ in range(data.draw(st.integers(1, most))):
        wanted = Program(tuple(r for r in program.rules if data.draw(st.booleans())))
        gone = Program(tuple(r for r in current.rules if r not in wanted.rules))
        new = Program(tuple(r for r in wanted.rules if r not in current.rules))
        note(f"remove\n{shown(gone)}\nadd\n{shown(new)}")
        reasoner.remove_rules(gone)
        reasoner.add_rules(new)
        current = Program(tuple(r for r in current.rules if r in wanted.rules) + new.rules)
        check_state(reasoner, current, present)
    absent = reasoner.facts(Predicate("absent", 1))
    assert (absent.collect() if ON_SPARK else absent.rows()) == []
    assert before == present


@given(st.data())
def test_two_threads_and_every_way_to_keep_runs_agree(data: st.DataObject) -> None:
    """Small limits make tiny tables use threads, flags, direct probes and several runs."""
    small, most = data.draw(st.sampled_from([(0, 10), (0, 1), (Numbers.small_run, 10)]))
    tuning = Tuning().steered(small_run=small, most_runs=most, worth_threads=1, worth_flags=0)
    maintain(data, Features(nested=True), threads=data.draw(st.sampled_from([1, 2])), tuning=tuning)
