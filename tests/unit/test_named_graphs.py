"""Named graphs: in by N-Quads, TriG, rdflib and pyoxigraph, in rules, through stores and changes, and out again."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
import pytest
import rdflib

from hdlog.operations.stores import load
from tests.engines import ON_SPARK, Reasoner, settings
from tests.shell import call

RULES = """
PREFIX e: <http://e/>
e:said[?s, ?g] :- e:p[?s, ?o] ?g .
e:agreed[?s, ?o] :- e:p[?s, ?o] ?g, e:p[?s, ?o] ?h, FILTER(?g < ?h) .
e:p[?s, ?o] e:all :- e:p[?s, ?o] .
e:Thing[?s] ?g :- [?s, ?p, ?o] ?g .
"""
QUADS = """<http://e/a> <http://e/p> <http://e/b> <http://e/g1> .
<http://e/a> <http://e/p> <http://e/b> <http://e/g2> .
<http://e/a> <http://e/p> "x"@en <http://e/g1> .
<http://e/c> <http://e/p> <http://e/d> .
<http://e/c> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/C> <http://e/g2> .
<http://e/c> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> _:odd _:graph .
"""
DERIVED = {
    "<http://e/a> <http://e/said> <http://e/g1>",
    "<http://e/a> <http://e/said> <http://e/g2>",
    "<http://e/a> <http://e/agreed> <http://e/b>",
    "<http://e/c> <http://e/p> <http://e/d> <http://e/all>",
    "<http://e/c> <http://e/said> <http://e/all>",
}
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
THINGS = {f"<http://e/{s}> {TYPE} <http://e/Thing> {g}" for s, g in [("a", "<http://e/g1>"), ("a", "<http://e/g2>"), ("c", "<http://e/g2>"), ("c", "<http://e/all>"), ("c", "_:node")]}  # fmt: skip


def lines(data: bytes | str, form: ox.RdfFormat = ox.RdfFormat.N_QUADS) -> set[str]:
    """Quads, all blank nodes as one."""
    found = set()
    for quad in ox.parse(data.encode() if isinstance(data, str) else data, format=form):
        graph = [] if isinstance(quad.graph_name, ox.DefaultGraph) else [quad.graph_name]
        terms = ["_:node" if isinstance(t, ox.BlankNode) else str(t) for t in (*quad.triple, *graph)]
        found.add(" ".join(terms))
    return found


EXPECTED = lines(QUADS) | DERIVED | THINGS


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "rules.dlog").write_text(RULES)
    (tmp_path / "data.nq").write_text(QUADS)
    quads = ox.parse(QUADS.encode(), format=ox.RdfFormat.N_QUADS)
    (tmp_path / "data.trig").write_bytes(ox.serialize(quads, format=ox.RdfFormat.TRIG) or b"")
    return tmp_path


@pytest.mark.parametrize("name", ["data.nq", "data.trig"])
def test_through_a_store_from_the_shell(files: Path, name: str) -> None:
    if ON_SPARK:
        pytest.skip("commands choose their engine")
    store = files / "store"
    call("materialise", files / "rules.dlog", files / name, "--store", store)
    for form, kind in (("nq", ox.RdfFormat.N_QUADS), ("trig", ox.RdfFormat.TRIG)):
        out = files / f"out.{form}"
        call("export", store, "--format", form, "--out", out)
        written = out if out.is_file() else next(out.glob("*"))
        assert lines(written.read_bytes(), kind) == EXPECTED
    (files / "gone.nq").write_text(QUADS.splitlines()[1] + "\n")
    change = call("update", store, "--delete", files / "gone.nq").stdout
    gone = {line[2:].removesuffix(" .") for line in change.splitlines() if line[0] == "-"}
    assert gone == {
        "<http://e/a> <http://e/p> <http://e/b> <http://e/g2>",
        "<http://e/a> <http://e/said> <http://e/g2>",
        "<http://e/a> <http://e/agreed> <http://e/b>",
        f"<http://e/a> {TYPE} <http://e/Thing> <http://e/g2>",
    }
    # What one store prints, another takes.
    again = files / "again"
    call("load", files / name, "--store", again)
    (files / "change.txt").write_text(
        "\n".join(x for x in change.splitlines() if "/p>" in x and x[0] == "-") + "\n"
    )
    call("update", again, "--from", files / "change.txt")
    call("rules", again, "--add", files / "rules.dlog")
    call("export", again, "--format", "nq", "--out", files / "again.nq")
    call("export", store, "--format", "nq", "--out", files / "store.nq")
    found, expected = (
        lines((path if path.is_file() else next(path.glob("*"))).read_bytes())
        for path in (files / "again.nq", files / "store.nq")
    )
    assert found == expected == EXPECTED - gone


def shown(reasoner: Reasoner) -> set[str]:
    found = set()
    for predicate in reasoner.core.predicates():
        facts = reasoner.core.facts(predicate)
        columns = reasoner.core.decode(predicate, facts).texts()
        for terms in zip(*columns, strict=True):
            plain = predicate.without_graph()
            graph = [terms[-1]] if predicate.has_graph else []
            own = (
                [terms[0], TYPE, f"<{plain.name}>"]
                if plain.arity == 1
                else [terms[0], f"<{plain.name}>", terms[1]]
            )
            found.add(" ".join("_:node" if t.startswith("_:") else t for t in [*own, *graph]))
    return found


def test_from_pyoxigraph(files: Path) -> None:
    reasoner = Reasoner(RULES)
    store = ox.Store()
    store.load(QUADS.encode(), format=ox.RdfFormat.N_QUADS)
    reasoner.update(add=store)
    assert shown(reasoner) == EXPECTED


def test_from_rdflib(files: Path) -> None:
    reasoner = Reasoner(RULES)
    dataset = rdflib.Dataset()
    dataset.parse(data=QUADS, format="nquads")
    reasoner.update(add=dataset)
    assert shown(reasoner) == EXPECTED


def test_from_files(files: Path) -> None:
    reasoner = Reasoner(RULES)
    reasoner.update(add=str(files / "data.nq"))
    assert shown(reasoner) == EXPECTED
    reasoner.update(delete=str(files / "data.nq"))
    assert len(reasoner) == 0


def test_through_the_loader(files: Path) -> None:
    load(files / "store", [str(files / "data.nq")], settings())
    out = files / "out.nq"
    call("export", files / "store", "--format", "nq", "--out", out)
    written = out if out.is_file() else next(out.glob("*"))
    assert lines(written.read_bytes()) == lines(QUADS)
