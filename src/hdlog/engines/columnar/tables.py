"""Maintained facts, as the embedded engine changes them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.fact_sets import FactSets
from hdlog.engines.columnar.facts import Facts, union
from hdlog.engines.columnar.kernels import Rows
from hdlog.engines.columnar.runs import SupportedRun
from hdlog.engines.columnar.table import Table
from hdlog.engines.protocol import Support


class Tables(FactSets):
    def size(self, table: Table) -> int:
        return len(table)

    def bytes(self, kept: Table | Facts) -> int:
        return kept.nbytes

    def facts(self, table: Table) -> Facts:
        return table.facts()

    def adjust(self, table: Table, facts: Facts, support: Support) -> None:
        if len(facts):
            table.adjust(facts, support)

    def insert(self, table: Table, facts: Facts) -> None:
        table.insert(facts)

    def delete(self, table: Table, facts: Facts) -> None:
        table.delete(facts)

    def _select_live(self, table: Table, facts: Facts, wanted: bool = True) -> Facts:
        return facts.take(table.contains(facts.keys) == wanted).once()

    def _select_founded(self, table: Table, facts: Facts, wanted: bool = True) -> Facts:
        def test(run: SupportedRun, at: Rows) -> NDArray[np.bool_]:
            return np.asarray(((run.asserted[at] != 0) | (run.nonrecursive[at] != 0)) == wanted)

        return table.select(facts, test).once()

    def grow(self, table: Table, facts: Facts, support: Support) -> Facts:
        return table.grow(facts, support) if len(facts) else facts

    def shrink(self, table: Table, facts: Facts, support: Support) -> Facts:
        return table.shrink(facts, support) if len(facts) else facts

    def recount(self, table: Table, asserted: Facts, signed: Facts) -> tuple[Facts, Facts]:
        nothing = self.no_facts(table.arity)
        if not table.runs and not (len(asserted) and len(signed)):
            facts = asserted if len(asserted) else signed
            table.load(facts, "asserted" if len(asserted) else "nonrecursive")
            return facts.once(), nothing
        if not len(asserted) or not len(signed):
            if len(asserted):
                return table.change(asserted, "asserted")
            return table.change(signed, "nonrecursive") if len(signed) else (nothing, nothing)
        self.adjust(table, asserted, "asserted")
        self.adjust(table, signed, "nonrecursive")
        touched = union(asserted.once(), signed.once())
        holding = self._select_founded(table, touched)
        added = self._select_live(table, holding, wanted=False)
        removed = self._select_live(table, touched.minus(holding))
        table.insert(added)
        table.delete(removed)
        return added, removed

    def change_foundations(self, table: Table, asserted: Facts, signed: Facts) -> tuple[Facts, Facts]:
        self.adjust(table, asserted, "asserted")
        self.adjust(table, signed, "nonrecursive")
        touched = union(asserted.once(), signed.once())
        gained = self._select_live(table, self._select_founded(table, touched), wanted=False)
        return self._select_live(table, self._select_founded(table, touched, wanted=False)), gained

    def select_asserted(self, table: Table, facts: Facts) -> Facts:
        return table.select(facts, lambda run, at: run.asserted[at] != 0).once()

    def select_supported(self, table: Table, facts: Facts) -> Facts:
        def test(run: SupportedRun, at: Rows) -> NDArray[np.bool_]:
            return np.asarray(
                (run.asserted[at] != 0) | (run.nonrecursive[at] != 0) | (run.recursive[at] != 0)
            )

        return table.select(facts, test).once()
