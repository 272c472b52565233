"""Terms, pairs and tables that are kept elsewhere, and go on growing here, are as if they had been here from the beginning."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hdlog.engines.columnar.dictionary import Dictionary
from hdlog.engines.columnar.keys import PairTable
from hdlog.program.ntriples import quote
from hdlog.reading.term_table import TermTable
from hdlog.reading.values import value_text

TEXTS = st.one_of(
    st.sampled_from(
        [
            "<http://e/a>",
            "<http://e/b>",
            "_:x",
            '"a"@en',
            '"1.50"^^<http://www.w3.org/2001/XMLSchema#decimal>',
        ]
    ),
    st.text('ab"\\\n\té', max_size=4).map(quote),
    st.integers(-5, 5).map(value_text),
    st.integers(2**62, 2**62 + 3).map(value_text),
    st.sampled_from(["01", "-0", "007"]).map(lambda t: f'"{t}"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    st.floats(allow_nan=False).map(value_text),
)
PARTS = st.lists(st.tuples(st.lists(TEXTS, max_size=8), st.lists(st.integers(-3, 3), max_size=5)), max_size=5)


def step(dictionary: Dictionary, texts: list[str], numbers: list[int]) -> list[list[int]]:
    """What somebody may ask of a dictionary, which then knows more."""
    ids = dictionary.encode(texts)
    integers = dictionary.encode_integers(np.array(numbers, np.int64))
    made = [
        dictionary.encode_skolems("f", [ids], len(ids)).tolist(),
        dictionary.encode_skolems("g", [], 1).tolist(),
    ]
    if len(integers):
        made.append(dictionary.encode_skolems("h", [integers, integers[::-1]], len(integers)).tolist())
    return [ids.tolist(), integers.tolist(), *made]


@given(PARTS, st.data())
def test_a_dictionary_that_is_frozen_now_and_then(
    parts: list[tuple[list[str], list[int]]], data: st.DataObject
) -> None:
    plain, layered = Dictionary(), Dictionary()
    for texts, numbers in parts:
        assert step(layered, texts, numbers) == step(plain, texts, numbers)
        if data.draw(st.booleans()):
            layered = Dictionary(frozen=layered.freeze())
    assert len(layered) == len(plain)
    everything = np.arange(len(plain), dtype=np.uint32)
    assert layered.texts(everything) == plain.texts(everything)
    assert layered.kinds(everything).tolist() == plain.kinds(everything).tolist()
    assert layered.integers(everything).tolist() == plain.integers(everything).tolist()
    for ids in (everything, everything[::-1], everything[::2]):
        assert _parts(layered, ids) == _parts(plain, ids)


def _parts(dictionary: Dictionary, ids: Any) -> Any:
    integers, skolems, texted = dictionary.take_apart(ids)
    groups = sorted((name, own.tolist(), [a.tolist() for a in args]) for name, own, args in skolems)
    return integers.tolist(), groups, texted.tolist()


@given(st.lists(st.lists(TEXTS, max_size=10), max_size=5), st.data())
def test_a_table_of_terms_that_is_frozen_now_and_then(parts: list[list[str]], data: st.DataObject) -> None:
    plain, layered = TermTable(), TermTable()
    for texts in parts:
        assert layered.add_texts(texts).tolist() == plain.add_texts(texts).tolist()
        if data.draw(st.booleans()):
            layered = TermTable(layered.freeze())
    numbers = np.arange(len(plain))
    assert layered.take(numbers[::-1]).to_pylist() == plain.take(numbers[::-1]).to_pylist()
    assert [layered.text(n) for n in numbers.tolist()] == plain.texts().to_pylist()


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8), max_size=5), st.data())
def test_a_table_of_pairs_that_is_frozen_now_and_then(
    parts: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    plain, layered = PairTable(), PairTable()
    for pairs in parts:
        left, right = (np.array([p[i] for p in pairs], np.uint32) for i in range(2))
        grow = data.draw(st.booleans())
        assert layered.ids(left, right, grow).tolist() == plain.ids(left, right, grow).tolist()
        if data.draw(st.booleans()):
            layered = PairTable(layered.freeze())
    everything = np.arange(plain.size, dtype=np.uint32)
    assert [c.tolist() for c in layered.pairs(everything)] == [c.tolist() for c in plain.pairs(everything)]
    assert layered.size == plain.size
