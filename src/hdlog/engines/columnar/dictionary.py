"""Constants and their dense 32-bit ids."""

from __future__ import annotations

from collections.abc import Iterable
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from hdlog.engines.columnar.kernels import Ids
from hdlog.program.functions import INTEGER_TYPES, MAX_INTEGER, MIN_INTEGER
from hdlog.program.ntriples import parse_term, term_text
from hdlog.program.terms import XSD_DOUBLE, XSD_INTEGER, Constant

OTHER, INTEGER, DOUBLE, PLAIN = 0, 1, 2, 3
"""Kinds of terms: with a value of 64 bits, or plain: equal by value just when equal as terms."""
_INTEGER_MARKS = tuple(f'"^^<{t}>' for t in INTEGER_TYPES)
_INTEGER_MARK, _DOUBLE_MARK = f'"^^<{XSD_INTEGER}>', f'"^^<{XSD_DOUBLE}>'


class Dictionary:
    """Terms are kept as N-Triples text; ids are never taken back."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: list[str] = []
        self._kinds = np.empty(0, np.uint8)
        self._integers = np.empty(0, np.int64)
        self._doubles = np.empty(0, np.float64)
        self._lock = RLock()

    def __len__(self) -> int:
        return len(self._texts)

    def encode(self, texts: Iterable[str]) -> Ids:
        """The id of each text; new texts get the next ids."""
        ids, known = self._ids, self._texts
        found = []
        with self._lock:
            for text in texts:
                identifier = ids.get(text)
                if identifier is None:
                    identifier = ids[text] = len(known)
                    known.append(text)
                found.append(identifier)
        return np.array(found, np.uint32)

    def encode_terms(self, terms: Iterable[Constant]) -> Ids:
        return self.encode(map(term_text, terms))

    def encode_integers(self, values: NDArray[np.int64]) -> Ids:
        unique, inverse = np.unique(values, return_inverse=True)
        return self.encode(f'"{v}{_INTEGER_MARK}' for v in unique.tolist())[inverse]

    def texts(self, ids: Ids) -> list[str]:
        known = self._texts
        return [known[i] for i in ids.tolist()]

    def text(self, identifier: int) -> str:
        return self._texts[identifier]

    def term(self, identifier: int) -> Constant:
        return parse_term(self._texts[identifier])

    def find(self, term: Constant) -> int | None:
        return self._ids.get(term_text(term))

    def kinds(self, ids: Ids) -> NDArray[np.uint8]:
        self._classify()
        return self._kinds[ids]

    def integers(self, ids: Ids) -> NDArray[np.int64]:
        self._classify()
        return self._integers[ids]

    def doubles(self, ids: Ids) -> NDArray[np.float64]:
        self._classify()
        return self._doubles[ids]

    def _classify(self) -> None:
        """Kind and value of the terms that came since the last call."""
        with self._lock:
            start = len(self._kinds)
            if start == len(self._texts):
                return
            new = self._texts[start:]
            kinds = np.fromiter(map(_kind, new), np.uint8, len(new))
            integers, doubles = np.zeros(len(new), np.int64), np.zeros(len(new), np.float64)
            at = np.flatnonzero(kinds == INTEGER)
            integers[at] = [_integer(new[i]) for i in at.tolist()]
            doubles[at] = integers[at]
            at = np.flatnonzero(kinds == DOUBLE)
            doubles[at] = [_double(new[i]) for i in at.tolist()]
            self._integers = np.concatenate([self._integers, integers])
            self._doubles = np.concatenate([self._doubles, doubles])
            self._kinds = np.concatenate([self._kinds, kinds])


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
