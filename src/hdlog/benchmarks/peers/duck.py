"""DuckDB as a Datalog engine: semi-naive loops over SQL, from columns of ids to numbers of facts."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa
from numpy.typing import NDArray

from hdlog.benchmarks.data import exp
from hdlog.benchmarks.peers.numbers import Tables, make_signed
from hdlog.program.dependencies import DependencyGraph
from hdlog.program.model import Atom, Call, Expression, Filter, Negation, Predicate, Program, Rule
from hdlog.program.terms import Literal, Variable

Counts = dict[str, int]
OPERATORS = {"Minus": "-", "Plus": "+", "Times": "*"}
COMPARISONS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_MANY = 1 << 32
"""More than there are ids of instances."""


def run(benchmark: str, program: Program, tables: Tables) -> tuple[float, int]:
    """Seconds, loading included, and facts."""
    if benchmark == "exp":
        counts, seconds = expressions(tables)
        return seconds, sum(counts.values())
    single = Program(tuple(Rule((head,), rule.body) for rule in program.rules for head in rule.heads))
    with connect() as connection:
        known = DuckLoop(single, connection)
        seconds, facts = known.run(tables)
    return seconds, facts + sum(len(c[0]) for p, c in tables.items() if p not in known.names)


def local_name(predicate: Predicate) -> str:
    return predicate.name.split("#")[-1]


@contextmanager
def connect(threads: int = 2, memory: str = "14GB") -> Iterator[duckdb.DuckDBPyConnection]:
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        connection.execute(
            f"set threads={threads}; set memory_limit='{memory}'; set temp_directory='{folder}'"
        )
        yield connection


def load(connection: duckdb.DuckDBPyConnection, name: str, columns: list[NDArray[Any]]) -> None:
    """A new table of numbers with columns c0, c1, ..."""
    connection.register("arrow", pa.table({f"c{i}": make_signed(c) for i, c in enumerate(columns)}))
    connection.execute(f'create table "{name}" as select * from arrow')
    connection.unregister("arrow")


def count(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    (rows,) = connection.execute(f"select count(*) from {query}").fetchone() or (0,)
    return int(rows)


class DuckLoop:
    """Component by component; in a recursive one each rule once for each atom of the component, on its delta."""

    def __init__(self, program: Program, connection: duckdb.DuckDBPyConnection | None = None) -> None:
        self.connection = connection or duckdb.connect()
        self.graph = DependencyGraph(program)
        self.program = program
        self.names = {p: f"t{i}" for i, p in enumerate(self.graph.predicates)}
        for predicate, name in self.names.items():
            columns = ", ".join(f"c{i} integer" for i in range(predicate.arity))
            self.connection.execute(f"create table {name}({columns})")

    def run(self, tables: Tables) -> tuple[float, int]:
        """Seconds, loading included, and facts of the program's predicates."""
        start = time.perf_counter()
        for predicate, columns in tables.items():
            if predicate in self.names:
                arrow = pa.table({f"c{i}": make_signed(c) for i, c in enumerate(columns)})
                self.connection.register("arrow", arrow)
                self.connection.execute(f"insert into {self.names[predicate]} select distinct * from arrow")
        for component in self.graph.components:
            rules = [self.program.rules[n] for n in component.rules]
            if rules:
                self.component(component.predicates, rules, component.recursive)
        facts = sum(self.counts().values())
        return time.perf_counter() - start, facts

    def counts(self) -> Counts:
        return {predicate.name: count(self.connection, name) for predicate, name in self.names.items()}

    def component(self, predicates: tuple[Predicate, ...], rules: list[Rule], recursive: bool) -> None:
        for p in predicates:
            self.connection.execute(
                f"create or replace table d_{self.names[p]} as select * from {self.names[p]}"
            )
        first = True
        while True:
            new = 0
            for p in predicates:
                parts = [s for r in rules for s in self.selects(r, p, predicates, first)]
                name = self.names[p]
                if not parts:
                    self.connection.execute(
                        f"create or replace table n_{name} as select * from {name} limit 0"
                    )
                    continue
                query = " union ".join(parts)
                self.connection.execute(
                    f"create or replace table n_{name} as {query} except select * from {name}"
                )
            for p in predicates:
                name = self.names[p]
                self.connection.execute(f"insert into {name} select * from n_{name}")
                self.connection.execute(f"create or replace table d_{name} as select * from n_{name}")
                new += count(self.connection, f"n_{name}")
            if not new or not recursive:
                return
            first = False

    def selects(self, rule: Rule, head: Predicate, inside: tuple[Predicate, ...], first: bool) -> list[str]:
        (target,) = rule.heads
        if target.predicate != head:
            return []
        if first:
            return [self.select(target, rule, -1)]
        atoms = rule.atoms()
        return [self.select(target, rule, i) for i, a in enumerate(atoms) if a.predicate in inside]

    def select(self, head: Atom, rule: Rule, delta: int) -> str:
        """A body of atoms, negated atoms and comparisons as a query."""
        places: dict[str, str] = {}
        tables, conditions = [], []
        for i, atom in enumerate(rule.atoms()):
            tables.append(f"{'d_' if i == delta else ''}{self.names[atom.predicate]} a{i}")
            conditions += self._agree(atom, f"a{i}", places)
        for item in rule.body:
            if isinstance(item, Filter):
                assert isinstance(item.condition, Call)
                left, right = (_value(e, places) for e in item.condition.arguments)
                conditions.append(f"{left} {COMPARISONS[item.condition.function]} {right}")
            elif isinstance(item, Negation):
                (atom,) = (a for a in item.body if isinstance(a, Atom))
                same = self._agree(atom, "n", dict(places))
                where = f" where {' and '.join(same)}" if same else ""
                conditions.append(f"not exists (select 1 from {self.names[atom.predicate]} n{where})")
        wanted = ", ".join(f"{_value(t, places)} as c{i}" for i, t in enumerate(head.terms))
        where = f" where {' and '.join(conditions)}" if conditions else ""
        return f"select distinct {wanted} from {', '.join(tables)}{where}"

    def _agree(self, atom: Atom, alias: str, places: dict[str, str]) -> list[str]:
        """What holds of a fact that matches an atom; new variables get their places."""
        conditions = []
        for column, term in enumerate(atom.terms):
            place = f"{alias}.c{column}"
            if not isinstance(term, Variable):
                conditions.append(f"{place} = {_value(term, places)}")
            elif not term.is_wildcard:
                if term.name in places:
                    conditions.append(f"{places[term.name]} = {place}")
                places.setdefault(term.name, place)
        return conditions


def _value(expression: Expression, places: dict[str, str]) -> str:
    if isinstance(expression, Variable):
        return places[expression.name]
    assert isinstance(expression, Literal), "numbers and variables"
    return expression.lexical


def expressions(tables: Tables) -> tuple[Counts, float]:
    """Exp by a loop of its own; the evaluation of a node in an instance is the number node * K + instance.

    The three facts of an evaluation come in the same round, so the new ones among evaluations are delta enough.
    """
    start = time.perf_counter()
    with connect() as connection:
        for predicate, columns in tables.items():
            load(connection, local_name(predicate), columns)
        connection.execute(
            "alter table eval alter c1 type bigint; alter table instance alter c0 type bigint;"
            "alter table value alter c0 type bigint"
        )
        connection.execute("create table delta as select * from eval")
        while count(connection, "delta"):
            sides = (("delta", "eval"), ("eval", "delta"))
            query = " union ".join(evaluate(kind, *side, _MANY) for kind in OPERATORS for side in sides)
            connection.execute(
                f"create or replace table new as select * from ({query}) f where not exists "
                "(select 1 from eval e where e.c0 = f.node and e.c1 = f.here)"
            )
            connection.execute("insert into eval select node, here from new")
            connection.execute("insert into instance select here, i from new")
            connection.execute("insert into value select here, v from new")
            connection.execute("create or replace table delta as select node as c0, here as c1 from new")
        counts = {p.name: count(connection, local_name(p)) for p in tables}
    return counts, time.perf_counter() - start


def evaluate(kind: str, first: str, second: str, factor: int) -> str:
    """One rule as a query, with the tables that stand for the evaluations of its operands."""
    return (
        f"select k.c0 as node, k.c0::bigint * {factor} + i.c1 as here, i.c1 as i, "
        f"x.c1 {OPERATORS[kind]} y.c1 as v "
        f"from hasType k, hasLhs l, hasRhs r, {first} p, instance i, value x, {second} q, instance j, value y "
        f"where k.c1 = {exp.KINDS.index(kind)} and l.c0 = k.c0 and r.c0 = k.c0 "
        "and p.c0 = l.c1 and i.c0 = p.c1 and x.c0 = p.c1 "
        "and q.c0 = r.c1 and j.c0 = q.c1 and y.c0 = q.c1 and i.c1 = j.c1"
    )
