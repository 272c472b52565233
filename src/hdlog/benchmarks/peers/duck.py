"""DuckDB as a Datalog engine: semi-naive loops over SQL, from columns of ids to numbers of facts."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa
from numpy.typing import NDArray

from hdlog.benchmarks.data import exp
from hdlog.benchmarks.peers.duck_script import Loop, Script, execute
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
    known = DuckLoop(single)
    with connect() as connection:
        seconds, counts = known.run(connection, tables)
    return seconds, sum(counts.values()) + sum(len(c[0]) for p, c in tables.items() if p not in known.names)


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

    def __init__(self, program: Program) -> None:
        self.graph = DependencyGraph(program)
        self.program = program
        self.names = {p: f"t{i}" for i, p in enumerate(self.graph.predicates)}

    def run(self, connection: duckdb.DuckDBPyConnection, tables: Tables) -> tuple[float, Counts]:
        """Seconds, loading included, and facts of the program's predicates."""
        start = time.perf_counter()
        for predicate, columns in tables.items():
            if predicate in self.names:
                load(connection, self.names[predicate], columns)
        counts = execute(connection, self.script())
        return time.perf_counter() - start, counts

    def script(self) -> Script:
        """For tables that are there, as far as predicates have facts given, each fact once."""
        loops = [Loop([self._create(p) for p in self.names])]
        for component in self.graph.components:
            rules = [self.program.rules[n] for n in component.rules]
            if rules:
                loops.append(self._loop(component.predicates, rules, component.recursive))
        return Script(loops, {p.name: f"select count(*) from {name}" for p, name in self.names.items()})

    def _create(self, predicate: Predicate) -> str:
        columns = ", ".join(f"c{i} integer" for i in range(predicate.arity))
        return f"create table if not exists {self.names[predicate]}({columns})"

    def _loop(self, predicates: tuple[Predicate, ...], rules: list[Rule], recursive: bool) -> Loop:
        names = [self.names[p] for p in predicates]
        counts = " + ".join(f"(select count(*) from n_{name})" for name in names)
        return Loop(
            [f"create or replace table d_{name} as select * from {name}" for name in names],
            self._round(predicates, rules, first=True),
            self._round(predicates, rules, first=False) if recursive else [],
            f"select {counts}",
        )

    def _round(self, predicates: tuple[Predicate, ...], rules: list[Rule], first: bool) -> list[str]:
        statements = []
        for p in predicates:
            name = self.names[p]
            parts = [s for r in rules for s in self.selects(r, p, predicates, first)]
            derived = " union ".join(parts) or f"select * from {name} limit 0"
            statements.append(
                f"create or replace table n_{name} as select * from ({derived}) except select * from {name}"
            )
        for p in predicates:
            name = self.names[p]
            statements.append(f"insert into {name} select * from n_{name}")
            statements.append(f"create or replace table d_{name} as select * from n_{name}")
        return statements

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
    """Exp by a loop of its own."""
    start = time.perf_counter()
    with connect() as connection:
        for predicate, columns in tables.items():
            load(connection, local_name(predicate), columns)
        counts = execute(connection, expression_script({p.name: local_name(p) for p in tables}))
    return counts, time.perf_counter() - start


def expression_script(names: Mapping[str, str]) -> Script:
    """Exp over tables that are there. The evaluation of a node in an instance is the number node * K + instance.

    The three facts of an evaluation come in the same round, so the new ones among evaluations are delta enough.
    """
    sides = (("delta", "eval"), ("eval", "delta"))
    query = " union ".join(evaluate(kind, *side, _MANY) for kind in OPERATORS for side in sides)
    again = [
        f"create or replace table new as select * from ({query}) f where not exists "
        "(select 1 from eval e where e.c0 = f.node and e.c1 = f.here)",
        "insert into eval select node, here from new",
        "insert into instance select here, i from new",
        "insert into value select here, v from new",
        "create or replace table delta as select node as c0, here as c1 from new",
    ]
    before = [
        "alter table eval alter c1 type bigint",
        "alter table instance alter c0 type bigint",
        "alter table value alter c0 type bigint",
        "create table delta as select * from eval",
    ]
    loop = Loop(before, [], again, "select count(*) from delta")
    return Script([loop], {name: f"select count(*) from {table}" for name, table in names.items()})


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
