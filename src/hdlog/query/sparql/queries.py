"""Queries in SPARQL 1.1: SELECT, ASK, CONSTRUCT, DESCRIBE."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from hdlog.program.terms import Iri, Variable
from hdlog.query.algebra import Match, Node, Selection, names_of
from hdlog.query.sparql.parsing import is_variable, parse, part, refuse
from hdlog.query.sparql.patterns import Dataset, Translation, Triple

Form = Literal["select", "ask", "construct", "describe"]
KEYWORDS = re.compile(
    r"(?:\s|#[^\n]*\n|prefix\s[^<]*<[^>]*>|base\s*<[^>]*>)*(select|ask|construct|describe)\b", re.IGNORECASE
)
"""What a query in SPARQL begins with."""


@dataclass(frozen=True)
class SparqlQuery:
    form: Form
    selection: Selection
    template: tuple[Triple, ...] = ()
    """of a CONSTRUCT; blank nodes are new ones for each answer"""
    described: tuple[Iri, ...] = ()
    """IRIs that a DESCRIBE names"""


def is_sparql(text: str) -> bool:
    """Whether a query is in SPARQL, and not a rule body."""
    return KEYWORDS.match(text) is not None


def parse_sparql(text: str, prefixes: Mapping[str, str]) -> SparqlQuery:
    """A query; `prefixes` are those it need not declare."""
    if "now" in text.lower():  # the time is that of the query
        return _translate(text, tuple(prefixes.items()))
    return _translate_once(text, tuple(prefixes.items()))


def _translate(text: str, prefixes: tuple[tuple[str, str], ...]) -> SparqlQuery:
    parsed, algebra = parse(text, dict(prefixes))
    kind = algebra.name
    dataset = Dataset.read(algebra.datasetClause)
    translation = Translation(dataset)
    match kind:
        case "SelectQuery":
            everything = part(parsed[1], "projection") is None
            selection = translation.selection(algebra.p)
            if everything:
                selection = replace(selection, names=_names_in_order(text, selection.node))
            return SparqlQuery("select", selection)
        case "AskQuery":
            node = translation.selection(algebra.p).node
            return SparqlQuery("ask", Selection(node, (), distinct=True, length=1))
        case "ConstructQuery":
            selection = translation.selection(algebra.p)
            template = tuple(translation.template(algebra.template or own_triples(algebra.p)))
            names = tuple(
                dict.fromkeys(t.name for triple in template for t in triple if isinstance(t, Variable))
            )
            return SparqlQuery("construct", replace(selection, names=names), template)
        case "DescribeQuery":
            return _describe(algebra, translation)
    raise refuse(f"{kind} is not supported")


_translate_once = lru_cache(maxsize=256)(_translate)
"""Parsing takes rdflib milliseconds, and who asks in a loop asks the same."""


def _describe(algebra: Any, translation: Translation) -> SparqlQuery:
    named = tuple(Iri(str(v)) for v in algebra.PV if not is_variable(v))
    names = tuple(str(v) for v in algebra.PV if is_variable(v))
    if algebra.p is None:
        return SparqlQuery("describe", Selection(Match(()), ()), described=named)
    selection = translation.selection(algebra.p)
    return SparqlQuery("describe", replace(selection, names=names, distinct=True), described=named)


def _names_in_order(text: str, node: Node) -> tuple[str, ...]:
    """The names of a query for everything, in the order of its text."""
    written = dict.fromkeys(re.findall(r"[?$](\w+)", text))
    known = names_of(node)
    return tuple(name for name in written if name in known)


def own_triples(node: Any) -> Any:
    """The template of CONSTRUCT WHERE is its pattern."""
    while node.name != "BGP":
        node = node.p
    return node.triples
