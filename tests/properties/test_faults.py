"""Ctrl-C at a random bytecode of updates and changes of rules: all or nothing, as the caller was told, and all right after."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from hdlog.program.model import Predicate, Program
from hdlog.program.terms import integer, string
from hdlog.tuning import Tuning
from tests.engines import ON_SPARK, Reasoner
from tests.faults import Bytecodes, finishes
from tests.properties.test_maintenance import check_state, shown_program, tunings
from tests.strategies import Fact, Features, facts, programs

pytestmark = pytest.mark.skipif(ON_SPARK, reason="what is interrupted here is the embedded engine")
_FEATURES = [
    Features(nested=True, cycles=True),
    Features(skolems=True, correlated=False),
    Features(triples=True, builtins=False, aggregates=False, negation=False),
]


FRESH = Predicate("fresh", 2)


class Trial:
    """A reasoner under random changes, and what it must have."""

    def __init__(self, program: Program, pool: list[Fact], tuning: Tuning, chance: random.Random) -> None:
        self.whole, self.pool, self.chance = program, pool, chance
        self.reasoner = Reasoner(tuning=tuning)
        self.program = Program()
        self.present: set[Fact] = set()
        self.counts: Counter[str] = Counter()

    def some(self) -> list[Fact]:
        """Facts of the program's predicates, and terms that nobody has seen before."""
        number = self.chance.randrange(10**9)
        new = [
            (FRESH, (string(f"t{number}-{i}"), integer(number + i))) for i in range(self.chance.randrange(4))
        ]
        return [f for f in self.pool if self.chance.random() < 0.3] + new

    def check(self) -> None:
        check_state(self.reasoner, self.program, self.present)

    def step(self, bytecodes: Bytecodes) -> None:
        """One change of rules or facts, with an interrupt at a bytecode."""
        if self.chance.random() < 0.3:
            self.change_rules(bytecodes)
        else:
            add, delete = self.some(), self.some()
            if finishes(bytecodes, lambda: self.reasoner.update(add, delete)):
                self.present = (self.present - set(delete)) | set(add)
        self.counts |= bytecodes.counts

    def change_rules(self, bytecodes: Bytecodes) -> None:
        rules = self.program.rules
        if rules and self.chance.random() < 0.5:
            gone = tuple(r for r in rules if self.chance.random() < 0.5)
            if finishes(bytecodes, lambda: self.reasoner.remove_rules(Program(gone))):
                self.program = Program(tuple(r for r in rules if r not in gone))
        else:
            new = tuple(r for r in self.whole.rules if r not in rules and self.chance.random() < 0.7)
            if finishes(bytecodes, lambda: self.reasoner.add_rules(Program(new))):
                self.program = Program(rules + new)


@pytest.mark.slow
@given(st.data(), st.randoms(use_true_random=False))
@settings(max_examples=max(3, settings().max_examples // 20))
def test_an_interrupt_at_any_bytecode_takes_all_back_or_comes_after_the_end(
    data: st.DataObject, chance: random.Random
) -> None:
    features = data.draw(st.sampled_from(_FEATURES))
    program = data.draw(programs(features).map(shown_program))
    trial = Trial(program, data.draw(facts(program, features, 10, 40)), data.draw(tunings()), chance)
    trial.step(Bytecodes())
    for number in range(12):
        # Functions that do little are as likely as those that do much: it is between their lines that things part.
        function = chance.choice(sorted(trial.counts))
        at = chance.randrange(1, trial.counts[function] + 1)
        note(f"step {number}, interrupt at bytecode {at} of {function}")
        trial.step(Bytecodes(function, at))
        trial.check()
    for number in range(20):
        trial.step(Bytecodes())
        if number % 5 == 4:
            trial.check()
