"""A store's contents as a table."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table

_SHOWN = 60


_EXACT = 1024
"""Different values up to which they were counted one by one."""


def _show_count(number: int) -> str:
    return f"{number:,}" if number < _EXACT else f"about {number:,}"


def _show_range(versions: list[int]) -> str:
    return f"{versions[0]} to {versions[-1]}" if len(versions) > 1 else "this one"


def as_table(contents: dict[str, Any]) -> Group:
    head = Table.grid(padding=(0, 2))
    summary = {
        "store": contents["folder"],
        "version": f"{contents['version']}, written {contents['created']} by hdlog {contents['program_version']}; "
        f"kept: {_show_range(contents['versions'])}",
        "facts": f"{contents['facts']:,}: {contents['asserted']:,} asserted, {contents['derived']:,} only derived",
        "terms": f"{contents['terms']:,}, and {contents['skolems']:,} Skolem terms",
        "rules": f"{contents['rules']:,}"
        + ("" if contents["materialised"] else " (facts are loaded, not materialised)"),
        "size": f"{contents['bytes'] / 1e6:,.1f} MB",
    }
    for name, value in summary.items():
        head.add_row(name, value)
    table = Table(box=None, header_style="bold")
    for name, side in (
        ("predicate", "left"),
        ("arity", "right"),
        ("facts", "right"),
        ("asserted", "right"),
        ("derived", "right"),
        ("distinct, about", "right"),
        ("number", "right"),
    ):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    for p in contents["predicates"][:_SHOWN]:
        numbers = (p["arity"], p["facts"], p["asserted"], p["derived"])
        distinct = " x ".join(_show_count(d) for d in p["about_distinct"])
        table.add_row(p["name"], *(f"{n:,}" for n in numbers), distinct, str(p["number"]))
    more = len(contents["predicates"]) - _SHOWN
    return Group(
        head, "", table, *([f"... and {more:,} more predicates; --json has all"] if more > 0 else [])
    )


def log_table(entries: list[dict[str, Any]]) -> Table:
    table = Table(box=None, header_style="bold")
    for name, side in (
        ("version", "right"),
        ("when", "left"),
        ("who", "left"),
        ("facts", "right"),
        ("came", "right"),
    ):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    table.add_column("went", justify="right")
    table.add_column("command", justify="left")
    for e in entries:
        numbers = (f"{e[n]:,}" for n in ("facts", "added", "removed"))
        mark = "" if e["kept"] else " (not kept)"
        table.add_row(f"{e['version']}{mark}", e["created"], e["by"], *numbers, e["command"])
    return table
