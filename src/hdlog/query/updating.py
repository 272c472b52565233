"""SPARQL Update: changes of what is asserted, found by queries over what holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Generic
from urllib.parse import unquote, urlparse

import numpy as np

from hdlog.engines.encoding import Ids
from hdlog.engines.protocol import F, R, T
from hdlog.errors import HdlogError, InputError
from hdlog.program.model import GRAPH, Predicate
from hdlog.program.ntriples import is_iri
from hdlog.program.terms import RDF_TYPE, Iri, Term, Variable
from hdlog.query.evaluation import Evaluation
from hdlog.query.sparql.patterns import Quad
from hdlog.query.sparql.updates import Clear, GraphName, Load, Modify, Operation, Transfer
from hdlog.query.templates import Filling
from hdlog.reading.files import find_splits, read_splits
from hdlog.reasoning import Reasoning

Facts = dict[Predicate, F]
Change = tuple[Facts[F], Facts[F]]
"""Facts that come, and facts that go."""


class Updating(Generic[R, F, T]):
    def __init__(self, reasoning: Reasoning[R, F, T], evaluation: Evaluation[R, F, T]) -> None:
        self.reasoning = reasoning
        self.evaluation = evaluation
        self.engine = reasoning.engine
        self.dictionary = reasoning.engine.dictionary

    def steps(self, operations: Sequence[Operation]) -> list[Callable[[], Change[F]]]:
        """What each operation changes; it is worked out when its turn has come."""
        return [partial(self._find_change, operation) for operation in operations]

    def _find_change(self, operation: Operation) -> Change[F]:
        match operation:
            case Modify():
                return self._modify(operation)
            case Clear(graph):
                return {}, self._asserted_in(graph)
            case Load():
                return self._load(operation), {}
            case Transfer():
                return self._transfer(operation)

    # Quads.

    def _modify(self, operation: Modify) -> Change[F]:
        columns: Mapping[str, Ids] = {}
        rows = 1
        if operation.where is not None:
            answers = self.evaluation.answer(operation.where)
            columns, rows = dict(zip(answers.names, answers.ids(), strict=True)), len(answers)
        return (
            self._fill(operation.insert, columns, rows),
            self._fill(operation.delete, columns, rows),
        )

    def _fill(self, quads: Sequence[Quad], columns: Mapping[str, Ids], rows: int) -> Facts[F]:
        """Facts of a template, for each row of values; those with a name that has no value are none."""
        parts: dict[Predicate, list[F]] = {}
        filling = Filling(self.dictionary, columns, rows, "update")
        for quad in quads:
            filled = filling.fill([term for term in quad if term is not None])
            for predicate, facts in self._facts_of(filled).items():
                parts.setdefault(predicate, []).append(facts)
        return {p: self.engine.distinct(self.engine.plus(several, p.arity)) for p, several in parts.items()}

    def _facts_of(self, columns: Sequence[Ids]) -> Facts[F]:
        """Quads, or triples, as facts of their predicates."""
        s, p, o, *graph = columns
        facts: Facts[F] = {}
        for predicate in np.unique(p).tolist():
            own = p == predicate
            name = self.dictionary.text(predicate)[1:-1]
            facts |= self._facts_of_property(name, s[own], o[own], [g[own] for g in graph])
        return facts

    def _facts_of_property(self, name: str, s: Ids, o: Ids, graph: Sequence[Ids]) -> Facts[F]:
        suffix = GRAPH if graph else ""
        if name != RDF_TYPE:
            return self._make(name + suffix, [s, o, *graph])
        facts: Facts[F] = {}
        for value in np.unique(o).tolist():
            own = o == value
            text = self.dictionary.text(value)
            members = [s[own], *(g[own] for g in graph)]
            if text[0] == "<":
                facts |= self._make(text[1:-1] + suffix, members)
            else:
                more = self._make(RDF_TYPE + suffix, [s[own], o[own], *members[1:]])
                for predicate, found in more.items():
                    known = facts.get(predicate)
                    facts[predicate] = found if known is None else self.engine.union(known, found)
        return facts

    def _make(self, name: str, columns: Sequence[Ids]) -> Facts[F]:
        if not len(columns[0]):
            return {}
        return {Predicate(name, len(columns)): self.engine.facts_from_columns(columns, len(columns[0]))}

    # Graphs.

    def _asserted_in(self, graph: GraphName) -> Facts[F]:
        """All that is asserted in a graph."""
        kept = self.reasoning.driver.kept
        found: Facts[F] = {}
        for predicate in self.evaluation.snapshot.sizes():
            if not _is_in(predicate, graph):
                continue
            table = kept.find(predicate)
            assert table is not None, "it has a size"
            facts = self.engine.facts(table)
            if isinstance(graph, Iri):
                facts = self._select_graph(facts, predicate, graph)
            asserted = self.engine.keep(self.engine.select_asserted(table, facts))
            if not self.engine.is_empty(asserted):
                found[predicate] = asserted
        return found

    def _select_graph(self, facts: F, predicate: Predicate, graph: Iri) -> F:
        terms: tuple[Term, ...] = (*(Variable(f"a{i}") for i in range(predicate.arity - 1)), graph)
        return self.engine.project(self.engine.scan(facts, terms), terms)

    def _transfer(self, operation: Transfer) -> Change[F]:
        moved = self._asserted_in(operation.source)
        come: Facts[F] = {}
        for predicate, facts in moved.items():
            plain = predicate.without_graph()
            terms: tuple[Term, ...] = tuple(Variable(f"a{i}") for i in range(plain.arity))
            graph = (operation.source,) if isinstance(operation.source, Iri) else ()
            rows = self.engine.scan(facts, (*terms, *graph))
            target = operation.target
            if isinstance(target, Iri):
                come[Predicate(plain.name + GRAPH, plain.arity + 1)] = self.engine.project(
                    rows, (*terms, target)
                )
            else:
                come[plain] = self.engine.project(rows, terms)
        go = self._asserted_in(operation.target) if operation.replaced else {}
        if operation.moved:
            go = {**go, **moved} if not set(go) & set(moved) else self._unite(go, moved)
        return come, go

    def _unite(self, a: Facts[F], b: Facts[F]) -> Facts[F]:
        both = {p: self.engine.union(a[p], b[p]) for p in a if p in b}
        return {**a, **b, **both}

    def _load(self, operation: Load) -> Facts[F]:
        try:
            path = _path_of(operation.source)
            facts = self.engine.encode_chunks(read_splits(find_splits([path])))
        except HdlogError:
            if operation.silent:
                return {}
            raise
        if operation.graph is None:
            return facts
        moved: Facts[F] = {}
        for predicate, found in facts.items():
            if predicate.has_graph or predicate.arity > 2:
                raise InputError(
                    f"{operation.source}: has more than triples, and cannot be loaded into one graph"
                )
            terms = tuple(Variable(f"a{i}") for i in range(predicate.arity))
            rows = self.engine.project(self.engine.scan(found, terms), (*terms, operation.graph))
            moved[Predicate(predicate.name + GRAPH, predicate.arity + 1)] = rows
        return moved


def _is_in(predicate: Predicate, graph: GraphName) -> bool:
    plain = predicate.without_graph()
    if plain.arity not in (1, 2) or not is_iri(plain.name):
        return False
    return graph == "ALL" or predicate.has_graph == (graph != "DEFAULT")


def _path_of(source: str) -> str:
    parts = urlparse(source)
    if parts.scheme == "file":
        return unquote(parts.path)
    if parts.scheme in ("http", "https"):
        raise InputError(f"{source}: LOAD reads files; fetch it, and give its path")
    return source
