"""Facts in any form into facts of the engine."""

from __future__ import annotations

from typing import Any

from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.engines.columnar.facts import Facts
from hdlog.program.model import Predicate
from hdlog.program.ntriples import term_text

FactInput = Any
"""Pairs of predicate and row, a mapping from predicates to tables, an RDF graph, or files."""


def encode_facts(engine: ColumnarEngine, given: FactInput) -> dict[Predicate, Facts]:
    by_predicate: dict[Predicate, list[tuple[Any, ...]]] = {}
    for predicate, row in given:
        by_predicate.setdefault(predicate, []).append(row)
    found = {}
    for predicate, rows in by_predicate.items():
        columns = [engine.dictionary.encode([term_text(r[i]) for r in rows]) for i in range(predicate.arity)]
        found[predicate] = engine.facts_from_columns(columns, len(rows))
    return found
