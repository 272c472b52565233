"""Long histories: facts and rules come and go a hundred times, in memory and through a store that is opened for each change."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from hdlog.operations.stores import materialise, open_for_update, update
from hdlog.operations.work import Settings
from hdlog.program.model import Atom, Program, Rule
from hdlog.reasoning import Reasoning
from hdlog.text.write import write
from tests.case_folders import is_written, write_files
from tests.engines import ON_SPARK, Reasoner
from tests.engines import settings as options
from tests.properties.test_maintenance import (
    Flat,
    check_state,
    shown_program,
    told,
    tunings,
    wide_covers,
)
from tests.strategies import Fact, Features, facts, programs

STEPS = 6 if ON_SPARK else 100
KINDS = [
    Features(nested=True, cycles=True),
    Features(correlated=False, skolems=True),
    Features(triples=True, builtins=False, aggregates=False, negation=False),
    Features(triples=True, graphs=True, builtins=False, aggregates=False, negation=False),
]
STORED = [
    Features(aggregates=False, cycles=True),
    Features(correlated=False, skolems=True, cycles=True),
    KINDS[3],
]


def few(share: int) -> settings:
    return settings(max_examples=max(2, settings().max_examples // share))


class History:
    """Rules, facts that rules state, and facts that are asserted, as they change; the reasoner must follow."""

    def __init__(self, rules: Program, pool: list[Fact], chance: random.Random, reasoner: Reasoner) -> None:
        self.rules, self.pool, self.chance, self.reasoner = rules.rules, pool, chance, reasoner
        self.program = Program()
        self.present: Flat = set()
        self.before: Flat = set()

    def some(self, share: float) -> list[Fact]:
        return [f for f in self.pool if self.chance.random() < share]

    def change(self) -> None:
        """A random change, and the exact net change that is told of it."""
        kind = self.chance.random()
        if kind < 0.1:
            new = [r for r in self.rules if r not in self.program.rules and self.chance.random() < 0.5]
            stated = self.some(0.1)
            if stated:
                new.append(Rule(tuple(Atom(p.name, row) for p, row in stated)))
            update = self.reasoner.add_rules(Program(tuple(new)))
            self.program = Program(tuple(dict.fromkeys(self.program.rules + tuple(new))))
            self.present |= _stated(new)
        elif kind < 0.2:
            gone = [r for r in self.program.rules if self.chance.random() < 0.4]
            update = self.reasoner.remove_rules(Program(tuple(gone)))
            self.program = Program(tuple(r for r in self.program.rules if r not in gone))
            self.present -= _stated(gone) - _stated(self.program.rules)
        else:
            share = self.chance.choice([0.02, 0.02, 0.1, 0.5])
            add, delete = self.some(share), self.some(share)
            update = self.reasoner.update(add, delete)
            self.present = (self.present - set(delete)) | set(add)
        came, went = told(update)
        rules = Program(tuple(r for r in self.program.rules if r.body))
        after = check_state(self.reasoner, rules, self.present)
        assert came == after - self.before
        assert went == self.before - after
        self.before = after


def _stated(rules: list[Rule] | tuple[Rule, ...]) -> Flat:
    return {(h.predicate, h.terms) for r in rules if not r.body for h in r.heads}  # type: ignore[misc]


@pytest.mark.slow
@given(st.data(), st.randoms(use_true_random=False))
@few(30)
def test_a_hundred_changes_of_facts_and_rules(data: st.DataObject, chance: random.Random) -> None:
    features = data.draw(st.sampled_from(KINDS))
    program = data.draw(programs(features).map(shown_program))
    pool = data.draw(facts(program, features, 10, 40))
    with wide_covers(data):
        history = History(program, pool, chance, Reasoner(tuning=data.draw(tunings())))
        for number in range(STEPS):
            note(f"change {number}")
            history.change()


class Restored:
    """What a store has, as somebody who opens it has it before the first update."""

    def __init__(self, core: Reasoning[Any, Any, Any]) -> None:
        self.counts, self.tables, self.nodes = core.counts, core.supports, core.nodes
        self._core = core

    def __len__(self) -> int:
        return len(self._core)


def check_store(folder: Path, program: Program, present: Flat) -> Flat:
    """Facts, supports and nodes of a store, against the oracle; the facts."""
    with open_for_update(folder, options()) as living:
        return check_state(Restored(living.work.reasoner), program, present)


def follow_store(data: st.DataObject, chance: random.Random, features: Features, updates: int) -> int:
    """A store that is opened for each update, by either engine where there are two, and what each tells; how many there were."""
    program = data.draw(programs(features).map(shown_program))
    pool = [fact for fact in data.draw(facts(program, features, 5, 25)) if is_written(fact)]
    tuning = data.draw(tunings())
    with TemporaryDirectory() as name, wide_covers(data):
        folder = Path(name)
        (folder / "rules.dlog").write_text(write(program, "rdfox"))
        present = set(pool[::2])
        files = write_files(folder / "first", sorted(present, key=str))
        settings_ = options(tuning)
        materialise([folder / "rules.dlog"], files, folder / "store", settings_)
        before = check_store(folder / "store", program, present)
        for number in range(updates):
            add = [f for f in pool if chance.random() < 0.3]
            delete = [f for f in pool if chance.random() < 0.3]
            if not add and not delete:
                continue
            come = write_files(folder / f"add{number}", add) if add else []
            go = write_files(folder / f"delete{number}", delete) if delete else []
            by_turns = Settings("columnar", tuning=tuning) if chance.random() < 0.5 else settings_
            change = update(folder / "store", come, go, by_turns)["change"]
            present = (present - set(delete)) | set(add)
            after = check_store(folder / "store", program, present)
            assert told(change) == (after - before, before - after)
            before = after
    return updates


@pytest.mark.slow
@given(st.data(), st.randoms(use_true_random=False))
@few(15)
def test_a_store_that_is_opened_for_each_update(data: st.DataObject, chance: random.Random) -> None:
    features = data.draw(st.sampled_from(STORED))
    follow_store(data, chance, features, 2 if ON_SPARK else 5)


@pytest.mark.slow
@pytest.mark.skipif(ON_SPARK, reason="each process would start a session of its own")
def test_each_update_by_a_process_of_its_own(tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text(
        "path[?x, ?y] :- edge[?x, ?y] . path[?x, ?z] :- path[?x, ?y], edge[?y, ?z] ."
        "lonely[1] :- NOT edge[1, 2] . three[?x] :- BIND(1 + 2 AS ?x) ."
        "up[?x, ?z] :- edge[?x, ?y], edge[?y, ?z], FILTER(?x < ?y), FILTER(?y < ?z) ."
    )
    chance = random.Random(5)
    present: set[tuple[int, int]] = set()
    (tmp_path / "edge.facts").write_text("7\t8\n")
    present.add((7, 8))
    hdlog("materialise", rules, tmp_path / "edge.facts", "--store", tmp_path / "store")
    for number in range(4):
        add = {(chance.randrange(9), chance.randrange(9)) for _ in range(6)}
        delete = set(chance.sample(sorted(present), len(present) // 2))
        arguments: list[str | Path] = []
        for word, given_ in (("add", add), ("delete", delete)):
            folder = tmp_path / f"{word}{number}"
            folder.mkdir()
            (folder / "edge.facts").write_text("".join(f"{a}\t{b}\n" for a, b in sorted(given_)))
            arguments += [f"--{word}", folder / "edge.facts"]
        hdlog("update", tmp_path / "store", *arguments)
        present = (present - delete) | add
        told_ = json.loads(hdlog("info", tmp_path / "store", "--json"))
        found = {p["name"]: p["facts"] for p in told_["predicates"]}
        fresh = Reasoner(rules)
        fresh.update(add={"edge": sorted(present)})
        assert found == {p.name: n for p, n in fresh.counts().items()}


def hdlog(*arguments: str | Path) -> str:
    command = [sys.executable, "-m", "hdlog", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
