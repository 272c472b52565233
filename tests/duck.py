"""A second evaluator, for tens of thousands of facts: DuckDB, one SQL query a rule, to a fixpoint; with derivation counts.

For programs of atoms, negated atoms and comparisons, all values integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import duckdb
import numpy as np
import pyarrow as pa

from hdlog.program.dependencies import DependencyGraph
from hdlog.program.model import Atom, Call, Filter, Negation, Predicate, Program, Rule
from hdlog.program.terms import Literal, Term, Variable

Rows = set[tuple[int, ...]]
_OPERATORS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class Duck:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.connection = duckdb.connect()
        self.connection.execute("SET threads = 2")

    def materialise(self, given: Mapping[Predicate, Rows]) -> dict[Predicate, Rows]:
        for predicate in dict.fromkeys((*self.program.predicates, *given)):
            names = ", ".join(f"c{i} BIGINT" for i in range(predicate.arity))
            self.connection.execute(f'CREATE OR REPLACE TABLE "{predicate}" ({names})')
            rows = given.get(predicate)
            if rows:
                table = pa.table({f"c{i}": np.array(c) for i, c in enumerate(zip(*rows, strict=True))})
                self.connection.register("given", table)
                self.connection.execute(f'INSERT INTO "{predicate}" SELECT * FROM given')
        for component in DependencyGraph(self.program).components:
            rules = [self.program.rules[n] for n in component.rules]
            while sum(map(self._apply, rules)) and component.recursive:
                pass
        return {p: self._rows(p) for p in dict.fromkeys((*self.program.predicates, *given))}

    def derivations(self) -> dict[tuple[Predicate, tuple[int, ...]], int]:
        """How often each fact is derived, by all rules and heads."""
        found: dict[tuple[Predicate, tuple[int, ...]], int] = {}
        for rule in self.program.rules:
            for head in rule.heads:
                columns, rest = self._body(rule, head)
                group = ", ".join(str(i + 1) for i in range(len(head.terms)))
                query = f"SELECT {columns}, count(*) {rest} GROUP BY {group}"
                for *row, count in self.connection.execute(query).fetchall():
                    key = (head.predicate, tuple(row))
                    found[key] = found.get(key, 0) + count
        return found

    def _apply(self, rule: Rule) -> int:
        """How many facts are new."""
        new = 0
        for head in rule.heads:
            columns, rest = self._body(rule, head)
            table = f'"{head.predicate}"'
            before = self._count(table)
            self.connection.execute(
                f"INSERT INTO {table} SELECT {columns} {rest} EXCEPT SELECT * FROM {table}"
            )
            new += self._count(table) - before
        return new

    def _count(self, table: str) -> int:
        found = self.connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert found is not None
        return int(found[0])

    def _body(self, rule: Rule, head: Atom) -> tuple[str, str]:
        """The columns of a head, and what they are selected from."""
        bound: dict[str, str] = {}
        conditions: list[str] = []
        tables = []
        for number, atom in enumerate(rule.atoms()):
            tables.append(f'"{atom.predicate}" a{number}')
            conditions += _matched(atom.terms, f"a{number}", bound)
        for item in rule.body:
            if isinstance(item, Filter) and isinstance(item.condition, Call):
                left, right = (_value(t, bound) for t in item.condition.arguments)  # type: ignore[arg-type]
                conditions.append(f"{left} {_OPERATORS[item.condition.function]} {right}")
            elif isinstance(item, Negation):
                (negated,) = item.body
                assert isinstance(negated, Atom)
                inner = " AND ".join(f"n.c{i} = {_value(t, bound)}" for i, t in enumerate(negated.terms))
                conditions.append(f'NOT EXISTS (SELECT 1 FROM "{negated.predicate}" n WHERE {inner})')
        columns = ", ".join(f"{_value(t, bound)}" for t in head.terms)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return columns, f"FROM {', '.join(tables)}{where}"

    def _rows(self, predicate: Predicate) -> Rows:
        return set(self.connection.execute(f'SELECT * FROM "{predicate}"').fetchall())


def _matched(terms: Iterable[Term], table: str, bound: dict[str, str]) -> list[str]:
    conditions = []
    for i, term in enumerate(terms):
        column = f"{table}.c{i}"
        if isinstance(term, Variable) and term.name not in bound:
            bound[term.name] = column
        else:
            conditions.append(f"{column} = {_value(term, bound)}")
    return conditions


def _value(term: Term, bound: Mapping[str, str]) -> str:
    if isinstance(term, Variable):
        return bound[term.name]
    assert isinstance(term, Literal)
    return term.lexical
