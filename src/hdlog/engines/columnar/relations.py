"""The algebra of the embedded engine, over columns of ids; joins are in `joins.py`, worst-case optimal steps in `meeting.py`."""

from __future__ import annotations

from collections.abc import Sequence

from hdlog import interrupts
from hdlog.engines.columnar import builtins
from hdlog.engines.columnar.facts import Facts, gather, keys_of, primary_order
from hdlog.engines.columnar.meeting import Meeting
from hdlog.engines.columnar.relation import Relation, stack
from hdlog.engines.protocol import Kept
from hdlog.program.model import Expression
from hdlog.program.terms import Term, Variable

_PROJECTED = 40
"""Bytes that a row takes where it becomes a fact."""


class Relations(Meeting):
    def unit(self) -> Relation:
        return Relation({}, 1)

    def stack(self, parts: Sequence[Relation]) -> Relation:
        return stack(parts)

    def collapse(self, relation: Relation) -> Relation:
        variables = [Variable(n) for n in relation.columns]
        return self.scan(self.project(relation, variables), variables)

    def filter(self, relation: Relation, condition: Expression) -> Relation:
        return builtins.select(self.dictionary, self.pairs, relation, condition)

    def extend(self, relation: Relation, expression: Expression, name: str) -> Relation:
        return builtins.extend(self.dictionary, self.pairs, relation, expression, name)

    def keep_columns(self, relation: Relation, names: Sequence[str]) -> Relation:
        return relation.keep(names)

    def project(self, relation: Relation, terms: Sequence[Term]) -> Facts:
        interrupts.check()
        self.budget.check(len(relation), _PROJECTED, "sorting a result")
        columns = [self.column_of(relation, t) for t in terms]
        keys = keys_of(self.pairs, columns, primary_order(len(terms)), len(relation))
        return gather(self.pairs, len(terms), keys, relation.counts)

    def is_empty(self, result: Relation | Facts) -> bool:
        return len(result) == 0

    def count(self, result: Relation | Facts) -> int:
        return len(result)

    def keep(self, result: Kept) -> Kept:
        return result
