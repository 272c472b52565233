"""What an update does, told while it does it; and the limits at which it stops."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hdlog import interrupts
from hdlog.errors import LimitReached


@dataclass(frozen=True)
class Limits:
    """None is no limit."""

    rounds: int | None = None
    facts: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One round of one phase of one component."""

    component: int
    components: int
    predicates: tuple[str, ...]
    phase: str
    round: int
    facts: int
    total: int
    seconds: float


@dataclass
class Trace:
    """The events of an update so far; they survive an interrupt of it."""

    limits: Limits = field(default_factory=Limits)
    listen: Callable[[Event], None] | None = None
    events: list[Event] = field(default_factory=list)
    announce: Callable[[str], None] = lambda _: None
    """is told what goes on, before it does"""

    def start(self, components: int) -> None:
        self.events = []
        self._components = components
        self._number = 0
        self._total = 0
        self._rounds = 0
        self._started = time.perf_counter()
        self.announce("")

    def component(self, number: int, names: tuple[str, ...]) -> None:
        self._number = number
        self._names = names
        self._rounds = 0
        self._announce("")

    def finish(self) -> None:
        """All components are done."""
        self.announce("")

    def begin(self, phase: str) -> None:
        """The rounds that follow are of this phase."""
        self._announce(phase)

    def _announce(self, phase: str) -> None:
        where = f"component {self._number} of {self._components}, {self._few_names()}"
        self.announce(f"{where}, {phase} in round {self._rounds + 1}" if phase else where)

    def round(self, phase: str, facts: int) -> None:
        """A round found so many facts to go on with."""
        interrupts.check()
        self._rounds += 1
        self._total += facts
        event = Event(
            self._number,
            self._components,
            self._names,
            phase,
            self._rounds,
            facts,
            self._total,
            time.perf_counter() - self._started,
        )
        self.events.append(event)
        self._announce(phase)
        if self.listen:
            self.listen(event)
        if self.limits.rounds is not None and self._rounds > self.limits.rounds:
            raise LimitReached(f"{self._where()} took more than {self.limits.rounds:,} rounds")
        if self.limits.facts is not None and self._total > self.limits.facts:
            raise LimitReached(f"{self._where()} passed {self.limits.facts:,} facts in this update")

    def _where(self) -> str:
        return f"the rules for {self._few_names()}"

    def _few_names(self) -> str:
        return ", ".join(self._names[:3]) + (", ..." if len(self._names) > 3 else "")
