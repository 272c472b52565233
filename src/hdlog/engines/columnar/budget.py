"""How much memory the engine may use, and the error that says it was too little."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hdlog.errors import IntermediateTooLarge, UsageError
from hdlog.memory import machine_memory, used_memory

_WORTH_ASKING = 32 << 20
"""Bytes from which on it is worth the time to ask the system how much is in use."""
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE)


def parse_size(size: int | str) -> int:
    """Bytes, as a number or as in 500MB, 8GB, 1.5GiB."""
    if isinstance(size, str):
        match = _SIZE.fullmatch(size.strip())
        if match is None:
            raise UsageError(f"{size!r} is no size; write it as in 500MB or 8GB")
        number, unit, binary = match.groups()
        return parse_size(
            int(float(number) * (1024 if binary else 1000) ** " KMGT".index(unit.upper() or " "))
        )
    if not isinstance(size, int) or isinstance(size, bool) or size <= 0:
        raise UsageError(f"a memory budget is a number of bytes above 0, or a text as in 8GB, not {size!r}")
    return size


@dataclass
class Budget:
    """Bytes the process may use; 80 % of the machine by default."""

    memory: int = field(default_factory=lambda: int(0.8 * machine_memory()))

    def used_share(self) -> float:
        """How much of it is in use, as a share."""
        return used_memory() / self.memory

    def check(
        self, rows: int, bytes_a_row: int, what: str = "an intermediate result", piecemeal: bool = False
    ) -> None:
        """Refuse what does not fit, before it is made; `piecemeal`: it is one of many small parts, so that each is looked at."""
        more = rows * bytes_a_row
        if piecemeal or more > _WORTH_ASKING or self.memory < 2 * _WORTH_ASKING:
            needed = used_memory() + more
            if needed > self.memory:
                raise IntermediateTooLarge(what, rows, needed, self.memory)
