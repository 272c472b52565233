"""Relations: bags of rows over named columns of ids, each row with a multiplicity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.facts import Counts
from hdlog.engines.columnar.kernels import Ids
from hdlog.program.terms import Constant, Term, Variable


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

    def scale(self, factor: int) -> Relation:
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


def select_atom(
    columns: Sequence[Ids],
    rows: int,
    counts: Counts | None,
    terms: Sequence[Term],
    encode: Callable[[Constant], np.uint32],
) -> Relation:
    """Rows that agree with the constants and repeated variables of an atom, by variable."""
    kept: NDArray[np.bool_] | None = None
    by_name: dict[str, Ids] = {}
    for column, term in zip(columns, terms, strict=True):
        if isinstance(term, Variable):
            same = column == by_name[term.name] if term.name in by_name else None
            by_name.setdefault(term.name, column)
        else:
            same = column == encode(term)
        if same is not None:
            kept = same if kept is None else kept & same
    relation = Relation(by_name, rows, counts)
    return relation if kept is None else relation.take(kept)
