"""Queries beside pyoxigraph, on the same facts: LUBM's fourteen over ten universities, and cyclic patterns over a graph with hubs.

    python -m hdlog.benchmarks.micro.queries

Both have the facts in memory, materialised; what is timed is asking, from the text to all answers.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyoxigraph as ox

from hdlog import Reasoner
from hdlog.benchmarks.data import lubm, univ_bench
from hdlog.benchmarks.data.writing import write_files
from hdlog.writing.files import write_triples

UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
DEPARTMENT = "<http://www.Department0.University0.edu/{}>"
PREFIX = f"PREFIX ub: <{UB}> "
LUBM = {
    1: "SELECT ?x { ?x a ub:GraduateStudent . ?x ub:takesCourse "
    + DEPARTMENT.format("GraduateCourse0")
    + " }",
    2: "SELECT ?x ?y ?z { ?x a ub:GraduateStudent . ?y a ub:University . ?z a ub:Department . ?x ub:memberOf ?z . "
    "?z ub:subOrganizationOf ?y . ?x ub:undergraduateDegreeFrom ?y }",
    3: "SELECT ?x { ?x a ub:Publication . ?x ub:publicationAuthor "
    + DEPARTMENT.format("AssistantProfessor0")
    + " }",
    4: "SELECT ?x ?y1 ?y2 ?y3 { ?x a ub:Professor . ?x ub:worksFor <http://www.Department0.University0.edu> . ?x ub:name ?y1 . "
    "?x ub:emailAddress ?y2 . ?x ub:telephone ?y3 }",
    5: "SELECT ?x { ?x a ub:Person . ?x ub:memberOf <http://www.Department0.University0.edu> }",
    6: "SELECT ?x { ?x a ub:Student }",
    7: "SELECT ?x ?y { ?x a ub:Student . ?y a ub:Course . ?x ub:takesCourse ?y . "
    + DEPARTMENT.format("AssociateProfessor0")
    + " ub:teacherOf ?y }",
    8: "SELECT ?x ?y ?z { ?x a ub:Student . ?y a ub:Department . ?x ub:memberOf ?y . "
    "?y ub:subOrganizationOf <http://www.University0.edu> . ?x ub:emailAddress ?z }",
    9: "SELECT ?x ?y ?z { ?x a ub:Student . ?y a ub:Faculty . ?z a ub:Course . ?x ub:advisor ?y . ?y ub:teacherOf ?z . ?x ub:takesCourse ?z }",
    10: "SELECT ?x { ?x a ub:Student . ?x ub:takesCourse " + DEPARTMENT.format("GraduateCourse0") + " }",
    11: "SELECT ?x { ?x a ub:ResearchGroup . ?x ub:subOrganizationOf <http://www.University0.edu> }",
    12: "SELECT ?x ?y { ?x a ub:Chair . ?y a ub:Department . ?x ub:worksFor ?y . ?y ub:subOrganizationOf <http://www.University0.edu> }",
    13: "SELECT ?x { ?x a ub:Person . <http://www.University0.edu> ub:hasAlumnus ?x }",
    14: "SELECT ?x { ?x a ub:UndergraduateStudent }",
}
CYCLIC = {
    "triangles": "SELECT (COUNT(*) AS ?n) { ?a <u:e> ?b . ?b <u:e> ?c . ?c <u:e> ?a }",
    "4-cycles": "SELECT (COUNT(*) AS ?n) { ?a <u:e> ?b . ?b <u:e> ?c . ?c <u:e> ?d . ?d <u:e> ?a }",
    "diamonds": "SELECT (COUNT(*) AS ?n) { ?a <u:e> ?b . ?a <u:e> ?c . ?b <u:e> ?d . ?c <u:e> ?d . ?b <u:e> ?c }",
    "ends of triangles": "SELECT DISTINCT ?a ?b { ?a <u:e> ?b . ?b <u:e> ?c . ?c <u:e> ?a }",
}


def best(run: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    times, found = [], None
    for _ in range(repeat):
        start = time.perf_counter()
        found = run()
        times.append(time.perf_counter() - start)
    return min(times), found


def ask_hdlog(reasoner: Reasoner, query: str) -> list[Any]:
    return list(reasoner.sparql(query).terms())


def ask_oxigraph(store: ox.Store, query: str) -> list[Any]:
    found = store.query(query)
    assert isinstance(found, ox.QuerySolutions)
    return [tuple(row) for row in found]


def compare(reasoner: Reasoner, store: ox.Store, queries: dict[Any, str], repeat: int) -> None:
    total = [0.0, 0.0]
    for name, query in queries.items():
        ours, rows = best(lambda q=query: ask_hdlog(reasoner, q), repeat)  # type: ignore[misc]
        theirs, others = best(lambda q=query: ask_oxigraph(store, q), 1 if repeat == 1 else min(repeat, 2))  # type: ignore[misc]
        assert len(rows) == len(others), (name, len(rows), len(others))
        if len(rows) == 1 and len(rows[0]) == 1:
            assert rows[0][0].lexical == others[0][0].value, (rows, others)
        total[0] += ours
        total[1] += theirs
        print(
            f"{name}: {len(rows):,} answers, {1e3 * ours:.1f} ms; pyoxigraph {1e3 * theirs:.1f} ms, "
            f"{theirs / ours:.1f} times as long",
            flush=True,
        )
    print(
        f"in all: {total[0]:.3f} s; pyoxigraph {total[1]:.3f} s, {total[1] / total[0]:.1f} times as long",
        flush=True,
    )


def lubm_queries(repeat: int, universities: int) -> None:
    with TemporaryDirectory() as folder:
        made = lubm.generate(universities)
        write_files(made, Path(folder), "nt")
        (path,) = Path(folder).rglob("*.nt")
        reasoner = Reasoner(univ_bench.rules())
        reasoner.update(add=path)
    store = ox.Store()
    text = io.BytesIO()
    write_triples([reasoner.facts(p).sheet(p) for p in reasoner.counts()], text)
    store.bulk_load(text.getvalue(), format=ox.RdfFormat.N_TRIPLES)
    print(f"LUBM, {universities} universities, {len(store):,} triples materialised")
    compare(reasoner, store, {f"query {n}": PREFIX + q for n, q in LUBM.items()}, repeat)


def cyclic_queries(repeat: int, edges: int) -> None:
    chance = np.random.default_rng(1)
    nodes = edges // 8
    ends = (nodes * chance.random((edges, 2)) ** 2.2).astype(np.int64)
    pairs = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    reasoner = Reasoner()
    lines = "".join(f"<u:{a}> <u:e> <u:{b}> .\n" for a, b in pairs.tolist())
    with TemporaryDirectory() as folder:
        (Path(folder) / "g.nt").write_text(lines)
        reasoner.update(add=Path(folder) / "g.nt")
    store = ox.Store()
    store.bulk_load(lines.encode(), format=ox.RdfFormat.N_TRIPLES)
    print(f"a graph with hubs, {len(pairs):,} edges, {nodes:,} nodes")
    compare(reasoner, store, CYCLIC, repeat)


def lookups(facts: int) -> None:
    """Prepared look-ups on many facts."""
    reasoner = Reasoner()
    chance = np.random.default_rng(1)
    import pyarrow as pa

    pairs = chance.integers(0, facts // 4, (facts, 2))
    reasoner.update(add={"edge": pa.table({"x": pairs[:, 0], "y": pairs[:, 1]})})
    for name, query in (
        ("successors", "?y <- edge[?x, ?y]"),
        ("two steps", "?z <- edge[?x, ?y], edge[?y, ?z]"),
    ):
        prepared = reasoner.prepare(query, "x")
        wanted = pairs[:2000, 0].tolist()
        prepared(x=wanted[0])
        start = time.perf_counter()
        found = sum(len(list(prepared(x=x))) for x in wanted)
        seconds = time.perf_counter() - start
        print(
            f"{len(reasoner):,} facts, {name}: {len(wanted) / seconds:,.0f} look-ups a second, {found:,} answers in all"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--universities", type=int, default=10)
    parser.add_argument("--edges", type=int, default=200_000)
    parser.add_argument("--facts", type=int, default=10_000_000)
    parser.add_argument("--only", choices=("lubm", "cyclic", "lookups"))
    arguments = parser.parse_args()
    if arguments.only in (None, "lubm"):
        lubm_queries(arguments.repeat, arguments.universities)
    if arguments.only in (None, "cyclic"):
        cyclic_queries(arguments.repeat, arguments.edges)
    if arguments.only in (None, "lookups"):
        lookups(arguments.facts)


if __name__ == "__main__":
    main()
