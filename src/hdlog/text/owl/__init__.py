"""Ontologies as rules: what OWL 2 RL says about its own classes and properties, in the RDFox dialect.

An axiom becomes rules over the classes and properties that it names, so that a reasoner never looks at the ontology again. What cannot be said in rules
is told, axiom by axiom.
"""

from __future__ import annotations

from typing import Literal

from hdlog.errors import Problem, Source
from hdlog.text.owl.axioms import Axioms
from hdlog.text.owl.graph import read_graph

Level = Literal["rdfs", "owl-rl"]


def translate(source: Source, level: Level) -> tuple[Source, list[str], list[Problem]]:
    """The rules of an ontology as a text, what of it is not in them, and what is wrong with it."""
    graph, problems = read_graph(source)
    if graph is None:
        return Source(source.name, ""), [], problems
    axioms = Axioms(graph, level)
    return Source(source.name, axioms.text()), axioms.left_out, problems
