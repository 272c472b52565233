"""DuckDB's best plans for rules that need no loop: columns of ids to the number of facts by predicate, and seconds, loading
included."""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Mapping

import duckdb
import numpy as np
from numpy.typing import NDArray

from hdlog.benchmarks.data import collaborators, exp, graph
from hdlog.benchmarks.data.dataset import Dataset
from hdlog.benchmarks.peers.duck import DuckLoop, connect, count, expressions, load
from hdlog.program.model import Predicate
from hdlog.text import parse

Ids = NDArray[np.uint32]
Counts = dict[str, int]


def duck_collaborators(made: Dataset) -> tuple[Counts, float]:
    """The running example, by the loop."""
    with connect() as connection:
        seconds, counts = DuckLoop(parse(made.rules)).run(connection, made.tables)
    return counts, seconds


def duck_cyclic(
    tables: Mapping[Predicate, list[Ids]], shapes: tuple[graph.Shape, ...] = graph.SHAPES
) -> tuple[Counts, float]:
    """The cyclic rules, one after the other; their heads are tables at the end.

    The matches of a body pass by once, and each goes to the groups of every head. On 8,000 vertices that took
    95 s; a query for each head 147 s; a table of all matches 30 s a rule and up to 6 GB, the flower over 100 s.
    """
    start = time.perf_counter()
    with connect() as connection:
        for label in sorted({label for shape in shapes for label, _, _ in shape.body}):
            load(connection, f"e{label}", tables[graph.edge(label)])
        for shape in shapes:
            pass_once(connection, shape)
        counts = {name: count(connection, name) for shape in shapes for name in shape.head_names()}
    return counts, time.perf_counter() - start


def pass_once(connection: duckdb.DuckDBPyConnection, shape: graph.Shape) -> None:
    """Heads share no variable, so a row of the groups belongs to the head whose columns it has."""
    places, source = matches(shape)
    variables = [v for pair in shape.heads for v in pair]
    assert len(variables) == len(set(variables))
    columns = ", ".join(f"{places[v]} as v{v}" for v in variables)
    sets = ", ".join(f"({places[x]}, {places[y]})" for x, y in shape.heads)
    connection.execute(
        f"create temp table pairs as select {columns} {source} group by grouping sets ({sets})"
    )
    for name, (x, y) in zip(shape.head_names(), shape.heads, strict=True):
        connection.execute(f"create table {name} as select v{x}, v{y} from pairs where v{x} is not null")
    connection.execute("drop table pairs")


def matches(shape: graph.Shape) -> tuple[dict[int, str], str]:
    """The place of each variable, and the join of the body as the end of a query."""
    places: dict[int, str] = {}
    conditions = []
    for i, (_, *ends) in enumerate(shape.body):
        for column, variable in enumerate(ends):
            place = f"a{i}.c{column}"
            if variable in places:
                conditions.append(f"{places[variable]} = {place}")
            places.setdefault(variable, place)
    source = ", ".join(f"e{label} a{i}" for i, (label, _, _) in enumerate(shape.body))
    return places, f"from {source} where {' and '.join(conditions)}"


BENCHMARKS: dict[str, Callable[[], tuple[Counts, float]]] = {
    "collaborators": lambda: duck_collaborators(collaborators.generate()),
    "cyclic": lambda: duck_cyclic(graph.generate()),
    "expressions": lambda: expressions(exp.generate().tables),
}


def main() -> None:
    """One benchmark at its default size, so that the peak of memory is its own."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("benchmark", choices=BENCHMARKS)
    counts, seconds = BENCHMARKS[parser.parse_args().benchmark]()
    for name, facts in counts.items():
        print(f"{name}: {facts:,}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{seconds:.2f} s, peak {peak:.1f} GB")


if __name__ == "__main__":
    main()
