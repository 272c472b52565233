"""Graphs as answers: CONSTRUCT fills a template with each answer, DESCRIBE tells what is said of resources."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Generic

import numpy as np
import pyarrow.compute as pc

from hdlog.engines.encoding import Ids
from hdlog.engines.protocol import F, R, T
from hdlog.program.model import TRIPLE, Atom
from hdlog.program.ntriples import term_text
from hdlog.program.terms import UNBOUND, BlankNode, Term, Variable
from hdlog.query.algebra import Match
from hdlog.query.answers import Answers, first_of_each
from hdlog.query.evaluation import Evaluation
from hdlog.query.rows import Rows
from hdlog.query.sparql.patterns import Triple
from hdlog.query.sparql.queries import SparqlQuery

NAMES = ("subject", "predicate", "object")


class Graphs(Generic[R, F, T]):
    def __init__(self, evaluation: Evaluation[R, F, T]) -> None:
        self.evaluation = evaluation
        self.dictionary = evaluation.engine.dictionary
        self._labels: dict[str, str] = {}
        """what tells the blank nodes of a template from others"""

    def construct(self, query: SparqlQuery) -> Answers:
        """The triples of the template for each answer, each once."""
        answers = self.evaluation.answer(query.selection)
        columns = dict(zip(answers.names, answers.ids(), strict=True))
        parts = [self._fill(triple, columns, len(answers)) for triple in query.template]
        return self._as_answers([np.concatenate([p[i] for p in parts]) if parts else _NONE for i in range(3)])

    def _fill(self, triple: Triple, columns: dict[str, Ids], rows: int) -> list[Ids]:
        filled = [self._column(term, columns, rows) for term in triple]
        texts = [self.dictionary.text_array(column) for column in filled]
        gone = term_text(UNBOUND)
        good = pc.and_(
            pc.and_(pc.invert(pc.starts_with(texts[0], '"')), pc.starts_with(texts[1], "<")),
            pc.and_(pc.not_equal(texts[0], gone), pc.not_equal(texts[2], gone)),
        ).to_numpy(zero_copy_only=False)
        return [column[good] for column in filled]

    def _column(self, term: Term, columns: dict[str, Ids], rows: int) -> Ids:
        if isinstance(term, Variable):
            return columns[term.name]
        if isinstance(term, BlankNode):
            # A new node for each answer, the same in all triples of it.
            if term.label not in self._labels:
                self._labels[term.label] = uuid.uuid4().hex[:12]
            scope = self._labels[term.label]
            return self.dictionary.encode([f"_:query.{scope}.{row}" for row in range(rows)])
        return np.repeat(self.dictionary.encode([term_text(term)]), rows)

    def describe(self, query: SparqlQuery) -> Answers:
        """All triples about resources, and about blank nodes that these lead to."""
        resources = [term_text(iri) for iri in query.described]
        if query.selection.names:
            answers = self.evaluation.answer(query.selection)
            resources += [text for texts in answers.texts() for text in texts if text[0] in "<_"]
        known: dict[str, None] = {}
        parts: list[list[Ids]] = []
        waiting = list(dict.fromkeys(r for r in resources if r != term_text(UNBOUND)))
        while waiting:
            known |= dict.fromkeys(waiting)
            found = self._triples_of(waiting)
            parts.append(found)
            objects = dict.fromkeys(self.dictionary.texts(np.unique(found[2])))
            waiting = [text for text in objects if text.startswith("_:") and text not in known]
        return self._as_answers([np.concatenate([p[i] for p in parts]) if parts else _NONE for i in range(3)])

    def _triples_of(self, texts: Sequence[str]) -> list[Ids]:
        sets, engine = self.evaluation.sets, self.evaluation.engine
        facts = engine.facts_from_columns([self.dictionary.encode(texts)], len(texts))
        seed: Rows[R] = sets.of_facts(facts, ("subject",))
        atom = Atom(TRIPLE, tuple(map(Variable, NAMES)))
        rows = sets.join(seed, self.evaluation.evaluate(Match((atom,)), seed))
        columns, _ = engine.collect(rows.relation, NAMES)
        return columns

    def _as_answers(self, columns: Sequence[Ids]) -> Answers:
        once = first_of_each(columns, np.arange(len(columns[0])))
        return Answers(self.dictionary, NAMES, len(once), lambda: [c[once] for c in columns])


_NONE = np.empty(0, np.uint32)
