"""Tables that are filled with what was kept elsewhere, before anybody has seen them. It is no change that could be taken back."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from hdlog.engines.columnar.facts import Counts, Order, keys_of
from hdlog.engines.columnar.kernels import Flags, Keys
from hdlog.engines.columnar.kernels.searching import locate
from hdlog.engines.columnar.kernels.sorting import sort
from hdlog.engines.columnar.runs import Index, Run, SupportedRun
from hdlog.engines.columnar.table import Table

_NONE = np.empty(0, np.uint8)
_LONG_AGO = -1
"""The number of no update: what was there before them all."""


def restore(
    table: Table,
    keys: Keys,
    supports: tuple[Flags, Counts, Counts],
    indexes: Mapping[Order, Keys] = MappingProxyType({}),
) -> None:
    """Live facts by their sorted keys, with all their supports, and in other orders; the table is empty."""
    assert not table.runs, "only an empty table is restored"
    table.runs = [SupportedRun(keys, _NONE, _LONG_AGO, *supports)] if len(keys) else []
    table.live = len(keys)
    table.mapped = bool(len(keys))
    for order, others in indexes.items():
        runs = [Run(others, born=_LONG_AGO)] if len(others) else []
        table.indexes[order] = Index(order, table.journal, runs, table.numbers.small_run)


def replay(table: Table, keys: Keys, supports: tuple[Counts, Counts, Counts]) -> None:
    """Add differences to the supports of facts by their sorted keys: those that come to have some hold, others do not."""
    came, went, new = [], [], np.ones(len(keys), np.bool_)
    for run in table.runs:
        at = locate(run.keys, keys)
        hit, here = at >= 0, at[at >= 0]
        new &= ~hit
        was = ~run.find_dead(here)
        run.asserted[here] += supports[0][hit].astype(np.uint8)
        run.nonrecursive[here] += supports[1][hit]
        run.recursive[here] += supports[2][hit]
        now = (run.asserted[here] != 0) | (run.nonrecursive[here] != 0) | (run.recursive[here] != 0)
        run.set_dead(here, ~now)
        came.append(keys[hit][now & ~was])
        went.append(keys[hit][was & ~now])
    if new.any():
        asserted, fixed, recursive = (s[new] for s in supports)
        run = SupportedRun(
            keys[new], _NONE, _LONG_AGO, asserted.astype(np.uint8), fixed.copy(), recursive.copy()
        )
        table.runs.append(run)
        came.append(keys[new])
    added, removed = table.unite(came), table.unite(went)
    table.live += len(added) - len(removed)
    for index in table.indexes.values():
        index.replay(
            *(sort(keys_of(table.pairs, f.columns(), index.order, len(f))) for f in (added, removed))
        )
