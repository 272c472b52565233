"""Skolem terms as ids of their name and arguments; their texts are spelt out when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.kernels import Ids, Rows
from hdlog.engines.columnar.kernels.halves import pack, unpack
from hdlog.engines.columnar.keys import KeyTable, PairTable, part, part_columns
from hdlog.engines.columnar.layers import Column
from hdlog.errors import TermTooLarge
from hdlog.program.ntriples import MOST_CHARACTERS, SKOLEM, skolem_token, text_token, unquote

_PLAIN = 100.0
"""Characters that an argument is taken to have which is no Skolem term."""
Group = tuple[int, Ids, list[Ids]]
"""Skolem terms of one name and as many arguments: the id of the name, ids, arguments."""
NamedGroup = tuple[str, Ids, list[Ids]]
"""Likewise, with the name itself."""


class SkolemTable:
    """A term that is made of others comes after them: its id is larger."""

    def __init__(self, frozen: Mapping[str, NDArray[Any]] | None = None) -> None:
        """`frozen`: terms that are kept elsewhere, as `freeze` gives them."""
        kept = frozen or {}
        self._arguments = PairTable((kept["arguments"], kept["argument_slots"]) if kept else None)
        """names and arguments, from the left"""
        self._keys = KeyTable((kept["keys"], kept["key_slots"]) if kept else None)
        """how many arguments, and their id in `_arguments`"""
        self._ids = Column(np.uint32, kept.get("ids"))  # by position in `_keys`, rising
        self._lengths = Column(np.float64, kept.get("lengths"))  # about how long their texts are
        self._known = self._keys.size  # how many of them have an id

    def freeze(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        arguments, argument_slots = self._arguments.freeze()
        keys, key_slots = self._keys.freeze()
        return {
            "arguments": arguments,
            "argument_slots": argument_slots,
            "keys": keys,
            "key_slots": key_slots,
            "ids": self._ids.since(0, self._known),
            "lengths": self._lengths.since(0, self._known),
        }

    def encode(self, name: int, columns: Sequence[Ids], rows: int, give_ids: Callable[[int], Ids]) -> Ids:
        """The ids of terms with a name and, in each row, some arguments; new ones get theirs from `give_ids`."""
        lengths = sum((self._measure(c) for c in columns), np.full(rows, _PLAIN))
        if rows and lengths.max() > MOST_CHARACTERS:
            raise TermTooLarge(MOST_CHARACTERS)
        combined = part(self._arguments, [np.full(rows, name, np.uint32), *columns], rows)
        positions = self._keys.positions(pack(np.full(rows, len(columns), np.uint32), combined))
        new = self._keys.size - self._known
        if new:
            of_new = np.full(new, _PLAIN)
            fresh = positions >= self._known
            of_new[positions[fresh] - self._known] = lengths[fresh]
            self._lengths.write(self._known, of_new)
            self._ids.write(self._known, give_ids(new))
            self._known = self._keys.size
        return self._ids[positions]

    def _measure(self, ids: Ids) -> NDArray[np.float64]:
        """About how long the texts of terms are."""
        lengths = np.full(len(ids), _PLAIN)
        places = self._find(ids)
        lengths[places >= 0] = self._lengths[places[places >= 0]]
        return lengths

    def _find(self, ids: Ids) -> Rows:
        """The positions of Skolem terms among some ids, -1 for other terms."""
        places = np.full(len(ids), -1)
        frozen = self._ids.frozen
        for first, mine in ((0, self._ids.base), (frozen, self._ids.since(frozen, self._known))):
            if len(mine):
                at = np.minimum(np.searchsorted(mine, ids), len(mine) - 1)
                places = np.where(mine[at] == ids, at + first, places)
        return places

    def groups(self, start: int = 0) -> list[Group]:
        """The terms with ids from `start` on."""
        first = int(np.searchsorted(self._ids.since(0, self._known), start)) if start else 0
        return self._take_apart(np.arange(first, self._known))

    def take_apart(self, ids: Ids) -> list[Group]:
        """Some terms."""
        return self._take_apart(self._find(ids))

    def _take_apart(self, positions: Rows) -> list[Group]:
        widths, combined = unpack(self._keys.take(positions))
        ids = self._ids[positions]
        groups: list[Group] = []
        for width in np.unique(widths).tolist():
            chosen = widths == width
            names, *arguments = part_columns(self._arguments, combined[chosen], width + 1)
            for name in np.unique(names).tolist():
                named = names == name
                groups.append((name, ids[chosen][named], [a[named] for a in arguments]))
        return groups

    def spell_out(self, ids: Ids, texts: Callable[[Ids], Sequence[str]]) -> list[str]:
        """The texts of Skolem terms; `texts` are those of other terms."""

        def take_apart(some: Ids) -> list[NamedGroup]:
            groups = self._take_apart(self._find(some[self._find(some) >= 0]))
            names = texts(np.array([name for name, *_ in groups], np.uint32))
            return [(unquote(n), own, args) for n, (_, own, args) in zip(names, groups, strict=True)]

        return spell_out(ids, take_apart, lambda plain: [text_token(text) for text in texts(plain)])

    def without_unused(self, ids: Ids, unknown: np.uint32) -> SkolemTable:
        """The same with new ids: those of terms that are gone are `unknown`."""
        fresh = SkolemTable()
        moved: list[tuple[Ids, Ids, Ids]] = []
        for name, members, arguments in self.groups():
            chosen = ids[members] != unknown
            rows = int(np.count_nonzero(chosen))
            named = np.full(rows, ids[name], np.uint32)
            combined = part(fresh._arguments, [named, *(ids[a[chosen]] for a in arguments)], rows)
            moved.append((ids[members[chosen]], np.full(rows, len(arguments), np.uint32), combined))
        if moved:
            new, widths, combined = (np.concatenate(c) for c in zip(*moved, strict=True))
            order = np.argsort(new)
            fresh._keys.positions(pack(widths[order], combined[order]))
            fresh._ids.write(0, new[order])
            fresh._known = len(new)
            kept = ids[self._ids.since(0, self._known)] != unknown
            fresh._lengths.write(0, self._lengths.since(0, self._known)[kept])
        return fresh


def spell_out(
    ids: Ids, take_apart: Callable[[Ids], Sequence[NamedGroup]], tokens: Callable[[Ids], Sequence[str]]
) -> list[str]:
    """The texts of Skolem terms; what they share is spelt out once.

    `take_apart` gives those among some terms that are Skolem terms with name and arguments, `tokens` what other terms add to a text.
    """
    parts: dict[int, tuple[str, list[int]]] = {}
    waiting = np.unique(ids)
    while len(waiting):
        arguments: list[Ids] = []
        for name, members, columns in take_apart(waiting):
            rows = zip(*(c.tolist() for c in columns), strict=True) if columns else [()] * len(members)
            parts |= {i: (name, list(row)) for i, row in zip(members.tolist(), rows, strict=True)}
            arguments += columns
        below = np.unique(np.concatenate(arguments)) if arguments else waiting[:0]
        waiting = below[[i not in parts for i in below.tolist()]] if len(below) else below
    others = np.array(sorted({a for _, row in parts.values() for a in row if a not in parts}), np.uint32)
    spelt: dict[int, str] = dict(zip(others.tolist(), tokens(others), strict=True))
    for root in parts:
        stack = [root]
        while stack:
            name, row = parts[stack[-1]]
            missing = [a for a in row if a not in spelt]
            if missing:
                stack += missing
                continue
            text = ".".join([skolem_token(name, len(row)), *(spelt[a] for a in row)])
            if len(text) > MOST_CHARACTERS:
                raise TermTooLarge(MOST_CHARACTERS)
            spelt[stack.pop()] = text
    return [SKOLEM + spelt[i] for i in ids.tolist()]
