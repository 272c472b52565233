"""Templates of triples and quads, filled with answers: for CONSTRUCT, and for what an update inserts and deletes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow.compute as pc

from hdlog.engines.encoding import Dictionary, Ids
from hdlog.program.ntriples import term_text
from hdlog.program.terms import UNBOUND, BlankNode, Term, Variable


class Filling:
    """The values of names, for some rows; blank nodes are new ones for each row, the same in all that is filled for it."""

    def __init__(self, dictionary: Dictionary, columns: Mapping[str, Ids], rows: int, scope: str) -> None:
        self.dictionary, self.columns, self.rows, self.scope = dictionary, columns, rows, scope
        self._nodes: dict[str, Ids] = {}

    def fill(self, terms: Sequence[Term]) -> list[Ids]:
        """Columns of a triple or a quad, for the rows for which it is one."""
        filled = [self._column(term) for term in terms]
        texts = [self.dictionary.text_array(column) for column in filled]
        gone = term_text(UNBOUND)
        good = pc.and_(pc.starts_with(texts[1], "<"), pc.not_equal(texts[2], gone))
        for nodes in (texts[0], *texts[3:]):
            good = pc.and_(good, pc.invert(pc.starts_with(nodes, '"')))
            good = pc.and_(good, pc.not_equal(nodes, gone))
        kept = good.to_numpy(zero_copy_only=False)
        return [column[kept] for column in filled]

    def _column(self, term: Term) -> Ids:
        if isinstance(term, Variable) and term.name in self.columns:
            return self.columns[term.name]
        if isinstance(term, BlankNode):
            if term.label not in self._nodes:
                prefix = f"_:{self.scope}.{uuid.uuid4().hex[:12]}."
                self._nodes[term.label] = self.dictionary.encode(
                    [f"{prefix}{row}" for row in range(self.rows)]
                )
            return self._nodes[term.label]
        constant = UNBOUND if isinstance(term, Variable) else term
        return np.repeat(self.dictionary.encode([term_text(constant)]), self.rows)
