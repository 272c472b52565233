"""A reading into one plain dict, and that dict into a table for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from hdlog.program.dependencies import DependencyGraph, reader, writer
from hdlog.program.model import Aggregate, Bind, Filter, Negation, Rule, body_atoms
from hdlog.text import Reading

RULE_KINDS = (
    "one body atom",
    "several body atoms",
    "several heads",
    "recursive",
    "negation",
    "aggregate",
    "built-ins",
)


def describe(name: str, reading: Reading) -> dict[str, Any]:
    """What `hdlog check --json` prints for one file."""
    program = reading.program
    graph = DependencyGraph(program)
    derived = {p for rule in program.rules for head in rule.heads for p in graph.find_reached(head)}
    components = graph.components
    kinds: Counter[str] = Counter(dict.fromkeys(RULE_KINDS, 0))
    for number, rule in enumerate(program.rules):
        if not rule.is_fact:
            kinds.update(_kinds(rule, _is_recursive(graph, number, rule)))
    return {
        "file": name,
        "dialect": reading.dialect,
        "predicates": {
            "total": len(program.predicates),
            "derived": len(derived & set(program.predicates)),
            "given": len(set(program.predicates) - derived),
        },
        "facts": sum(r.is_fact for r in program.rules),
        "rules": {"total": sum(not r.is_fact for r in program.rules), **kinds},
        "components": [
            {
                "predicates": [str(p) for p in c.predicates],
                "rules": len(c.rules),
                "recursive": c.recursive,
                "stratum": c.stratum,
            }
            for c in components
            if c.rules
        ],
        "strata": 1 + max((c.stratum for c in components), default=0),
        "problems": [p.as_dict() for p in reading.problems],
    }


def _is_recursive(graph: DependencyGraph, number: int, rule: Rule) -> bool:
    heads = {graph.component_of[writer(head)] for head in rule.heads}
    return any(graph.component_of[reader(atom)] in heads for atom, _ in body_atoms(rule.body))


def _kinds(rule: Rule, recursive: bool) -> Iterable[str]:
    yield "one body atom" if len(rule.atoms()) <= 1 else "several body atoms"
    if len(rule.heads) > 1:
        yield "several heads"
    if recursive:
        yield "recursive"
    if any(isinstance(i, Negation) for i in rule.body):
        yield "negation"
    if any(isinstance(i, Aggregate) for i in rule.body):
        yield "aggregate"
    if any(isinstance(i, Filter | Bind) for i in rule.body):
        yield "built-ins"


def as_table(descriptions: Sequence[dict[str, Any]]) -> Table:
    """One column per file."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    for description in descriptions:
        table.add_column(Text(description["file"]), justify="right", overflow="fold")

    def row(label: str, values: Sequence[object]) -> None:
        table.add_row(label, *map(str, values))

    row("predicates", [d["predicates"]["total"] for d in descriptions])
    row("  derived", [d["predicates"]["derived"] for d in descriptions])
    row("  given", [d["predicates"]["given"] for d in descriptions])
    row("facts", [d["facts"] for d in descriptions])
    row("rules", [d["rules"]["total"] for d in descriptions])
    for kind in RULE_KINDS:
        counts = [d["rules"][kind] for d in descriptions]
        if any(counts):
            row(f"  {kind}", counts)
    row("components with rules", [len(d["components"]) for d in descriptions])
    row("  recursive", [sum(c["recursive"] for c in d["components"]) for d in descriptions])
    row("strata", [d["strata"] for d in descriptions])
    row("errors", [_count(d, "error") for d in descriptions])
    row("warnings", [_count(d, "warning") for d in descriptions])
    return table


def _count(description: dict[str, Any], severity: str) -> int:
    return sum(p["severity"] == severity for p in description["problems"])
