"""The running example of the paper: its Examples 1 to 3, down to the contents of each inst."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from hdlog.maintenance import dred, hypertree
from hdlog.maintenance.nodes import Node
from hdlog.maintenance.rounds import Addition, Overdeletion
from hdlog.program.model import Predicate
from hdlog.program.terms import Iri
from tests.engines import OpenReasoner as Reasoner

N, K = 6, 3
RULE = "<PC>[?x, ?y] :- <CW>[?x, ?z1], <CA>[?x, ?z2], <PC>[?z1, ?y], <PC>[?z2, ?y] ."
CW, CA, PC = (Predicate(name, 2) for name in ("CW", "CA", "PC"))
Rows = set[tuple[str, ...]]


def given() -> list[tuple[Predicate, tuple[Iri, Iri]]]:
    facts = [(CW, (f"a{N}", "a2")), (CA, (f"a{N}", "a3"))]
    for i in range(N):
        for j in range(1, K + 1):
            facts += [(CW, (f"a{i}", f"b{i * K + j}")), (CA, (f"a{i}", f"c{i * K + j}"))]
            facts += [(PC, (f"b{i * K + j}", f"d{j}")), (PC, (f"c{i * K + j}", f"d{j}"))]
    return [(p, (Iri(s), Iri(o))) for p, (s, o) in facts]


class Watched:
    """A reasoner by the paper's version of the method, and what its nodes gain and lose, phase by phase.

    p1 has {x, y, z1}, p2 {x, y, z2}; their tuples are told in the order x, z, y of the paper.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reasoner = Reasoner(RULE, method="paper")
        self.gained: dict[str, list[Rows]] = defaultdict(list)
        self.lost: dict[str, list[Rows]] = defaultdict(list)
        self.restored: dict[str, Rows] = {}
        self.inst_re: dict[str, Rows] = {}
        gain, lose, rederive = Addition.update, Overdeletion.update, dred.rederive

        def watch_gain(round_: Addition[Any, Any, Any], node: Node[Any, Any, Any], rows: Any) -> Any:
            change = gain(round_, node, rows)
            self.gained[self.name(node.predicate)].append(self.rows(node.predicate, change.delta))
            return change

        def watch_loss(round_: Overdeletion[Any, Any, Any], node: Node[Any, Any, Any], rows: Any) -> Any:
            change = lose(round_, node, rows)
            self.lost[self.name(node.predicate)].append(self.rows(node.predicate, change.delta))
            return change

        def watch_rederivation(run: dred.Run[Any, Any, Any]) -> Any:
            for node in run.component.nodes:
                parts = run.engine.disjoint_union(run.overdeleted.get(node.predicate, []), 3)
                self.inst_re[self.name(node.predicate)] = self.rows(node.predicate, parts)
                self.restored[self.name(node.predicate)] = self.rows(
                    node.predicate, run.select_supported(node.predicate)
                )
            return rederive(run)

        monkeypatch.setattr(Addition, "update", watch_gain)
        monkeypatch.setattr(Overdeletion, "update", watch_loss)
        monkeypatch.setattr(dred, "rederive", watch_rederivation)

    def name(self, predicate: Predicate) -> str:
        rule = self.reasoner.core.driver.planning.nodes[predicate].rule
        return "p1" if any(a.name == "CW" for a in rule.atoms()) else "p2"

    def rows(self, predicate: Predicate, facts: Any) -> Rows:
        rule = self.reasoner.core.driver.planning.nodes[predicate].rule
        first, second = sorted(rule.atoms(), key=lambda a: a.name == "PC")
        x, z = (v.name for v in first.variables())
        y = next(v.name for v in second.variables() if v.name != z)
        names = [v.name for v in rule.heads[0].variables()]
        order = [names.index(n) for n in (x, z, y)]
        found = self.reasoner.core.engine.decode(facts).rows()
        return {tuple(str(row[i]).strip("<>") for i in order) for row in found}

    def inst(self) -> dict[str, Rows]:
        tables = self.reasoner.core.driver.kept.tables
        return {
            self.name(p): self.rows(p, tables[p].facts()) for p in self.reasoner.core.driver.planning.nodes
        }

    def update(self, **changes: Any) -> Any:
        for store in (self.gained, self.lost, self.restored, self.inst_re):
            store.clear()
        return self.reasoner.update(**changes)


def tuples(x: str, z: str) -> Rows:
    return {(x, z, f"d{j}") for j in range(1, K + 1)}


def first_round(letter: str) -> Rows:
    return {(f"a{i}", f"{letter}{i * K + j}", f"d{j}") for i in range(N) for j in range(1, K + 1)}


def test_the_example_goes_through_all_three_semi_join_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[str] = []
    top_down, bottom_up = hypertree.top_down_lsj, hypertree.bottom_up_lsj

    def watch_down(r: Any, root: int, active: Any, versions: Any) -> None:
        passes.append("TopDownLSJ(t)" if all(a is not None for a in active) else "TopDownLSJ(p_i)")
        top_down(r, root, active, versions)

    def watch_up(r: Any, root: int, active: Any) -> None:
        passes.append("BottomUpLSJ(t)")
        bottom_up(r, root, active)

    monkeypatch.setattr(hypertree, "top_down_lsj", watch_down)
    monkeypatch.setattr(hypertree, "bottom_up_lsj", watch_up)
    reasoner = Reasoner(RULE, method="paper")
    reasoner.update(add=given())
    passes.clear()
    reasoner.update(add=[(CW, (Iri("a6"), Iri("a4"))), (CA, (Iri("a6"), Iri("a5")))])
    assert passes[:3] == ["TopDownLSJ(p_i)", "BottomUpLSJ(t)", "TopDownLSJ(t)"]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    watched = Watched(monkeypatch)
    watched.update(add=given())
    return watched


def test_example_1_the_second_round_does_not_repeat_the_first(watched: Watched) -> None:
    an = f"a{N}"
    assert watched.gained["p1"] == [first_round("b"), tuples(an, "a2"), set()]
    assert watched.gained["p2"] == [first_round("c"), tuples(an, "a3"), set()]
    assert watched.inst() == {
        "p1": first_round("b") | tuples(an, "a2"),
        "p2": first_round("c") | tuples(an, "a3"),
    }
    assert len(watched.reasoner) == len(given()) + N * K + K


def test_example_2_an_addition_to_the_nodes_that_derives_nothing_new(watched: Watched) -> None:
    an = f"a{N}"
    update = watched.update(add=[(CW, (Iri(an), Iri("a4"))), (CA, (Iri(an), Iri("a5")))])
    assert sum(len(t) for t in update.added.values()) == 2
    assert watched.gained["p1"][0] == tuples(an, "a4")
    assert watched.gained["p2"][0] == tuples(an, "a5")
    # The derivations of PC(an, dj) are four times as many now: by a2 or a4, and a3 or a5.
    supports = {row: n for row, _, n in watched.reasoner.tables()[PC] if row[0] == Iri(an)}
    assert set(supports.values()) == {4}


def test_example_3_a_deletion_is_overdeleted_and_rederived(watched: Watched) -> None:
    an = f"a{N}"
    watched.update(add=[(CW, (Iri(an), Iri("a4"))), (CA, (Iri(an), Iri("a5")))])
    update = watched.update(delete=[(CA, (Iri(an), Iri("a3")))])
    assert watched.lost["p2"][0] == tuples(an, "a3")
    assert watched.lost["p1"][0] == set()
    assert watched.inst_re == {"p1": set(), "p2": tuples(an, "a3")}
    assert watched.restored == {"p1": set(), "p2": set()}
    assert {p: t.rows() for p, t in update.removed.items()} == {CA: [(Iri(an), Iri("a3"))]}
    assert watched.inst()["p2"] == first_round("c") | tuples(an, "a5")
    assert not update.added
