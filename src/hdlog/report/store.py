"""A store's contents as a table."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table

_SHOWN = 60


_EXACT = 1024
"""Different values up to which they were counted one by one."""


def _about(number: int) -> str:
    return f"{number:,}" if number < _EXACT else f"about {number:,}"


def as_table(found: dict[str, Any]) -> Group:
    head = Table.grid(padding=(0, 2))
    told = {
        "store": found["folder"],
        "snapshot": f"{found['snapshot']}, written {found['created']} by hdlog {found['version']}",
        "facts": f"{found['facts']:,}: {found['asserted']:,} asserted, {found['derived']:,} only derived",
        "terms": f"{found['terms']:,}, and {found['skolems']:,} Skolem terms",
        "rules": f"{found['rules']:,}"
        + ("" if found["materialised"] else " (facts are loaded, not materialised)"),
        "size": f"{found['bytes'] / 1e6:,.1f} MB",
    }
    for name, value in told.items():
        head.add_row(name, value)
    table = Table(box=None, header_style="bold")
    for name, side in (
        ("predicate", "left"),
        ("arity", "right"),
        ("facts", "right"),
        ("asserted", "right"),
        ("derived", "right"),
        ("distinct", "right"),
        ("MB", "right"),
        ("folder", "left"),
    ):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    for p in found["predicates"][:_SHOWN]:
        numbers = (p["arity"], p["facts"], p["asserted"], p["derived"])
        distinct = " x ".join(_about(d) for d in p["distinct"])
        table.add_row(
            p["name"], *(f"{n:,}" for n in numbers), distinct, f"{p['bytes'] / 1e6:,.1f}", p["folder"]
        )
    more = len(found["predicates"]) - _SHOWN
    return Group(
        head, "", table, *([f"... and {more:,} more predicates; --json has all"] if more > 0 else [])
    )
