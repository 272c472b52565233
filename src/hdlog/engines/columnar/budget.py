"""How much memory the engine may use, and the error that says it was too little."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from hdlog.errors import HdlogError

_BYTES_PER_ROW = 40
_WORTH_ASKING = 1_000_000


class IntermediateTooLarge(HdlogError):
    """A join would pass the memory budget; the driver adds which rule it was."""

    exit_code = 5

    def __init__(self, rows: int, needed: int, allowed: int) -> None:
        self.rows = rows
        super().__init__(
            f"an intermediate result of {rows:,} rows needs about {needed / 2**30:.1f} GiB; "
            f"the memory budget is {allowed / 2**30:.1f} GiB"
        )


def machine_memory() -> int:
    """What this machine, or the container it is, has."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and limit.read_text().strip().isdigit():
        total = min(total, int(limit.read_text()))
    return total


def used_memory() -> int:
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 0
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@dataclass
class Budget:
    """Bytes the process may use; 80 % of the machine by default."""

    memory: int = field(default_factory=lambda: int(0.8 * machine_memory()))

    def check_rows(self, rows: int) -> None:
        """Refuse a result of so many rows if it does not fit."""
        if rows > _WORTH_ASKING or self.memory < _WORTH_ASKING * _BYTES_PER_ROW:
            needed = used_memory() + rows * _BYTES_PER_ROW
            if needed > self.memory:
                raise IntermediateTooLarge(rows, needed, self.memory)
