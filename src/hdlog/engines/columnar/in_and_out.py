"""Facts in and out of the embedded engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hdlog.engines.columnar.fact_sets import FactSets
from hdlog.engines.columnar.facts import Counts, Facts
from hdlog.engines.columnar.kernels import Ids
from hdlog.engines.columnar.relation import Relation
from hdlog.engines.columnar.table import Table
from hdlog.engines.decode import FactTable
from hdlog.engines.encoding import encode_chunks
from hdlog.program.model import Predicate
from hdlog.program.terms import Constant
from hdlog.reading.chunks import Chunk
from hdlog.reading.shared_terms import SharedTerms


class InAndOut(FactSets):
    def share_terms(self) -> SharedTerms:
        return self.dictionary.share()

    def encode_chunks(self, chunks: Iterable[Chunk]) -> dict[Predicate, Facts]:
        return encode_chunks(self, chunks)

    def owns(self, table: object) -> bool:
        return False

    def encode_table(self, table: object, types: Sequence[str]) -> Facts:
        raise AssertionError("no table is in a form of the engine's own")

    def decode(self, facts: Facts) -> FactTable:
        return FactTable(self.dictionary, facts.arity, len(facts), facts.columns)

    def collect(self, relation: Relation, names: Sequence[str]) -> tuple[list[Ids], Counts]:
        return [relation.columns[n] for n in names], relation.weights()

    def show(self, facts: Facts, names: Sequence[str]) -> FactTable:
        return self.decode(facts).with_names(names)

    def supports(self, table: Table) -> list[tuple[tuple[Constant, ...], bool, int]]:
        facts = table.facts()
        asserted, fixed, recursive = table.supports_of(facts.keys)
        rows = self.decode(facts).rows()
        derived = (fixed + recursive).tolist()
        return [(row, bool(a), n) for row, a, n in zip(rows, asserted.tolist(), derived, strict=True)]

    def weights(self, facts: Facts) -> dict[tuple[Constant, ...], int]:
        return dict(zip(self.decode(facts).rows(), facts.weights().tolist(), strict=True))
