"""Relations: bags of rows over named columns of ids, each row with a multiplicity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.facts import Counts
from hdlog.engines.columnar.kernels import Ids


@dataclass(eq=False)
class Relation:
    """`counts` is None where all multiplicities are one."""

    columns: dict[str, Ids]
    rows: int
    counts: Counts | None = None

    def __len__(self) -> int:
        return self.rows

    def take(self, at: NDArray[np.int64] | NDArray[np.bool_]) -> Relation:
        columns = {name: column[at] for name, column in self.columns.items()}
        rows = int(np.count_nonzero(at)) if at.dtype == np.bool_ else len(at)
        return Relation(columns, rows, None if self.counts is None else self.counts[at])

    def keep(self, names: Sequence[str]) -> Relation:
        """Without the other columns; rows that became equal stay apart."""
        return Relation({n: self.columns[n] for n in names if n in self.columns}, self.rows, self.counts)

    def scaled(self, factor: int) -> Relation:
        if factor == 1:
            return self
        counts = np.full(self.rows, factor, np.int64) if self.counts is None else self.counts * factor
        return Relation(self.columns, self.rows, counts)

    def weights(self) -> Counts:
        return np.ones(self.rows, np.int64) if self.counts is None else self.counts


def stack(parts: Sequence[Relation]) -> Relation:
    """All rows of relations with the same columns."""
    filled = [p for p in parts if len(p)]
    if len(filled) < 2:
        return filled[0] if filled else parts[0]
    columns = {n: np.concatenate([p.columns[n] for p in filled]) for n in filled[0].columns}
    rows = sum(map(len, filled))
    if all(p.counts is None for p in filled):
        return Relation(columns, rows)
    return Relation(columns, rows, np.concatenate([p.weights() for p in filled]))
