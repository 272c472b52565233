"""Queries over a materialisation: asked once, or prepared and asked again with other values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

import pyarrow as pa

from hdlog.engines.protocol import F, R, T
from hdlog.errors import UsageError, did_you_mean
from hdlog.program.model import TRIPLE, Predicate
from hdlog.program.ntriples import parse_term
from hdlog.program.terms import Constant, Variable
from hdlog.query.algebra import Condition, Node, Selection, find_atoms, names_of
from hdlog.query.answers import Answers
from hdlog.query.bodies import Bodies, Planned
from hdlog.query.evaluation import Evaluation
from hdlog.query.explanations import Explanations, Why
from hdlog.query.graphs import Graphs
from hdlog.query.rule_bodies import answer_names, translate_body
from hdlog.query.snapshot import Snapshot
from hdlog.query.sparql.queries import SparqlQuery, is_sparql, parse_sparql
from hdlog.query.sparql.updates import parse_sparql_update
from hdlog.query.sql import Sql
from hdlog.query.updating import Updating
from hdlog.query.why_not import Failures, WhyNot
from hdlog.reading.values import value_text
from hdlog.reasoning import Reasoning, Update
from hdlog.text import parse_fact, parse_query
from hdlog.tuning import Tuning

FactLike = str | tuple[Any, ...]
"""A fact as its text, `:knows[:ann, :bob]`, or as the name of its predicate and values."""


@dataclass(frozen=True)
class Modifiers:
    """How answers are to be given."""

    order: Sequence[str] | str = ()
    """names, a minus before those that fall"""
    limit: int | None = None
    offset: int = 0
    distinct: bool = True
    """whether each answer is given once; otherwise, once for each match"""


@dataclass(frozen=True)
class Asked:
    """Answers, and how they were found."""

    answers: Answers
    query: Selection
    planned: Sequence[Planned[Any, Any]]
    is_question: bool
    """whether it was asked only whether there is an answer"""


class Queries(Generic[R, F, T]):
    """Asks a reasoner. Plans are kept, so that the same query again costs less."""

    def __init__(self, reasoning: Reasoning[R, F, T]) -> None:
        self.reasoning = reasoning
        self.evaluation = Evaluation(
            Bodies(Snapshot(reasoning.driver.kept), _tuning(reasoning.driver.tuning))
        )

    @property
    def prefixes(self) -> dict[str, str]:
        return dict(self.reasoning.program.prefixes)

    def prepare(self, text: str, parameters: Sequence[str], modifiers: Modifiers) -> Prepared[R, F, T]:
        """A rule body with its answers before it: `?x, ?y <- edge[?x, ?y]`."""
        names = tuple(_name(p) for p in parameters)
        query = parse_query(text, self.prefixes, names)
        node = translate_body(query.body, names)
        selection = select(node, answer_names(query), modifiers)
        return Prepared(self.evaluation, selection, names)

    def ask(self, text: str, modifiers: Modifiers) -> Asked:
        """A query in SPARQL, or a rule body, with how it was evaluated."""
        self.evaluation.bodies.used.clear()
        if is_sparql(text):
            if modifiers != Modifiers():
                raise UsageError("SPARQL says itself how answers are to be given: ORDER BY, LIMIT, DISTINCT")
            query = parse_sparql(text, self.prefixes)
            answers, selection, is_question = self.answer_sparql(query), query.selection, query.form == "ask"
        else:
            prepared = self.prepare(text, (), modifiers)
            answers, selection = prepared.ask({}), prepared.query
            is_question = not answers.names
        return Asked(answers, selection, list(self.evaluation.bodies.used.values()), is_question)

    def find_unknown(self, query: Selection) -> Iterator[str]:
        """Words for predicates of a query that neither rules nor facts name."""
        known = {*self.reasoning.predicates(), *self.reasoning.program.predicates}
        for predicate in dict.fromkeys(atom.predicate for atom in find_atoms(query)):
            if predicate.without_graph().name != TRIPLE and predicate not in known:
                hint = did_you_mean(predicate.name, [p.name for p in known if p.arity == predicate.arity])
                yield f"nothing has {predicate.name} with {predicate.arity} arguments{hint and f'; {hint}'}"

    def ask_sparql(self, text: str) -> Answers:
        """A query in SPARQL: rows for SELECT, one without names or none for ASK, triples for CONSTRUCT and DESCRIBE."""
        return self.answer_sparql(parse_sparql(text, self.prefixes))

    def answer_sparql(self, query: SparqlQuery) -> Answers:
        match query.form:
            case "construct":
                return Graphs(self.evaluation).construct(query)
            case "describe":
                return Graphs(self.evaluation).describe(query)
        return self.evaluation.answer(query.selection)

    def ask_sql(self, statement: str) -> pa.Table:
        return Sql(self.reasoning).ask(statement)

    def why(self, fact: FactLike, several: int = 1) -> Why:
        """How a fact comes about."""
        return Explanations(self.reasoning, self.evaluation).why(*self._fact(fact), several)

    def why_not(self, fact: FactLike) -> WhyNot:
        """What is missing for a fact to hold."""
        return Failures(self.reasoning, self.evaluation).why_not(*self._fact(fact))

    def _fact(self, fact: FactLike) -> tuple[Predicate, tuple[Constant, ...]]:
        """A fact as a text, or as the name of its predicate and values."""
        if isinstance(fact, str):
            atom = parse_fact(fact, self.prefixes)
            return atom.predicate, atom.terms  # type: ignore[return-value]
        if not isinstance(fact, tuple) or not fact or not isinstance(fact[0], str):
            raise UsageError(f"a fact is a text, or a tuple of a predicate's name and values, not {fact!r}")
        return Predicate(fact[0], len(fact) - 1), tuple(parse_term(value_text(v)) for v in fact[1:])

    def update_sparql(self, text: str) -> Update:
        """SPARQL Update: all operations of a text, or none; the net change of what holds."""
        operations = parse_sparql_update(text, self.prefixes)
        steps = Updating(self.reasoning, self.evaluation).steps(operations)
        return self.reasoning.update_stepwise(steps)


class Prepared(Generic[R, F, T]):
    """A query with parameters: it is planned once, and asked with their values."""

    def __init__(
        self, evaluation: Evaluation[R, F, T], query: Selection, parameters: tuple[str, ...]
    ) -> None:
        self.evaluation = evaluation
        self.query = query
        self.parameters = parameters

    def ask(self, values: Mapping[str, Any]) -> Answers:
        return self.ask_for([values])

    def ask_for(self, several: Sequence[Mapping[str, Any]]) -> Answers:
        """The answers for several rows of values together, each of which counts once."""
        for values in several:
            self._check(values)
        if not self.parameters:
            return self.evaluation.answer(self.query)
        rows = dict.fromkeys(
            tuple(value_text(values[name]) for name in self.parameters) for values in several
        )
        columns = list(zip(*rows, strict=True)) or [()] * len(self.parameters)
        self.evaluation.given = self.evaluation.sets.make_of_texts(self.parameters, columns)
        return self.evaluation.answer(self.query)

    def _check(self, values: Mapping[str, Any]) -> None:
        unknown = [name for name in values if name not in self.parameters]
        missing = [name for name in self.parameters if name not in values]
        if unknown:
            hint = did_you_mean(unknown[0], self.parameters) or "there are " + (
                ", ".join(self.parameters) or "none"
            )
            raise UsageError(f"the query has no parameter {unknown[0]}; {hint}")
        if missing:
            raise UsageError(f"no value for the parameter {missing[0]}")


def select(node: Node, names: tuple[str, ...], modifiers: Modifiers) -> Selection:
    """Answers as they are to be given."""
    order = [modifiers.order] if isinstance(modifiers.order, str) else list(modifiers.order)
    keys = []
    for key in order:
        if not isinstance(key, str):
            raise UsageError(f"answers are ordered by names, such as '?x' or '-?x', not by {key!r}")
        name = _name(key.removeprefix("-"))
        if name not in names_of(node):
            known = sorted(n for n in names_of(node) if not n.startswith("#"))
            raise UsageError(f"there is no ?{name} to order by; {did_you_mean(name, known)}".rstrip("; "))
        keys.append((Condition(Variable(name)), key.startswith("-")))
    limit = _whole("limit", modifiers.limit)
    start = _whole("offset", modifiers.offset) or 0
    return Selection(node, names, modifiers.distinct, tuple(keys), start, limit)


def _name(text: str) -> str:
    return text.strip().removeprefix("?").removeprefix("$")


def _whole(word: str, value: int | None) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise UsageError(f"{word} is a number from 0 on, not {value!r}")
    return value


def _tuning(tuning: Tuning) -> Tuning:
    """Queries are evaluated by the best method, also where rules are by another."""
    return replace(tuning, method="combined") if tuning.method == "paper" else tuning
