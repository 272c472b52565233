"""Graphs as answers: CONSTRUCT fills a template with each answer, DESCRIBE tells what is said of resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

import numpy as np

from hdlog.engines.encoding import Ids
from hdlog.engines.protocol import F, R, T
from hdlog.program.model import TRIPLE, Atom
from hdlog.program.ntriples import term_text
from hdlog.program.terms import UNBOUND, Variable
from hdlog.query.algebra import Match
from hdlog.query.answers import Answers, first_of_each
from hdlog.query.evaluation import Evaluation
from hdlog.query.rows import Rows
from hdlog.query.sparql.queries import SparqlQuery
from hdlog.query.templates import Filling

NAMES = ("subject", "predicate", "object")


class Graphs(Generic[R, F, T]):
    def __init__(self, evaluation: Evaluation[R, F, T]) -> None:
        self.evaluation = evaluation
        self.dictionary = evaluation.engine.dictionary

    def construct(self, query: SparqlQuery) -> Answers:
        """The triples of the template for each answer, each once."""
        answers = self.evaluation.answer(query.selection)
        columns = dict(zip(answers.names, answers.ids(), strict=True))
        filling = Filling(self.dictionary, columns, len(answers), "query")
        parts = [filling.fill(triple) for triple in query.template]
        return self._as_answers([np.concatenate([p[i] for p in parts]) if parts else _NONE for i in range(3)])

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
