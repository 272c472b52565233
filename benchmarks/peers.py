"""DuckDB as a Datalog engine: a hand-written semi-naive loop over SQL, for positive rules without built-ins."""

from __future__ import annotations

import time
from collections.abc import Mapping

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdlog.program.dependencies import DependencyGraph
from hdlog.program.model import Atom, Predicate, Program, Rule
from hdlog.program.terms import Variable

Ids = NDArray[np.uint32]


class DuckLoop:
    """Component by component; in a recursive one each rule once for each atom of the component, on its delta."""

    def __init__(self, program: Program) -> None:
        self.connection = duckdb.connect()
        self.graph = DependencyGraph(program)
        self.program = program
        self.names = {p: f"t{i}" for i, p in enumerate(self.graph.predicates)}
        for predicate, name in self.names.items():
            columns = ", ".join(f"c{i} integer" for i in range(predicate.arity))
            self.connection.execute(f"create table {name}({columns})")

    def run(self, tables: Mapping[Predicate, list[Ids]]) -> tuple[float, int]:
        """Seconds, loading included, and facts of the program's predicates."""
        start = time.perf_counter()
        for predicate, columns in tables.items():
            if predicate in self.names:
                arrow = pa.table({f"c{i}": c.view(np.int32) for i, c in enumerate(columns)})
                self.connection.register("arrow", arrow)
                self.connection.execute(f"insert into {self.names[predicate]} select distinct * from arrow")
        for component in self.graph.components:
            rules = [self.program.rules[n] for n in component.rules]
            if rules:
                self.component(component.predicates, rules, component.recursive)
        count = 0
        for name in self.names.values():
            (found,) = self.connection.execute(f"select count(*) from {name}").fetchone() or (0,)
            count += found
        return time.perf_counter() - start, count

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
                found = " union ".join(parts)
                self.connection.execute(
                    f"create or replace table n_{name} as {found} except select * from {name}"
                )
            for p in predicates:
                name = self.names[p]
                self.connection.execute(f"insert into {name} select * from n_{name}")
                self.connection.execute(f"create or replace table d_{name} as select * from n_{name}")
                (count,) = self.connection.execute(f"select count(*) from n_{name}").fetchone() or (0,)
                new += count
            if not new or not recursive:
                return
            first = False

    def selects(self, rule: Rule, head: Predicate, inside: tuple[Predicate, ...], first: bool) -> list[str]:
        (target,) = rule.heads
        if target.predicate != head:
            return []
        atoms = rule.atoms()
        if first:
            return [self.select(target, atoms, -1)]
        return [self.select(target, atoms, i) for i, a in enumerate(atoms) if a.predicate in inside]

    def select(self, head: Atom, atoms: tuple[Atom, ...], delta: int) -> str:
        places: dict[str, str] = {}
        tables, conditions = [], []
        for i, atom in enumerate(atoms):
            tables.append(f"{'d_' if i == delta else ''}{self.names[atom.predicate]} a{i}")
            for column, term in enumerate(atom.terms):
                assert isinstance(term, Variable)
                place = f"a{i}.c{column}"
                if term.name in places:
                    conditions.append(f"{places[term.name]} = {place}")
                places.setdefault(term.name, place)
        wanted = ", ".join(
            f"{places[t.name]} as c{i}" for i, t in enumerate(head.terms) if isinstance(t, Variable)
        )
        where = f" where {' and '.join(conditions)}" if conditions else ""
        return f"select distinct {wanted} from {', '.join(tables)}{where}"
