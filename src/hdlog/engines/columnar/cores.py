"""The core of a join: the facts all of whose values occur, for their variable, in every atom that has it; about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hdlog.engines.columnar.facts import Facts
from hdlog.engines.columnar.kernels import Flags, Ids, Keys
from hdlog.engines.columnar.kernels.searching import reach_pairs
from hdlog.engines.columnar.relation import select_atom
from hdlog.program.terms import Constant, Term, Variable

_PASSES = 6
_FALLING = 0.9
"""Another pass is made while the last one left no more than this share."""
_LAST_STAGE = 255


class _Stages:
    """For each variable, how far each id has come: atoms that have the variable lead from stage to stage."""

    def __init__(self, names: Sequence[str], ids: int) -> None:
        self.marks: dict[str, Flags] = {n: np.zeros(ids, np.uint8) for n in names}
        self.reached = dict.fromkeys(names, 0)

    def values(self, name: str) -> float:
        return float(np.count_nonzero(self.marks[name] == self.reached[name]))


@dataclass
class _Pairs:
    """The facts of an atom over two variables, as keys."""

    left: str
    right: str
    keys: Keys

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def names(self) -> list[str]:
        return [self.left, self.right]

    def reduce(self, stages: _Stages) -> None:
        a, b = self.left, self.right
        self.keys = reach_pairs(
            self.keys, stages.marks[a], stages.reached[a], stages.marks[b], stages.reached[b]
        )


@dataclass
class _Columns:
    """The facts of any other atom, by variable."""

    columns: dict[str, Ids]
    rows: int

    def __len__(self) -> int:
        return self.rows

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def reduce(self, stages: _Stages) -> None:
        keep = np.ones(self.rows, np.bool_)
        for name, column in self.columns.items():
            keep &= stages.marks[name][column] >= stages.reached[name]
        self.columns = {n: c[keep] for n, c in self.columns.items()}
        self.rows = int(np.count_nonzero(keep))
        for name, column in self.columns.items():
            stages.marks[name][column] = stages.reached[name] + 1


def core(
    atoms: Sequence[tuple[Facts, Sequence[Term]]], ids: int, encode: Callable[[Constant], np.uint32]
) -> list[tuple[float, dict[str, float]]]:
    """For each atom how many facts are left, and for each of its variables how many values."""
    parts = [_part(facts, terms, encode) for facts, terms in atoms]
    holders = Counter(name for part in parts for name in part.names)
    stages = _Stages(list(holders), ids)
    rows = sum(map(len, parts))
    passes = _PASSES if not holders else min(_PASSES, _LAST_STAGE // max(holders.values()))
    for _ in range(passes):
        before = rows
        # Small ones first: what they rule out need not be looked at again.
        for part in sorted(parts, key=len):
            part.reduce(stages)
            for name in part.names:
                stages.reached[name] += 1
        rows = sum(map(len, parts))
        if rows > _FALLING * before:
            break
    values = {name: stages.values(name) for name in holders}
    return [(float(len(part)), {n: min(values[n], len(part)) for n in part.names}) for part in parts]


def _part(facts: Facts, terms: Sequence[Term], encode: Callable[[Constant], np.uint32]) -> _Pairs | _Columns:
    names = [t.name for t in terms if isinstance(t, Variable)]
    if len(names) == len(terms) == len(set(names)) == 2:
        return _Pairs(names[0], names[1], facts.keys)
    relation = select_atom(facts.columns(), len(facts), facts.counts, terms, encode)
    return _Columns(relation.columns, len(relation))
