"""Constants and their dense 32-bit ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import RLock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.kernels import Ids
from hdlog.engines.columnar.keys import UNKNOWN, KeyTable, PairTable, pack, part, part_columns, unpack
from hdlog.program.functions import INTEGER_TYPES, MAX_INTEGER, MIN_INTEGER
from hdlog.program.ntriples import SKOLEM, parse_term, term_text
from hdlog.program.terms import XSD_DOUBLE, XSD_INTEGER, Constant, Literal, Skolem

OTHER, INTEGER, DOUBLE, PLAIN = 0, 1, 2, 3
"""Kinds of terms: with a value of 64 bits, or plain: equal by value just when equal as terms."""
_MANY = 1000
_INTEGER_MARKS = tuple(f'"^^<{t}>' for t in INTEGER_TYPES)
_INTEGER_MARK, _DOUBLE_MARK = f'"^^<{XSD_INTEGER}>', f'"^^<{XSD_DOUBLE}>'


class TermSource(Protocol):
    """Terms that are kept elsewhere, such as in a store, with numbers from 0 on."""

    typed: bool
    """whether there may be a literal with a datatype or language among them"""

    def __len__(self) -> int: ...

    def find(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The number of each, -1 for those that are not there."""
        ...

    def texts(self, numbers: NDArray[np.int64] | None = None) -> list[str]:
        """The texts with these numbers, or all."""
        ...


class Dictionary:
    """Terms are kept as N-Triples text, integers as their value, Skolem terms as ids of their arguments.

    Ids are never taken back. Integers in their shortest form and Skolem terms have no text of their own until somebody
    asks for it: programs that compute, and tables of numbers, have millions of them.
    """

    def __init__(self) -> None:
        self._source: TermSource | None = None
        self._base = 0  # the first ids are those of the source
        self._base_values: tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.float64]] | None = None
        self._ids: dict[str, int] = {}
        self._texts: list[str | None] = []  # from here on, places are ids without the base
        self._numbers = KeyTable()
        self._number_ids = np.empty(0, np.uint32)  # by position in `_numbers`
        self._dense = np.empty(0, np.uint32)  # ids of small numbers that came in masses, by value
        self._arguments = PairTable()  # name and arguments of a Skolem term, from the left
        self._skolems = KeyTable()  # how many arguments, and their id in `_arguments`
        self._skolem_ids = np.empty(0, np.uint32)  # by position in `_skolems`, rising
        self._kinds = np.empty(0, np.uint8)
        self._integers = np.empty(0, np.int64)
        self._doubles = np.empty(0, np.float64)
        self._lock = RLock()

    def __len__(self) -> int:
        return self._base + len(self._texts)

    def lean_on(self, source: TermSource) -> None:
        """Take over the terms of a source with the numbers they have there; their texts stay where they are."""
        assert not len(self), "the first ids are those of the source"
        self._source, self._base = source, len(source)

    def encode(self, texts: Iterable[str]) -> Ids:
        """The id of each text; new texts get the next ids."""
        ids = self._ids
        if self._source is not None:
            texts = list(texts)
            with self._lock:
                unknown = [t for t in dict.fromkeys(texts) if t not in ids]
                if unknown:
                    found_there = self._source.find(unknown).tolist()
                    ids |= {t: n for t, n in zip(unknown, found_there, strict=True) if n >= 0}
        found = []
        with self._lock:
            for text in texts:
                identifier = ids.get(text)
                if identifier is None:
                    identifier = ids[text] = self._new(text)
                found.append(identifier)
        return np.array(found, np.uint32)

    def _new(self, text: str) -> int:
        if text.startswith(f"{SKOLEM}."):
            term = parse_term(text)
            assert isinstance(term, Skolem)
            columns = [self.encode_terms([argument]) for argument in term.arguments]
            return int(self.encode_skolems(term.name, columns, 1)[0])
        if text.endswith(_INTEGER_MARK) and _kind(text) == INTEGER:
            value = _integer(text)
            if text == f'"{value}{_INTEGER_MARK}':
                return int(self.encode_integers(np.array([value], np.int64))[0])
        self._texts.append(text)
        return len(self) - 1

    def encode_terms(self, terms: Iterable[Constant]) -> Ids:
        return self.encode(map(term_text, terms))

    def encode_integers(self, values: NDArray[np.int64]) -> Ids:
        with self._lock:
            if len(values) < _MANY or values.min() < 0 or values.max() >= 8 * len(values):
                return self._encode_integers(values)
            # Dense numbers, such as ids of another system: looked up by place, not by hash.
            room = int(values.max()) + 1 - len(self._dense)
            if room > 0:
                self._dense = np.concatenate([self._dense, np.full(room, UNKNOWN, np.uint32)])
            ids = self._dense[values]
            if (ids == UNKNOWN).any():
                wanted = np.zeros(len(self._dense), np.bool_)
                wanted[values] = True
                new = np.flatnonzero(wanted & (self._dense == UNKNOWN))
                self._dense[new] = self._encode_integers(new)
                ids = self._dense[values]
            return ids

    def _encode_integers(self, values: NDArray[np.int64]) -> Ids:
        with self._lock:
            known = self._numbers.size
            positions = self._numbers.positions(np.array(values, np.int64).view(np.uint64))
            new = self._numbers.size - known
            if new:
                ids = self._append(INTEGER, self._numbers.keys(known).view(np.int64))
                self._number_ids = _longer(self._number_ids, known, ids)
            return self._number_ids[positions]

    def encode_skolems(self, name: str, columns: Sequence[Ids], rows: int) -> Ids:
        """The Skolem terms with a name and, in each row, some arguments."""
        with self._lock:
            named = np.full(rows, self.encode_terms([Literal(name)])[0], np.uint32)
            combined = part(self._arguments, [named, *columns], rows)
            known = self._skolems.size
            widths = np.full(rows, len(columns), np.uint32)
            positions = self._skolems.positions(pack(widths, combined))
            new = self._skolems.size - known
            if new:
                ids = self._append(PLAIN, np.zeros(new, np.int64))
                self._skolem_ids = _longer(self._skolem_ids, known, ids)
            return self._skolem_ids[positions]

    def _append(self, kind: int, values: NDArray[np.int64]) -> Ids:
        """The ids of new terms without a text, one for each value."""
        self._classify()
        start, new = len(self._texts), len(values)
        self._texts += [None] * new
        self._kinds = _longer(self._kinds, start, np.full(new, kind, np.uint8))
        self._integers = _longer(self._integers, start, values)
        self._doubles = _longer(self._doubles, start, values.astype(np.float64))
        self._classified = start + new
        first = self._base + start
        return np.arange(first, first + new, dtype=np.uint32)

    def made_since(self, start: int) -> tuple[NDArray[np.bool_], list[tuple[str, Ids, list[Ids]]]]:
        """Of the ids from `start` on: which are integers without a text, and the Skolem terms by name: ids, arguments."""
        assert start >= self._base, "terms of the source are not made here"
        several = self._texts[start - self._base :]
        texts = np.fromiter((text is None for text in several), np.bool_, len(several))
        ids = np.arange(start, len(self), dtype=np.uint32)
        integers = texts & (self.kinds(ids) == INTEGER)
        first = int(np.searchsorted(self._skolem_ids[: self._skolems.size], start))
        made = self._skolem_ids[first : self._skolems.size]
        widths, combined = unpack(self._skolems.keys(first))
        found = []
        for width in np.unique(widths).tolist():
            chosen = widths == width
            names, *arguments = part_columns(self._arguments, combined[chosen], width + 1)
            for name in np.unique(names).tolist():
                named = names == name
                term = self.term(name)
                assert isinstance(term, Literal)
                found.append((term.lexical, made[chosen][named], [a[named] for a in arguments]))
        return integers, found

    def _skolem(self, identifier: int) -> Skolem:
        position = int(np.searchsorted(self._skolem_ids[: self._skolems.size], identifier))
        width, combined = unpack(self._skolems.keys(position)[:1])
        columns = part_columns(self._arguments, combined, int(width[0]) + 1)
        name, *arguments = (self.term(int(column[0])) for column in columns)
        assert isinstance(name, Literal)
        return Skolem(name.lexical, tuple(arguments))

    def texts(self, ids: Ids) -> list[str]:
        if self._source is None or not (there := ids < self._base).any():
            return [self.text(i) for i in ids.tolist()]
        kept = iter(self._source.texts(ids[there].astype(np.int64)))
        return [next(kept) if i < self._base else self.text(i) for i in ids.tolist()]

    def text(self, identifier: int) -> str:
        if identifier < self._base:
            (text,) = self.texts(np.array([identifier], np.uint32))
            return text
        place = identifier - self._base
        made = self._texts[place]
        if made is not None:
            return made
        if self._kinds[place] == INTEGER:
            return f'"{self._integers[place]}{_INTEGER_MARK}'
        return term_text(self._skolem(identifier))

    def term(self, identifier: int) -> Constant:
        return parse_term(self.text(identifier))

    def kinds(self, ids: Ids) -> NDArray[np.uint8]:
        self._classify()
        return self._values(0, ids)

    def integers(self, ids: Ids) -> NDArray[np.int64]:
        self._classify()
        return self._values(1, ids)

    def integer_values(self, ids: Ids) -> NDArray[np.int64] | None:
        return self.integers(ids) if (self.kinds(ids) == INTEGER).all() else None

    def doubles(self, ids: Ids) -> NDArray[np.float64]:
        self._classify()
        return self._values(2, ids)

    def _values(self, which: int, ids: Ids) -> NDArray[Any]:
        """Kinds (0), integers (1) or doubles (2) of terms."""
        own = (self._kinds, self._integers, self._doubles)[which]
        if self._source is None or not (there := ids < self._base).any():
            return own[ids - np.uint32(self._base)] if self._base else own[ids]
        found = np.empty(len(ids), own.dtype)
        found[~there] = own[ids[~there] - np.uint32(self._base)]
        if which == 0 and not self._source.typed:
            found[there] = PLAIN
            return found
        with self._lock:
            if self._base_values is None:
                self._base_values = _classified(self._source.texts())
        found[there] = self._base_values[which][ids[there]]
        return found

    _classified = 0

    def _classify(self) -> None:
        """Kind and value of the terms that came since the last call."""
        with self._lock:
            start = self._classified
            if start == len(self._texts):
                return
            kinds, integers, doubles = _classified([text or "" for text in self._texts[start:]])
            self._integers = _longer(self._integers, start, integers)
            self._doubles = _longer(self._doubles, start, doubles)
            self._kinds = _longer(self._kinds, start, kinds)
            self._classified = len(self._texts)


def _classified(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.float64]]:
    """Kinds and values of terms."""
    kinds = np.fromiter(map(_kind, texts), np.uint8, len(texts))
    integers, doubles = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.float64)
    at = np.flatnonzero(kinds == INTEGER)
    integers[at] = [_integer(texts[i]) for i in at.tolist()]
    doubles[at] = integers[at]
    at = np.flatnonzero(kinds == DOUBLE)
    doubles[at] = [_double(texts[i]) for i in at.tolist()]
    return kinds, integers, doubles


def _longer(array: NDArray[Any], used: int, more: NDArray[Any]) -> NDArray[Any]:
    """The array with more behind its used part, in room that grows by doubling."""
    if used + len(more) > len(array):
        room = np.zeros(max(used + len(more), 2 * len(array)), array.dtype)
        room[:used] = array[:used]
        array = room
    array[used : used + len(more)] = more
    return array


def _kind(text: str) -> int:
    if text[0] != '"' or text[-1] == '"':
        return PLAIN
    if text.endswith(_INTEGER_MARKS):
        digits = text[1 : text.rindex('"')]
        signless = digits[1:] if digits[:1] in ("+", "-") else digits
        if signless.isascii() and signless.isdigit() and len(signless) < 25:
            return INTEGER if MIN_INTEGER <= int(digits) <= MAX_INTEGER else OTHER
    elif text.endswith(_DOUBLE_MARK):
        digits = text[1 : text.rindex('"')]
        return (
            DOUBLE
            if digits[:1] in "+-.0123456789" and digits[-1:].isdigit() and _is_double(digits)
            else OTHER
        )
    return OTHER


def _is_double(digits: str) -> bool:
    return all(c in "+-.0123456789eE" for c in digits)


def _integer(text: str) -> int:
    return int(text[1 : text.rindex('"')])


def _double(text: str) -> float:
    return float(text[1 : text.rindex('"')])
