"""What a running update shows in the terminal."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from hdlog.maintenance.trace import Event

if TYPE_CHECKING:
    from rich.status import Status


class Progress:
    """One line that follows the events; shown only on a terminal."""

    def __init__(self, on_terminal: bool) -> None:
        self._status: Status | None = None
        if on_terminal:
            from rich.console import Console

            self._status = Console(stderr=True).status("reading")

    def __enter__(self) -> Progress:
        if self._status:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._status:
            self._status.stop()

    def say(self, text: str) -> None:
        if self._status:
            self._status.update(text)

    def __call__(self, event: Event) -> None:
        self.say(line(event))


def line(event: Event) -> str:
    """Component, round, facts so far, facts per second."""
    names = ", ".join(n.rsplit("#", 1)[-1].rsplit("/", 1)[-1] for n in event.predicates[:3])
    more = ", ..." if len(event.predicates) > 3 else ""
    rate = event.total / event.seconds if event.seconds else 0
    return (
        f"component {event.component} of {event.components} ({names}{more}), {event.phase} round {event.round}: "
        f"{event.total:,} facts, {rate:,.0f} a second"
    )
