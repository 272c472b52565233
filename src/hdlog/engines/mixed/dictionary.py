"""Terms with both ids: those of the store, which Spark works with, and dense ones of 32 bits, which the embedded engine does.

The id of a term in a store follows from the term, so the dense one is just the place of that id in a table: whatever comes from Spark has a
place before anybody has seen its text. Texts of such terms are asked for when somebody wants to read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import RLock
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdlog.engines.columnar.budget import Budget
from hdlog.engines.columnar.dictionary import DOUBLE, INTEGER, PLAIN
from hdlog.engines.columnar.kernels import Ids, Rows
from hdlog.engines.columnar.keys import KeyTable
from hdlog.engines.columnar.layers import Column
from hdlog.engines.columnar.skolems import NamedGroup, spell_out
from hdlog.engines.encoding import number_distinct
from hdlog.errors import TermTooLarge
from hdlog.program.ntriples import (
    MOST_CHARACTERS,
    SKOLEM,
    parse_term,
    skolem_parts,
    term_text,
    text_token,
)
from hdlog.program.terms import Constant
from hdlog.reading.identifiers import (
    INTEGER_LIMIT,
    INTEGER_MARK,
    INTEGERS,
    SKOLEMS,
    StoreIds,
    next_id,
    skolem_ids,
    text_ids,
)
from hdlog.reading.shared_terms import SharedTerms
from hdlog.reading.term_table import TermTable, classify

_NO_TEXT = -1
_UNSEEN = 255
"""The kind of a term that nobody has seen."""
_MOST_CONSTANTS = 100_000
_WORTH_A_LOOK, _BYTES_A_TERM = 10_000, 100
"""Terms that come together before somebody looks at the memory, and about what each takes."""
SkolemGroup = tuple[str, StoreIds, list[StoreIds]]
"""Skolem terms of one name: their ids, and those of their arguments."""


class Elsewhere(Protocol):
    """Where the texts are of terms that nobody has seen here."""

    clashes: dict[str, int]
    typed: bool

    def fetch_texts(self, ids: StoreIds) -> tuple[StoreIds, pa.Array]:
        """Ids with their texts, in any order."""


class MixedDictionary:
    """What the embedded engine asks of its dictionary, with the place of an id of the store as the id of a term."""

    def __init__(self, far: Elsewhere) -> None:
        self.budget: Budget | None = None
        self.leans = True
        """the terms are kept elsewhere, too"""
        self._far = far
        self._keys = KeyTable()  # ids of the store, by id
        self._terms = TermTable()
        self._text_ids = Column(np.uint32)  # by number of a text
        self._known_texts = 0  # how many of them have an id
        self._known = 0  # how many ids have their values
        self._kinds = Column(np.uint8)
        self._integers = Column(np.int64)
        self._doubles = Column(np.float64)
        self._lengths = Column(np.float64)  # about how long the texts of Skolem terms are
        self._numbers = Column(np.int64)  # of their texts
        self._skolems: list[tuple[str, Ids, list[Ids]]] = []
        self._skolem_places: tuple[int, Ids, Rows, Rows] = (0, *(np.empty(0, np.int64),) * 3)  # type: ignore[assignment]
        self._constants: dict[Constant, int] = {}
        self._taken = 0  # texts, and groups of Skolem terms, that are known elsewhere
        self._taken_skolems = 0
        self._fetched: list[tuple[int, int]] = []  # texts that came from there
        self._expected: list[Ids] = []
        self._lock = RLock()

    def __len__(self) -> int:
        return self._keys.size

    # Between the two ids.

    def near_ids(self, ids: StoreIds) -> Ids:
        """The ids of terms that are known elsewhere."""
        if not ids.flags.writeable:  # Arrow's are not, and loops ask for arrays that are
            ids = ids.copy()
        with self._lock:
            near = self._keys.positions(ids.view(np.uint64))
            self._note_new()
            return near

    def store_ids(self, ids: Ids) -> StoreIds:
        return self._keys.take(ids).view(np.int64)

    def _note_new(self) -> None:
        """What an id of the store tells by itself."""
        new = self._keys.keys(self._known).view(np.int64)
        if not len(new):
            return
        numbers = new < 0
        values = np.where(numbers, new - np.int64(INTEGERS), 0)
        self._kinds.write(self._known, np.where(numbers, INTEGER, _UNSEEN).astype(np.uint8))
        self._integers.write(self._known, values)
        self._doubles.write(self._known, values.astype(np.float64))
        self._lengths.write(self._known, np.full(len(new), 100.0))
        self._numbers.write(self._known, np.full(len(new), _NO_TEXT))
        self._known += len(new)

    # Ids of terms.

    def encode(self, texts: Iterable[str] | pa.Array) -> Ids:
        """The id of each text; new texts get new ids."""
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
            if known > self._known_texts:
                self.check_memory(known - self._known_texts, "a list of terms")
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
        translated = np.empty(len(numbers), np.uint32)
        translated[~inline] = ids[numbers[~inline]]
        translated[inline] = self.near_ids(numbers[inline])  # in a store they are their own ids, too
        return translated

    def _give_ids(self, known: int) -> None:
        """Ids for those of the first texts that have none yet."""
        first = self._known_texts
        if known <= first:
            return
        texts = self._terms.array(first)[: known - first]
        ids = np.empty(len(texts), np.uint32)
        skolems = {}
        for place in np.flatnonzero(pc.starts_with(texts, SKOLEM).to_numpy(zero_copy_only=False)).tolist():
            parts = skolem_parts(texts[place].as_py())
            if parts is not None:
                skolems[place] = parts
        plain = np.ones(len(texts), np.bool_)
        plain[list(skolems)] = False
        places = np.flatnonzero(plain)
        own = texts.take(pa.array(places)) if skolems else texts
        near = self._identify(own)
        kinds, integers, doubles, _ = classify(own)
        ids[places] = near
        self._kinds.put(near, kinds)
        self._integers.put(near, integers)
        self._doubles.put(near, doubles)
        self._numbers.put(near, places + first)
        self._far.typed = self._far.typed or is_any_typed(own)
        self._text_ids.write(first, ids)
        self._known_texts = known
        for place, parts in skolems.items():
            made: list[Ids] = []
            for name, arguments in parts:
                columns = [made[a] if isinstance(a, int) else self.encode([a]) for a in arguments]
                made.append(self.encode_skolems(name, columns, 1))
            self._text_ids.set(first + place, int(made[-1][0]))

    def _identify(self, texts: pa.Array) -> Ids:
        """The ids of new texts: places of their hashes, but for those whose hash belongs to another text that was seen here."""
        hashes = text_ids(texts, self._far.clashes)
        before = self._known
        near = self.near_ids(hashes)
        known = near < before
        if len(self) - before == int(np.count_nonzero(~known)) and (
            not known.any() or (self._numbers[near[known]] == _NO_TEXT).all()
        ):
            return near
        taken = {int(i) for i in near[known & (self._numbers[near] != _NO_TEXT)]}
        for place, identifier in enumerate(near.tolist()):
            if identifier in taken:
                near[place] = self._find_free(texts[place].as_py(), int(hashes[place]))
            taken.add(int(near[place]))
        return near

    def _find_free(self, text: str, identifier: int) -> int:
        """An id for a text whose hash belongs to another."""
        while self._keys.positions(np.array([identifier]).view(np.uint64), grow=False)[0] < self._known:
            identifier = next_id(identifier)
        self._far.clashes[text] = identifier
        return int(self.near_ids(np.array([identifier]))[0])

    def set_apart(self, text: str, identifier: int) -> None:
        """Note that a text has another id than its hash from now on, which belongs to a text that is kept elsewhere."""
        self._far.clashes[text] = next_id(identifier)

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
        small = (values > -INTEGER_LIMIT) & (values < INTEGER_LIMIT)
        if small.all():
            return self.near_ids(values + np.int64(INTEGERS))
        ids = np.empty(len(values), np.uint32)
        ids[small] = self.near_ids(values[small] + np.int64(INTEGERS))
        ids[~small] = self.encode(f'"{value}{INTEGER_MARK}' for value in values[~small].tolist())
        return ids

    def encode_skolems(self, name: str, columns: Sequence[Ids], rows: int) -> Ids:
        """The Skolem terms with a name and, in each row, some arguments."""
        with self._lock:
            lengths = sum((self._lengths[c] for c in columns), np.full(rows, 100.0))
            if rows and lengths.max() > MOST_CHARACTERS:
                raise TermTooLarge(MOST_CHARACTERS)
            ids = self.near_ids(skolem_ids(name, [self.store_ids(c) for c in columns], rows))
            new = np.flatnonzero(self._kinds[ids] == _UNSEEN)
            if len(new):
                fresh, first = np.unique(ids[new], return_index=True)
                at = new[first]
                self._kinds.put(fresh, np.full(len(fresh), PLAIN, np.uint8))
                self._lengths.put(fresh, lengths[at])
                self._skolems.append((name, fresh, [c[at] for c in columns]))
            return ids

    # Terms of ids.

    def texts(self, ids: Ids) -> list[str]:
        return [str(text) for text in self.text_array(ids).to_pylist()]

    def text_array(self, ids: Ids) -> pa.Array:
        """The N-Triples text of each id."""
        if not len(ids):
            return pa.array([], pa.large_string())
        self._see(ids)
        numbers = self._numbers[ids]
        if (numbers != _NO_TEXT).all():
            return self._terms.take(numbers)
        texted = np.flatnonzero(numbers != _NO_TEXT)
        rest = np.flatnonzero(numbers == _NO_TEXT)
        is_number = self._kinds[ids[rest]] == INTEGER
        whole, skolems = rest[is_number], rest[~is_number]
        values = pa.array(self._integers[ids[whole]]).cast(pa.large_string())
        marks = [pa.scalar(text, pa.large_string()) for text in ('"', INTEGER_MARK, "")]
        parts = [
            self._terms.take(numbers[texted]),
            pc.binary_join_element_wise(marks[0], values, *marks[1:]),
            pa.array(spell_out(ids[skolems], self._take_apart, self._tokens), pa.large_string()),
        ]
        order = np.empty(len(ids), np.int64)
        order[np.concatenate([texted, whole, skolems])] = np.arange(len(ids))
        return pa.concat_arrays(parts).take(pa.array(order))

    def _tokens(self, ids: Ids) -> list[str]:
        """What terms add to the text of a Skolem term that they are arguments of."""
        texts = self.texts(ids)
        made = self.store_ids(ids) >= SKOLEMS
        return [
            t.removeprefix(SKOLEM) if m else text_token(t) for t, m in zip(texts, made.tolist(), strict=True)
        ]

    def _take_apart(self, ids: Ids) -> list[NamedGroup]:
        """The Skolem terms among some that were made here."""
        if self._skolem_places[0] != len(self._skolems):
            members = np.concatenate([own for _, own, _ in self._skolems])
            sizes = [len(own) for _, own, _ in self._skolems]
            groups = np.repeat(np.arange(len(sizes)), sizes)
            rows = np.concatenate([np.arange(size) for size in sizes])
            order = np.argsort(members)
            self._skolem_places = (len(sizes), members[order], groups[order], rows[order])
        _, members, groups, rows = self._skolem_places
        if not len(members):
            return []
        at = np.minimum(np.searchsorted(members, ids), len(members) - 1)
        at = at[members[at] == ids]
        found = []
        for number in np.unique(groups[at]).tolist():
            name, own, columns = self._skolems[number]
            chosen = rows[at[groups[at] == number]]
            found.append((name, own[chosen], [c[chosen] for c in columns]))
        return found

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

    # What nobody has seen here.

    def expect(self, columns: Sequence[Ids]) -> None:
        """Terms of which somebody may want to see the texts soon: they are fetched with those that are wanted first."""
        self._expected += columns

    def _see(self, ids: Ids) -> None:
        """Have the texts of terms that came from elsewhere."""
        with self._lock:
            if not (self._kinds[ids] == _UNSEEN).any():
                return
            wanted = np.unique(np.concatenate([ids, *self._expected]))
            self._expected = []
            wanted = wanted[self._kinds[wanted] == _UNSEEN]
            self._give_ids(len(self._terms))  # those that came before have theirs
            found, texts = self._far.fetch_texts(self.store_ids(wanted))
            near = self.near_ids(found)
            assert not (np.isin(wanted, near, invert=True)).any(), "the terms of facts are known"
            numbers = self._terms.add_texts(texts)
            assert len(self._terms) == self._known_texts + len(texts), "nobody has seen these texts"
            self._text_ids.write(self._known_texts, near[np.argsort(numbers)])
            self._fetched.append((self._known_texts, self._known_texts + len(texts)))
            self._known_texts += len(texts)
            kinds, integers, doubles, _ = classify(texts.cast(pa.large_string()))
            for column, values in (
                (self._kinds, kinds),
                (self._integers, integers),
                (self._doubles, doubles),
                (self._numbers, numbers),
            ):
                column.put(near, values)

    # Values of terms.

    def kinds(self, ids: Ids) -> NDArray[np.uint8]:
        self._see(ids)
        return self._kinds[ids]

    def integers(self, ids: Ids) -> NDArray[np.int64]:
        self._see(ids)
        return self._integers[ids]

    def doubles(self, ids: Ids) -> NDArray[np.float64]:
        self._see(ids)
        return self._doubles[ids]

    def integer_values(self, ids: Ids) -> NDArray[np.int64] | None:
        """Integers that are written in their shortest form; others are terms of their own."""
        store_ids = self.store_ids(ids)
        return store_ids - np.int64(INTEGERS) if (store_ids < 0).all() else None

    def double_values(self, ids: Ids) -> NDArray[np.float64] | None:
        return self.doubles(ids) if (self.kinds(ids) == DOUBLE).all() else None

    # What others do not know yet.

    def take_new_texts(self) -> tuple[StoreIds, pa.Array]:
        """Texts that have come since they were taken last, and were not fetched, with their ids in the store."""
        with self._lock:
            self._give_ids(len(self._terms))
            numbers = np.arange(self._taken, self._known_texts)
            for first, last in self._fetched:
                numbers = numbers[(numbers < first) | (numbers >= last)]
            self._taken, self._fetched = self._known_texts, []
            ids = self.store_ids(self._text_ids[numbers])
            texted = (ids >= 0) & (ids < SKOLEMS)
            return ids[texted], self._terms.take(numbers[texted]).cast(pa.string())

    def take_new_skolems(self) -> list[SkolemGroup]:
        """Likewise Skolem terms that were made here."""
        new = self._skolems[self._taken_skolems :]
        self._taken_skolems = len(self._skolems)
        return [
            (name, self.store_ids(own), [self.store_ids(c) for c in columns]) for name, own, columns in new
        ]


def is_any_typed(texts: pa.Array) -> bool:
    """Whether one is a literal with a datatype or language, which may be equal by value to one that is written otherwise."""
    typed = pc.and_(pc.starts_with(texts, '"'), pc.invert(pc.ends_with(texts, '"')))
    return bool(pc.any(typed).as_py())
