"""Which method a rule gets, why, and over which tree."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hdlog.errors import UsageError
from hdlog.plan.decomposition import verify
from hdlog.plan.planner import RulePlan, plan_rule
from hdlog.program.model import Atom, Predicate
from hdlog.program.normalise import normalise
from hdlog.program.terms import Iri
from hdlog.text import parse
from hdlog.tuning import Tuning
from tests.engines import OpenReasoner as Reasoner

CYCLE = "<q>[?a, ?b] :- <e>[?a, ?b], <e>[?b, ?c], <e>[?c, ?d], <e>[?d, ?f], <e>[?f, ?g], <e>[?g, ?a] ."


class Uniform:
    """So many facts of each predicate, over so many values."""

    def __init__(self, rows: float = 1e5, values: float = 1e4) -> None:
        self.size, self.values = rows, values

    def rows(self, atom: Atom) -> float:
        return self.size

    def distinct(self, atom: Atom, variable: str) -> float:
        return min(self.size, self.values)

    def agreeing_pairs(self, a: Atom, b: Atom, variable: str) -> float | None:
        return None

    def look_ahead(self, atoms: Sequence[Atom]) -> None:
        return None

    def core(self, atoms: Sequence[Atom]) -> None:
        return None


def planned(text: str, tuning: Tuning | None = None, statistics: Uniform | None = None) -> RulePlan:
    rule = normalise(parse(text)).rules[-1]
    return plan_rule(rule, statistics or Uniform(), tuning or Tuning())


@pytest.mark.parametrize(
    ("text", "method", "why"),
    [
        (CYCLE, "hd", "cyclic"),
        ("@standard " + CYCLE, "standard", "marked standard"),
        ("@hd <q>[?a] :- <e>[?a, ?b], <e>[?b, ?c] .", "hd", "marked hd"),
        ("<q>[?a] :- <e>[?a, ?b], <e>[?b, ?c] .", "standard", "acyclic"),
        ("<q>[?a] :- <e>[?a, ?b] .", "standard", "one atom"),
        ("<q>[?a] :- <e>[?a, ?b], <e>[?a, ?c], <e>[?a, ?d], <e>[?a, ?f], <e>[?a, ?g] .", "hd", "counting"),
    ],
)
def test_the_method_and_the_reason(text: str, method: str, why: str) -> None:
    plan = planned(text)
    assert plan.method == method
    assert why in plan.why


def test_few_rows_are_not_worth_a_tree() -> None:
    plan = planned(CYCLE, statistics=Uniform(100, 50))
    assert plan.method == "standard"
    assert "few rows" in plan.why


def test_a_body_too_large_is_declined_with_a_reason() -> None:
    names = [f"?x{i}" for i in range(9)]
    clique = ", ".join(f"<e>[{a}, {b}]" for i, a in enumerate(names) for b in names[:i])
    plan = planned(f"<q>[?x0, ?x1] :- {clique} .", Tuning("hd").without("views"))
    assert plan.method == "standard"
    assert plan.why
    assert plan.roots == ()


@pytest.mark.parametrize("views", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        CYCLE,
        "<q>[?x] :- <e>[?x, ?y], <e>[?y, ?z], <e>[?z, ?x], NOT <f>[?x, ?z], FILTER(?x != ?z) .",
        "<q>[?x, ?n] :- <e>[?x, ?y], <e>[?y, ?z], <e>[?z, ?x], BIND(?x + ?z AS ?n), NOT <f>[?y, ?z] .",
        "<q>[?x] :- <e>[?x, ?y], <e>[?y, ?z], <e>[?z, ?x], <f>[?u, ?v], <g>[<u:c>, <u:d>] .",
        "<q>[?x], <r>[?y, ?z] :- <e>[?x, ?y], <e>[?y, ?z], <e>[?z, ?x], <e>[?x, ?x], <e>[?y, <u:c>] .",
    ],
)
def test_every_item_has_its_place_in_the_trees(text: str, views: bool) -> None:
    plan = planned(text, Tuning("hd") if views else Tuning("hd").without("views"))
    assert plan.method == "hd"
    if plan.decomposition is not None:
        verify(plan.decomposition)
    for root in plan.roots:
        items = {item for node in root.tree.nodes() for item in node.items} | set(plan.last)
        items |= set(root.rule.body) if root.rule else set()
        assert items >= set(plan.rule.body)
    assert {h for root in plan.roots for h in root.heads} == set(range(len(plan.rule.heads)))


def test_isomorphic_nodes_have_one_name() -> None:
    first = planned(CYCLE)
    second = planned(CYCLE.replace("?", "?other_").replace("<q>", "<r>"))
    assert {p.predicate for p in first.nodes} == {p.predicate for p in second.nodes}
    apart = planned(CYCLE, Tuning().without("sharing"))
    assert len(apart.nodes) > len(first.nodes)


def test_a_head_that_one_node_covers_gets_its_own_root() -> None:
    text = CYCLE.replace("<q>[?a, ?b]", "<q>[?a, ?b], <r>[?c, ?d]")
    assert len(planned(text).roots) == 2
    assert len(planned(text, Tuning().without("root-per-head")).roots) == 1


def test_an_unknown_improvement_is_an_error_with_a_hint() -> None:
    with pytest.raises(UsageError, match="did you mean views"):
        Tuning().without("vews")


def test_a_tree_follows_the_facts_as_they_become_many_and_few() -> None:
    """Planned again when facts have drifted; the results stay, and nodes without a rule go."""
    rules = "<q>[?x, ?y] :- <e>[?x, ?y], <e>[?y, ?z], <e>[?z, ?u], <e>[?u, ?x] ."
    reasoner = Reasoner(rules, tuning=Tuning().without("revision"))
    edges = [
        (Predicate("e", 2), (Iri(f"n{i}"), Iri(f"n{(i * 7 + j) % 97}"))) for i in range(97) for j in range(25)
    ]
    reasoner.update(add=edges[:10])
    assert reasoner.explain()["components"][-1]["rules"][0]["method"] == "standard"
    reasoner.update(add=edges[10:])
    assert reasoner.explain()["components"][-1]["rules"][0]["method"] == "hd"
    expected = Reasoner(rules, method="standard")
    expected.update(add=edges)
    assert {p: sorted(rows, key=str) for p, rows in reasoner.tables().items()} == {
        p: sorted(rows, key=str) for p, rows in expected.tables().items()
    }
    most = [fact for n, fact in enumerate(edges) if n % 121]
    reasoner.update(delete=most)
    expected.update(delete=most)
    assert set(reasoner.facts("q")) == set(expected.facts("q"))
    assert reasoner.explain()["components"][-1]["rules"][0]["method"] == "standard"
    assert reasoner.nodes() == {}


def test_bodies_with_too_many_variables_for_views_get_nodes() -> None:
    star = ", ".join(f"<e>[?x, ?y{i}]" for i in range(12))
    plan = planned(f"<q>[?x] :- {star} .")
    assert plan.method == "hd"
    assert not plan.covers_are_views


def test_many_items_that_look_alike_do_not_hold_up_the_planner() -> None:
    names = [f"?x{i}" for i in range(7)]
    clique = ", ".join(f"<e>[{a}, {b}]" for i, a in enumerate(names) for b in names[:i])
    assert planned(f"<q>[?x] :- <a>[?x, ?x0], {clique} .").method == "hd"


def test_plans_do_not_depend_on_the_order_in_which_tables_come() -> None:
    text = "<s>[?x, ?z] :- <a>[?x, ?y], <b>[?y, ?z], <c>[?z, ?w], <d>[?w, ?x] ."
    rows = [(i % 50, (i * 13 + i // 50) % 50) for i in range(2000)]
    reasoner = Reasoner(text)
    for name in "abcd":
        reasoner.update(add={name: rows})
    assert [r["method"] for c in reasoner.explain()["components"] for r in c["rules"]] == ["hd"]
