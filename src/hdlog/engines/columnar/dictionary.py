"""Constants and their dense 32-bit ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from threading import RLock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdlog.engines.columnar.budget import Budget
from hdlog.engines.columnar.integers import IntegerIds
from hdlog.engines.columnar.kernels import Ids, Rows
from hdlog.engines.columnar.keys import UNKNOWN
from hdlog.engines.columnar.layers import Column
from hdlog.engines.columnar.skolems import SkolemTable
from hdlog.engines.columnar.term_source import TermSource
from hdlog.engines.encoding import number_distinct
from hdlog.program.ntriples import SKOLEM, SkolemPart, parse_term, skolem_parts, term_text, unquote
from hdlog.program.terms import Constant, Literal
from hdlog.reading.identifiers import INTEGER_MARK, INTEGERS
from hdlog.reading.kernels import DOUBLE, INTEGER, OTHER, PLAIN
from hdlog.reading.shared_terms import SharedTerms
from hdlog.reading.term_table import FrozenTexts, TermTable, classify
from hdlog.tuning import Numbers

__all__ = ["DOUBLE", "INTEGER", "OTHER", "PLAIN", "Dictionary"]

_NO_TEXT = -1
_WORTH_A_LOOK, _BYTES_A_TERM = 10_000, 100
"""Terms that come together before somebody looks at the memory, and about what each takes."""
_MOST_CONSTANTS = 100_000


class Dictionary:
    """Terms are kept as N-Triples text, integers as their value, Skolem terms as ids of their arguments.

    Integers in their shortest form and Skolem terms have no text of their own until somebody asks for it: programs that
    compute, and tables of numbers, have millions of them.

    An id is given when everything that is known of its term has its place; what an error cut off before that is found and
    completed by whoever comes next.
    """

    def __init__(
        self, dense: int = Numbers.dense_integers, frozen: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        """`frozen`: terms that are kept elsewhere, as `freeze` gives them."""
        kept = frozen or {}
        self.budget: Budget | None = None
        self._enough = dense
        self._source: TermSource | None = None
        self._base = 0  # the first ids are those of the source
        self._base_values: tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.float64]] | None = None
        texts = FrozenTexts(kept["slots"], kept["text"], kept["starts"]) if frozen else None
        self._terms = TermTable(texts) if texts is not None else TermTable()
        self._text_ids = Column(np.uint32, kept.get("text_ids"))  # by number of a text in `_terms`
        self._known_texts = len(self._terms)  # how many of them have an id, or wait as Skolem terms
        self._waiting: list[int] = []  # numbers of texts that spell out Skolem terms, and have no id yet
        self._constants: dict[Constant, int] = {}
        numbers = ((kept["numbers"], kept["number_slots"]), kept["number_ids"]) if frozen else None
        self._numbers = IntegerIds(dense, self._append_integers, numbers)
        self._skolems = SkolemTable({n[7:]: a for n, a in kept.items() if n.startswith("skolem_")} or None)
        self._kinds = Column(np.uint8, kept.get("kinds"))
        self._integers = Column(np.int64, kept.get("integers"))
        self._doubles = Column(np.float64, kept.get("doubles"))
        self._texts = Column(np.int32, kept.get("texts"))  # the number of the text, if there is one
        self._size = self._kinds.frozen  # from here on, places are ids without the base
        self._lock = RLock()

    def freeze(self) -> dict[str, NDArray[Any]]:
        """All terms as arrays, to be kept elsewhere."""
        assert self._source is None, "what is kept elsewhere is there"
        self._give_ids(len(self._terms))  # somebody may have shared the table, and failed
        texts = self._terms.freeze()
        (numbers, number_slots), number_ids = self._numbers.freeze()
        return {
            "slots": texts.slots,
            "text": texts.texts,
            "starts": texts.starts,
            "text_ids": self._text_ids.since(0, self._known_texts),
            "numbers": numbers,
            "number_slots": number_slots,
            "number_ids": number_ids,
            **{f"skolem_{name}": array for name, array in self._skolems.freeze().items()},
            "kinds": self._kinds.since(0, self._size),
            "integers": self._integers.since(0, self._size),
            "doubles": self._doubles.since(0, self._size),
            "texts": self._texts.since(0, self._size),
        }

    def __len__(self) -> int:
        return self._base + self._size

    def lean_on(self, source: TermSource) -> None:
        """Take over the terms of a source with the numbers they have there; their texts stay where they are."""
        assert not len(self), "the first ids are those of the source"
        self._source, self._base = source, len(source)

    # Ids of terms.

    def encode(self, texts: Iterable[str] | pa.Array) -> Ids:
        """The id of each text; new texts get the next ids."""
        array = texts if isinstance(texts, pa.Array) else pa.array(list(texts), pa.string())
        self.check_memory(len(array), "a list of terms")
        with self._lock:
            numbers = self._terms.add_texts(array)
            self._give_ids(len(self._terms))
            return self.translate(numbers, self._text_ids)

    def share(self) -> SharedTerms:
        """The table of texts, for others to add to; `ids_of_shared` gives them ids."""
        return SharedTerms(self._terms, self._lock)

    def ids_of_shared(self, known: int) -> Column:
        """The ids of the first texts of the table, by number."""
        with self._lock:
            new = known - self._known_texts
            if new > 0:
                self.check_memory(new, "a list of terms")
                self._give_ids(known)
            return self._text_ids

    def check_memory(self, more: int, what: str) -> None:
        """Refuse what does not fit, where there is a budget."""
        if self.budget is not None and more > _WORTH_A_LOOK:
            self.budget.check(more, _BYTES_A_TERM, what, piecemeal=True)

    def translate(self, numbers: Rows, ids: Ids | Column) -> Ids:
        """Numbers of texts, or ids of integers below zero, as ids: the texts have the given ones."""
        inline = numbers < 0
        if not inline.any():
            return ids[numbers]
        if inline.all():
            return self.encode_integers(numbers - np.int64(INTEGERS))
        translated = np.empty(len(numbers), np.uint32)
        translated[~inline] = ids[numbers[~inline]]
        translated[inline] = self.encode_integers(numbers[inline] - np.int64(INTEGERS))
        return translated

    def _give_ids(self, known: int) -> None:
        """Ids for those of the first texts that have none yet."""
        first, new = self._known_texts, known - self._known_texts
        if new > 0:
            texts = self._terms.array(first)[:new]
            kinds, integers, doubles, shortest = classify(texts)
            ids = np.full(new, UNKNOWN, np.uint32)
            if self._source is not None:
                numbers = self._source.find(texts)
                ids[numbers >= 0] = numbers[numbers >= 0]
            made = np.flatnonzero(shortest & (ids == UNKNOWN))
            ids[made] = self.encode_integers(integers[made])  # too large to be inline
            skolems = np.flatnonzero(pc.starts_with(texts, SKOLEM).to_numpy(zero_copy_only=False))
            rest = ids == UNKNOWN
            rest[[i for i in skolems.tolist() if skolem_parts(texts[i].as_py()) is not None]] = False
            at = np.flatnonzero(rest)
            ids[at] = self._append(kinds[at], integers[at], doubles[at], at + first)
            waiting = (np.flatnonzero(ids == UNKNOWN) + first).tolist()
            self._text_ids.write(first, ids)
            self._waiting += waiting
            self._known_texts = first + new
        while self._waiting:
            number = self._waiting[-1]
            parts = skolem_parts(self._terms.text(number))
            assert parts is not None, "only Skolem terms wait"
            self._text_ids.set(number, self._encode_parts(parts))
            self._waiting.pop()

    def _encode_parts(self, parts: Sequence[SkolemPart]) -> int:
        made: list[Ids] = []
        waiting, self._waiting = self._waiting, []  # none of them is among the arguments
        try:
            for name, arguments in parts:
                columns = [made[a] if isinstance(a, int) else self.encode([a]) for a in arguments]
                made.append(self.encode_skolems(name, columns, 1))
        finally:
            self._waiting += waiting
        return int(made[-1][0])

    def encode_terms(self, terms: Iterable[Constant]) -> Ids:
        return self.encode(map(term_text, terms))

    def constant(self, term: Constant) -> np.uint32:
        """The id of a term that comes again and again."""
        known = self._constants.get(term)
        if known is None:
            known = int(self.encode_terms([term])[0])
            if len(self._constants) < _MOST_CONSTANTS:
                self._constants[term] = known
        return np.uint32(known)

    def encode_integers(self, values: NDArray[np.int64]) -> Ids:
        with self._lock:
            return self._numbers.encode(values)

    def _append_integers(self, values: NDArray[np.int64]) -> Ids:
        return self._append_untexted(INTEGER, values)

    def encode_skolems(self, name: str, columns: Sequence[Ids], rows: int) -> Ids:
        """The Skolem terms with a name and, in each row, some arguments."""
        with self._lock:
            named = int(self.constant(Literal(name)))
            return self._skolems.encode(named, columns, rows, self._append_skolems)

    def _append_skolems(self, count: int) -> Ids:
        return self._append_untexted(PLAIN, np.zeros(count, np.int64))

    def _append_untexted(self, kind: int, values: NDArray[np.int64]) -> Ids:
        kinds, texts = np.full(len(values), kind, np.uint8), np.full(len(values), _NO_TEXT)
        return self._append(kinds, values, values.astype(np.float64), texts)

    def _append(
        self, kinds: NDArray[np.uint8], integers: NDArray[np.int64], doubles: NDArray[np.float64], texts: Rows
    ) -> Ids:
        """The ids of new terms."""
        start, new = self._size, len(kinds)
        first = self._base + start
        ids = np.arange(first, first + new, dtype=np.uint32)
        self._kinds.write(start, kinds)
        self._integers.write(start, integers)
        self._doubles.write(start, doubles)
        self._texts.write(start, texts.astype(np.int32))
        self._size = start + new
        return ids

    def take_apart(
        self, ids: Ids
    ) -> tuple[NDArray[np.bool_], list[tuple[str, Ids, list[Ids]]], NDArray[np.bool_]]:
        """Which terms are integers without a text, the Skolem terms by name: ids, arguments, and which have a text."""
        texted = self._texts[ids] != _NO_TEXT
        integers = ~texted & (self._kinds[ids] == INTEGER)
        made = np.sort(ids[~texted & ~integers])
        groups = [(self._name(name), own, args) for name, own, args in self._skolems.take_apart(made)]
        return integers, groups, texted

    def _name(self, identifier: int) -> str:
        return unquote(self.text(identifier))

    # Without what nobody uses.

    @property
    def leans(self) -> bool:
        """Whether terms are kept elsewhere."""
        return self._source is not None or self._kinds.frozen > 0

    def mark_parts(self, used: NDArray[np.bool_]) -> None:
        """Mark what used Skolem terms are made of."""
        skolems = self._skolems.groups()
        while True:
            before = int(np.count_nonzero(used))
            for name, ids, arguments in skolems:
                chosen = used[ids]
                for column in arguments:
                    used[column[chosen]] = True
                used[name] |= bool(chosen.any())
            if int(np.count_nonzero(used)) == before:
                return

    def without_unused(self, used: NDArray[np.bool_]) -> tuple[Dictionary, Ids]:
        """A dictionary with the used terms only, in the same order, and the new id of each old one."""
        assert not self.leans, "what is kept elsewhere stays there"
        old = np.flatnonzero(used)
        ids = np.full(len(used), UNKNOWN, np.uint32)
        ids[old] = np.arange(len(old), dtype=np.uint32)
        fresh = Dictionary(self._enough)
        fresh.budget = self.budget
        numbers = self._texts[old]
        texted = np.flatnonzero(numbers != _NO_TEXT)
        fresh._terms.add_texts(self._terms.take(numbers[texted].astype(np.int64)))
        places = np.full(len(old), _NO_TEXT)
        places[texted] = np.arange(len(texted))
        fresh._append(self._kinds[old], self._integers[old], self._doubles[old], places)
        fresh._text_ids.write(0, texted.astype(np.uint32))
        fresh._known_texts = len(texted)
        whole = np.flatnonzero((numbers == _NO_TEXT) & (self._kinds[old] == INTEGER))
        fresh._numbers.add(self._integers[old][whole], whole.astype(np.uint32))
        fresh._skolems = self._skolems.without_unused(ids, UNKNOWN)
        return fresh, ids

    # Terms of ids.

    def texts(self, ids: Ids) -> list[str]:
        return [str(text) for text in self.text_array(ids).to_pylist()]

    def text_array(self, ids: Ids) -> pa.Array:
        """The N-Triples text of each id."""
        if not len(ids):
            return pa.array([], pa.large_string())
        there = ids < self._base
        own = np.where(there, 0, ids.astype(np.int64) - self._base)
        numbers = np.where(there, _NO_TEXT, self._texts[own] if self._size else _NO_TEXT).astype(np.int64)
        if (numbers >= 0).all():
            return self._terms.take(numbers)
        parts = [self._terms.take(numbers[numbers >= 0])]
        places = [np.flatnonzero(numbers >= 0)]
        if there.any():
            assert self._source is not None, "ids below the base are those of the source"
            parts.append(self._source.take(ids[there].astype(np.int64)))
            places.append(np.flatnonzero(there))
        rest = ~there & (numbers < 0)
        is_integer = rest.copy()
        is_integer[rest] = self._kinds[own[rest]] == INTEGER
        values = pa.array(self._integers[own[is_integer]]).cast(pa.string()).cast(pa.large_string())
        parts.append(pc.binary_join_element_wise(*_make_large('"'), values, *_make_large(INTEGER_MARK, "")))
        places.append(np.flatnonzero(is_integer))
        skolems = np.flatnonzero(rest & ~is_integer)
        spelt = self._skolems.spell_out(ids[skolems], self.texts) if len(skolems) else []
        parts.append(pa.array(spelt, pa.large_string()))
        places.append(skolems)
        order = np.empty(len(ids), np.int64)
        order[np.concatenate(places)] = np.arange(len(ids))
        return pa.concat_arrays(parts).take(pa.array(order))

    def text(self, identifier: int) -> str:
        (text,) = self.texts(np.array([identifier], np.uint32))
        return text

    def term(self, identifier: int) -> Constant:
        return parse_term(self.text(identifier))

    def terms(self, ids: Ids) -> list[Constant]:
        """The terms of ids, each of them made once."""
        unique, inverse = number_distinct(ids)
        made = [parse_term(text) for text in self.texts(unique)]
        return [made[i] for i in inverse.tolist()]

    # Values of terms.

    def kinds(self, ids: Ids) -> NDArray[np.uint8]:
        return self._values(0, ids)

    def integers(self, ids: Ids) -> NDArray[np.int64]:
        return self._values(1, ids)

    def integer_values(self, ids: Ids) -> NDArray[np.int64] | None:
        """Integers that are written in their shortest form; others are terms of their own."""
        if self._base and (ids < self._base).any():
            return None
        texted = self._texts[ids - np.uint32(self._base)] != _NO_TEXT
        return self.integers(ids) if not texted.any() and (self.kinds(ids) == INTEGER).all() else None

    def doubles(self, ids: Ids) -> NDArray[np.float64]:
        return self._values(2, ids)

    def double_values(self, ids: Ids) -> NDArray[np.float64] | None:
        return self.doubles(ids) if (self.kinds(ids) == DOUBLE).all() else None

    def _values(self, which: int, ids: Ids) -> NDArray[Any]:
        """Kinds (0), integers (1) or doubles (2) of terms."""
        own = (self._kinds, self._integers, self._doubles)[which]
        if self._source is None or not (there := ids < self._base).any():
            return own[ids - np.uint32(self._base)] if self._base else own[ids]
        values = np.empty(len(ids), own.dtype)
        values[~there] = own[ids[~there] - np.uint32(self._base)]
        if which == 0 and not self._source.typed:
            values[there] = PLAIN
            return values
        with self._lock:
            if self._base_values is None:
                self._base_values = classify(self._source.take())[:3]
        values[there] = self._base_values[which][ids[there]]
        return values


def _make_large(*texts: str) -> list[pa.Scalar]:
    return [pa.scalar(text, pa.large_string()) for text in texts]
