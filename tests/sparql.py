"""Random SPARQL queries over random graphs, and what pyoxigraph answers to them."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyoxigraph as ox

PREFIX = "http://e/"
XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
NODES = [f"<{PREFIX}{c}>" for c in "abcde"]
PROPERTIES = [f"<{PREFIX}{c}>" for c in "pqr"]
CLASSES = [f"<{PREFIX}{c}>" for c in "CD"]
GRAPHS = [f"<{PREFIX}g{i}>" for i in (1, 2)]
LITERALS = ["1", "2", "3", '"x"', '"y"', '"x"@en', "1.5", f'"2026-01-01"^^<{XSD}date>', "true"]
VARIABLES = ["?a", "?b", "?c", "?d"]
Row = frozenset[tuple[str, str, Any]]
"""Names that have a value, each with its kind and value."""


def make_quads(chance: random.Random, count: int) -> str:
    """N-Quads, most of them in the default graph. All nodes are in all graphs: pyoxigraph finds no path of no steps at others."""
    lines = {f"{node} <{PREFIX}z> {node} {graph} ." for node in NODES for graph in ("", *GRAPHS)}
    for _ in range(count):
        s = chance.choice(NODES)
        graph = chance.choice(GRAPHS) if chance.random() < 0.3 else ""
        if chance.random() < 0.2:
            lines.add(f"{s} <{TYPE}> {chance.choice(CLASSES)} {graph} .")
            continue
        o = chance.choice(NODES) if chance.random() < 0.7 else _written(chance.choice(LITERALS))
        lines.add(f"{s} {chance.choice(PROPERTIES)} {o} {graph} .")
    return "\n".join(sorted(lines)) + "\n"


def _written(literal: str) -> str:
    """A literal as N-Quads have it."""
    if literal[0] == '"':
        return literal
    kind = "boolean" if literal == "true" else "decimal" if "." in literal else "integer"
    return f'"{literal}"^^<{XSD}{kind}>'


class QueryMaker:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.fresh = 0

    def pick(self, *options: Any) -> Any:
        return self.chance.choice(options)

    def query(self) -> tuple[str, bool]:
        """A query, and whether its answers are cut short, so that another may have others."""
        if self.chance.random() < 0.1:
            return f"ASK {self.group(2)}", False
        form = self.chance.random()
        body = self.group(2)
        if form < 0.25:
            return self.aggregate(body), False
        distinct = self.pick("", "", "DISTINCT ")
        shown = "*" if self.chance.random() < 0.2 else " ".join(self.some_variables())
        dataset = ""
        if self.chance.random() < 0.1:
            dataset = f"FROM {GRAPHS[0]} " + (f"FROM {GRAPHS[1]} " if self.chance.random() < 0.3 else "")
            dataset += f"FROM NAMED {GRAPHS[1]} " if self.chance.random() < 0.5 else ""
            if dataset.count("FROM <") > 1:
                body = re.sub(r"\([^()]*\)[*+?]|[*+?] ", " ", body) if "*" in body or "+" in body else body
        text = f"SELECT {distinct}{shown} {dataset}WHERE {body}"
        if self.chance.random() < 0.1:
            return f"{text} ORDER BY ?a ?b LIMIT {self.chance.randrange(4)}", True
        return text, False

    def some_variables(self) -> list[str]:
        return self.chance.sample(VARIABLES, self.chance.randrange(1, 4))

    def aggregate(self, body: str) -> str:
        keys = self.chance.sample(VARIABLES, self.chance.randrange(0, 3))
        value = self.pick(*VARIABLES)
        calls = []
        for number in range(self.chance.randrange(1, 3)):
            function = self.pick("COUNT", "COUNT", "SUM", "AVG", "MIN", "MAX")
            distinct = self.pick("", "DISTINCT ")
            argument = "*" if function == "COUNT" and self.chance.random() < 0.4 else value
            if argument == "*" and "/" in body:
                distinct = ""  # pyoxigraph counts the nodes in the middle of a path
            calls.append(f"({function}({distinct}{argument}) AS ?n{number})")
        group = f" GROUP BY {' '.join(keys)}" if keys else ""
        having = f" HAVING(COUNT(*) > {self.chance.randrange(3)})" if self.chance.random() < 0.2 else ""
        return f"SELECT {' '.join(keys)} {' '.join(calls)} WHERE {body}{group}{having}"

    def group(self, depth: int) -> str:
        more = self.chance.randrange(0, 3) if depth else 0
        parts = [self.triples(), *(self.part(depth - 1) for _ in range(more))]
        if self.chance.random() < 0.3:
            self.chance.shuffle(parts)
        filters = [f"FILTER({self.condition(depth)})" for _ in range(self.chance.randrange(0, 2))]
        return "{ " + " ".join(parts + filters) + " }"

    def part(self, depth: int) -> str:
        kind = self.chance.random()
        if kind < 0.25:
            return f"OPTIONAL {self.group(depth)}"
        if kind < 0.4:
            return f"{self.group(depth)} UNION {self.group(depth)}"
        if kind < 0.52:
            return f"MINUS {self.group(depth)}"
        if kind < 0.62:
            self.fresh += 1
            return f"BIND({self.expression()} AS ?v{self.fresh})"
        if kind < 0.72:
            return self.values()
        if kind < 0.82:
            return f"GRAPH {self.pick('?g', *GRAPHS)} {self.group(depth)}"
        if kind < 0.92:
            names = " ".join(self.some_variables())
            return f"{{ SELECT {self.pick('', 'DISTINCT ')}{names} {self.group(depth)} }}"
        return self.group(depth)

    def values(self) -> str:
        names = self.chance.sample(VARIABLES, self.chance.randrange(1, 3))
        rows = [
            "(" + " ".join(self.pick("UNDEF", *NODES, *LITERALS[:4]) for _ in names) + ")"
            for _ in range(self.chance.randrange(1, 4))
        ]
        return f"VALUES ({' '.join(names)}) {{ {' '.join(rows)} }}"

    def triples(self) -> str:
        return " ".join(self.triple() for _ in range(self.chance.randrange(1, 4)))

    def triple(self) -> str:
        s = self.pick(*VARIABLES, *VARIABLES, *NODES)
        kind = self.chance.random()
        if kind < 0.12:
            return f"{s} a {self.pick(*CLASSES, *VARIABLES)} ."
        o = self.pick(*VARIABLES, *VARIABLES, *NODES, self.pick(*LITERALS))
        if kind < 0.22:
            return f"{s} {self.pick(*VARIABLES)} {o} ."
        if kind < 0.4:
            return f"{s} {self.path(2)} {self.pick(*VARIABLES, *NODES)} ."
        return f"{s} {self.pick(*PROPERTIES)} {o} ."

    def path(self, depth: int) -> str:
        if not depth or self.chance.random() < 0.3:
            return str(self.pick(*PROPERTIES, f"^{self.pick(*PROPERTIES)}", f"<{TYPE}>"))
        inner = self.path(depth - 1)
        kind = self.chance.random()
        if kind < 0.3:
            return f"({inner}/{self.path(depth - 1)})"
        if kind < 0.55:
            return f"({inner}|{self.path(depth - 1)})"
        if kind < 0.9:
            return f"({inner}){self.pick('*', '+', '?')}"
        # Both ways at once pyoxigraph counts a loop once, the standard twice.
        way = self.pick("", "^")
        return f"!({way}{self.pick(*PROPERTIES)}|{way}{self.pick(*PROPERTIES)})"

    def condition(self, depth: int) -> str:
        kind = self.chance.random()
        if kind < 0.2 and depth:
            return f"{self.pick('', 'NOT ')}EXISTS {self.group(0)}"
        if kind < 0.4:
            return f"{self.pick('', '!')}BOUND({self.pick(*VARIABLES)})"
        if kind < 0.55 and depth:
            return f"{self.condition(depth - 1)} {self.pick('&&', '||')} {self.condition(depth - 1)}"
        if kind < 0.65:
            return f"{self.pick('isIRI', 'isLITERAL', 'isNUMERIC')}({self.pick(*VARIABLES)})"
        if kind < 0.75:
            return f"{self.pick(*VARIABLES)} {self.pick('IN', 'NOT IN')} ({self.pick(*NODES)}, 1, 'x')"
        if kind < 0.85:
            return f"{self.expression()} {self.pick('<', '<=', '>', '>=')} {self.chance.randrange(4)}"
        return f"{self.expression()} {self.pick('=', '!=')} {self.expression()}"

    def expression(self) -> str:
        variable = self.pick(*VARIABLES)
        kind = self.chance.random()
        if kind < 0.4:
            return str(variable)
        if kind < 0.55:
            return f"({variable} {self.pick('+', '-', '*')} {self.pick(*VARIABLES, '1', '2')})"
        if kind < 0.65:
            return f"COALESCE({variable}, {self.pick(*VARIABLES, '7')})"
        if kind < 0.75:
            return f"IF({self.condition(0)}, {variable}, {self.pick(*VARIABLES, '0')})"
        if kind < 0.85:
            return f"{self.pick('STR', 'DATATYPE', 'LANG', 'STRLEN', 'UCASE')}({variable})"
        return str(self.pick(*LITERALS[:5], *NODES))


def make_row(names: Sequence[str], texts: Sequence[str | None]) -> Row:
    pairs = zip(names, texts, strict=True)
    return frozenset((name, *canonical(text)) for name, text in pairs if text is not None)


def canonical(text: str) -> tuple[str, Any]:
    """A term of an answer; numbers by their value, as pyoxigraph writes them in its own way."""
    match = re.fullmatch(r'"(.*)"\^\^<' + re.escape(XSD) + r"(\w+)>", text, re.DOTALL)
    if match is None:
        return ("term", text)
    value, kind = match.groups()
    if kind in ("integer", "decimal", "double", "float"):
        try:
            number = Decimal(value)
            return (kind, number.normalize() if kind == "integer" else round(number, 9).normalize())
        except InvalidOperation:
            pass
    return ("term", text)


def ask_oxigraph(store: ox.Store, query: str) -> Counter[Row] | bool:
    found = store.query(query)
    if isinstance(found, ox.QueryBoolean):
        return bool(found)
    assert isinstance(found, ox.QuerySolutions)
    names = [v.value for v in found.variables]
    return Counter(make_row(names, [None if t is None else str(t) for t in row]) for row in found)
