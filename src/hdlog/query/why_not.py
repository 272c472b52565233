"""Why a fact does not hold: for each rule that could derive it, how far its body matches, and what fails there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np

from hdlog.engines.protocol import F, R, T
from hdlog.errors import UsageError
from hdlog.program.model import Atom, Bind, BodyItem, Filter, Predicate, Rule
from hdlog.program.ntriples import parse_term
from hdlog.program.terms import RDF_TYPE, Constant, Iri, Variable
from hdlog.query.algebra import expression_names
from hdlog.query.evaluation import Evaluation
from hdlog.query.explanations import Explanations
from hdlog.query.rows import Rows
from hdlog.query.rule_bodies import translate_body
from hdlog.reasoning import Reasoning

_MOST_ROWS = 20_000
"""Matches of a part of a body that are followed."""
_SHOWN = 3


@dataclass(frozen=True)
class Miss:
    """A rule that does not derive the fact: how much of its body has matches, and the item at which they end."""

    rule: str
    where: str
    matched: tuple[str, ...]
    """items of the body that match together, in the order they were looked at"""
    matches: int
    """in how many ways they do"""
    failed: str
    """the item that fails"""
    tried: tuple[str, ...] = ()
    """the item with values that it was tried with"""

    def as_dict(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "where": self.where,
            "matched": list(self.matched),
            "matches": self.matches,
            "failed": self.failed,
            "tried": list(self.tried),
        }


@dataclass(frozen=True)
class WhyNot:
    fact: str
    misses: tuple[Miss, ...] = field(default=())
    """those that come nearest first; nothing where no rule could derive it"""

    def as_dict(self) -> dict[str, Any]:
        return {"fact": self.fact, "misses": [miss.as_dict() for miss in self.misses]}


class Failures(Generic[R, F, T]):
    def __init__(self, reasoning: Reasoning[R, F, T], evaluation: Evaluation[R, F, T]) -> None:
        self.reasoning, self.evaluation = reasoning, evaluation
        self.engine, self.sets = evaluation.engine, evaluation.sets
        self.explanations = Explanations(reasoning, evaluation)
        self.words = self.explanations.words

    def why_not(self, predicate: Predicate, row: Sequence[Constant]) -> WhyNot:
        atom = Atom(predicate.name, tuple(row))
        fact = self.words.atom(atom)
        if self.explanations.holds(atom):
            raise UsageError(f"{fact} holds; `why` tells how it comes about")
        misses = []
        for rule in self.reasoning.program.rules:
            for head in rule.heads if rule.body else ():
                values = _unify(head, atom)
                if values is not None:
                    misses.append(self._find_miss(rule, values))
        misses.sort(key=lambda miss: (-len(miss.matched), -miss.matches))
        return WhyNot(fact, tuple(misses))

    def _find_miss(self, rule: Rule, values: dict[str, Constant]) -> Miss:
        rows = self._given(values)
        waiting, matched = list(rule.body), list[BodyItem]()
        while waiting:
            item = _choose(waiting, rows.names)
            waiting.remove(item)
            more = self._match(rows, item)
            if self.engine.is_empty(self.engine.keep(more.relation)):
                return self._tell(rule, matched, rows, item, values)
            rows = self._cut(more)
            matched.append(item)
        return self._tell(rule, matched, rows, None, values)

    def _given(self, values: dict[str, Constant]) -> Rows[R]:
        return self.sets.make(list(values), [tuple(values.values())]) if values else self.sets.unit()

    def _match(self, rows: Rows[R], item: BodyItem) -> Rows[R]:
        node = translate_body((item,), sorted(rows.names))
        self.evaluation.given = rows
        return self.sets.distinct(self.evaluation.evaluate(node))

    def _cut(self, rows: Rows[R]) -> Rows[R]:
        """Some rows, where there are very many."""
        if self.engine.count(rows.relation) <= _MOST_ROWS:
            return rows
        names = sorted(rows.names)
        columns, _ = self.engine.collect(rows.relation, names)
        chosen = np.random.default_rng(1).permutation(len(columns[0]))[:_MOST_ROWS]
        facts = self.engine.facts_from_columns([c[chosen] for c in columns], len(chosen))
        return self.sets.of_facts(facts, names)

    def _tell(
        self,
        rule: Rule,
        matched: Sequence[BodyItem],
        rows: Rows[R],
        failed: BodyItem | None,
        values: dict[str, Constant],
    ) -> Miss:
        text, where = self.words.rule(rule)
        known = [self.words.filled(item, _own(item, values)) for item in matched]
        count = self.engine.count(rows.relation)
        if failed is None:
            return Miss(text, where, tuple(known), count, "the head, which has other values")
        tried = self._fill(rows, failed)
        return Miss(text, where, tuple(known), count, self.words.items((failed,)), tried)

    def _fill(self, rows: Rows[R], item: BodyItem) -> tuple[str, ...]:
        """An item with the values of some rows."""
        names = sorted(rows.names & _names(item))
        if not names:
            return ()
        few = self.sets.distinct(self.sets.keep(rows, frozenset(names)))
        columns, _ = self.engine.collect(few.relation, names)
        texts = [[parse_term(t) for t in self.engine.dictionary.texts(c[:_SHOWN])] for c in columns]
        return tuple(
            self.words.filled(item, dict(zip(names, row, strict=True))) for row in zip(*texts, strict=True)
        )


def _unify(head: Atom, fact: Atom) -> dict[str, Constant] | None:
    """The values that the variables of a head have for a fact; None if it cannot stand for it."""
    values: dict[str, Constant] = {}
    terms, constants = head.terms, fact.terms
    if head.is_triple:
        terms, constants = _as_triple(head, fact)
    elif head.predicate != fact.predicate:
        return None
    if len(terms) != len(constants):
        return None
    for term, constant in zip(terms, constants, strict=True):
        assert not isinstance(constant, Variable)
        if isinstance(term, Variable):
            if values.setdefault(term.name, constant) != constant:
                return None
        elif term != constant:
            return None
    return values


def _as_triple(head: Atom, fact: Atom) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Both as triples or quads, so that they can be compared."""
    plain = fact.predicate.without_graph()
    if fact.predicate.has_graph != head.predicate.has_graph or plain.arity not in (1, 2):
        return (), (None,)
    graph = fact.terms[plain.arity :]
    if plain.arity == 1:
        return head.terms, (fact.terms[0], Iri(RDF_TYPE), Iri(plain.name), *graph)
    return head.terms, (fact.terms[0], Iri(plain.name), fact.terms[1], *graph)


def _own(item: BodyItem, values: dict[str, Constant]) -> dict[str, Constant]:
    """The values of the variables of an item."""
    return {name: value for name, value in values.items() if name in _names(item)}


def _choose(waiting: Sequence[BodyItem], known: frozenset[str]) -> BodyItem:
    """The next item: in the order of the text, but for those that wait for the values of others."""
    atoms = [item for item in waiting if isinstance(item, Atom)]
    ready = [i for i in waiting if isinstance(i, Filter | Bind) and _needs(i) <= known]
    if ready:
        return ready[0]
    if atoms:
        return next((a for a in atoms if _names(a) & known), atoms[0])
    return waiting[0]


def _needs(item: Filter | Bind) -> frozenset[str]:
    return frozenset(expression_names(item.condition if isinstance(item, Filter) else item.expression))


def _names(item: BodyItem) -> frozenset[str]:
    match item:
        case Atom():
            return frozenset(v.name for v in item.variables())
        case Filter():
            return _needs(item)
        case Bind():
            return _needs(item) | {item.variable.name}
    inner: frozenset[str] = frozenset()
    for part in item.body:
        inner |= _names(part)
    return inner
