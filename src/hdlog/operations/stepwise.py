"""A long materialisation, a few components at a time: what is finished is written as it goes, and an attempt that was killed goes on from there.

What is finished is a store by itself: that of the rules so far over all facts that were given. To go on is to add the other rules, which is an
update like any other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hdlog.operations.work import AnyWork
from hdlog.program.dependencies import DependencyGraph
from hdlog.program.model import Program
from hdlog.program.normalise import normalise

_SHARE = 0.1
"""Of the time between two notes that components which are evaluated together are to take."""


def order_rules(program: Program) -> list[list[int]]:
    """The rules of a program by their numbers, component after component; facts, which are no component's, first.

    Rules with a variable in place of a predicate see whatever the others derive; with them, there is one component.
    """
    facts = [number for number, rule in enumerate(program.rules) if rule.is_fact]
    others = [number for number, rule in enumerate(program.rules) if not rule.is_fact]
    if program.has_triples or not others:
        return [facts + others]
    components = DependencyGraph(normalise(program)).components
    places = {p: place for place, component in enumerate(components) for p in component.predicates}
    steps: dict[int, list[int]] = {}
    for number in others:
        last = max(places[head.predicate] for head in program.rules[number].heads)
        steps.setdefault(last, []).append(number)
    ordered = [steps[place] for place in sorted(steps)]
    return [facts + ordered[0], *ordered[1:]]


def choose_rules(program: Program, numbers: Sequence[int]) -> Program:
    chosen = set(numbers)
    return replace(program, rules=tuple(r for n, r in enumerate(program.rules) if n in chosen))


class Stepwise:
    """Adds the rules of a program that are not evaluated yet."""

    def __init__(
        self, work: AnyWork, program: Program, done: Sequence[int], every: float, **more: Any
    ) -> None:
        """Notes go to the store after `every` so many seconds; `more` is said with what is written."""
        self.work, self.program, self.every, self.more = work, program, every, more
        self.done = list(done)
        known = set(done)
        steps = ([n for n in step if n not in known] for step in order_rules(program))
        self.steps = [step for step in steps if step]
        self._noted = time.perf_counter()
        self.completed = 0.0
        """when the last component was finished"""

    def run(self) -> None:
        """All of them, as the next version of the store."""
        together = 1
        while self.steps:
            started = time.perf_counter()
            step = [n for several in self.steps[:together] for n in several]
            del self.steps[:together]
            with self._noting([*self.done, *step]):
                self.work.reasoner.extend_program(choose_rules(self.program, [*self.done, *step]))
            self.done += step
            took = time.perf_counter() - started
            together = together * 2 if took < _SHARE * self.every else max(1, together // 2)

    def begin(self, facts: Any) -> None:
        """Assert what was given, before any rule."""
        with self._noting([]):
            self.work.reasoner.materialise(facts)

    @contextmanager
    def _noting(self, done: Sequence[int]) -> Iterator[None]:
        """What is done within this goes to the store: as a version if it is all there is, as a note if it is time for one."""

        def write(_: object) -> None:
            self.completed = time.perf_counter()
            if not self.steps:
                self.work.commit(len(self.work.reasoner), **self.more)
            elif self.completed - self._noted >= self.every:
                self.work.commit(unfinished=tuple(done), **self.more)
                self.more.pop("rules", None)  # they are in the store now
                self._noted = time.perf_counter()

        self.work.reasoner.before_commit = write
        try:
            yield
        finally:
            self.work.reasoner.before_commit = None
