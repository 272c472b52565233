"""Small files of a store are put together once they have become many: a store is a sum, in whatever parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hdlog.store.disk import File
from hdlog.store.facts import Rows, add_up, read_rows, write_facts
from hdlog.store.store import Store

_MANY = 32
_SMALL = 1 << 16
"""Rows below which a file is small: what is merged again and again has no more than that."""
Merge = Callable[[Store, Sequence[File]], tuple[File, ...]]


def merge_piled(
    store: Store, files: Sequence[File], movable: Sequence[File], merge: Merge
) -> tuple[File, ...]:
    """Files with the small ones among the movable merged, if these are many."""
    pile = {f.path: f for f in movable if f.rows < _SMALL}
    if len(pile) < _MANY:
        return tuple(files)
    return (*(f for f in files if f.path not in pile), *merge(store, list(pile.values())))


def merge_facts(store: Store, files: Sequence[File]) -> tuple[File, ...]:
    parts: dict[int, list[Rows]] = {}
    for file in files:
        for rows in read_rows(store, file):
            parts.setdefault(rows.number, []).append(rows)
    return write_facts(store, (add_up(parts[number]) for number in sorted(parts)))
