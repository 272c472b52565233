"""Loops over SQL, and DuckDB running them: as a module, or alone, `python -P duck_script.py SCRIPT.json`, which imports nothing but DuckDB."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


@dataclass
class Loop:
    """What is done before a fixpoint, in its first round, and in each later one while there is something new."""

    before: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    """nothing where one round is all"""
    new: str = "select 0"
    """how many facts came in a round"""


@dataclass
class Script:
    loops: list[Loop] = field(default_factory=list)
    sizes: dict[str, str] = field(default_factory=dict)
    """queries for the number of facts of each predicate"""

    def write(self) -> str:
        return json.dumps(asdict(self))


def read(text: str) -> Script:
    whole = json.loads(text)
    return Script([Loop(**loop) for loop in whole["loops"]], whole["sizes"])


def execute(connection: duckdb.DuckDBPyConnection, script: Script) -> dict[str, int]:
    """The number of facts of each predicate."""
    for loop in script.loops:
        _execute_all(connection, [*loop.before, *loop.first])
        while loop.again and _number(connection, loop.new):
            _execute_all(connection, loop.again)
    return {name: _number(connection, query) for name, query in script.sizes.items()}


def _execute_all(connection: duckdb.DuckDBPyConnection, statements: list[str]) -> None:
    for statement in statements:
        connection.execute(statement)


def _number(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    (number,) = connection.execute(query).fetchone() or (0,)
    return int(number)


def main() -> None:
    import duckdb

    with open(sys.argv[1]) as file:
        script = read(file.read())
    with duckdb.connect() as connection:
        for name, facts in execute(connection, script).items():
            print(f"{name}\t{facts}")


if __name__ == "__main__":
    main()
