"""Integers keep their ids, whether they were found by place or by hash, and in any order of both; kept elsewhere, too."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hdlog.engines.columnar.integers import IntegerIds, Integers
from hdlog.engines.columnar.kernels import Ids

batches = st.lists(
    st.lists(st.integers(-3, 12), min_size=4, max_size=12)
    | st.lists(st.integers(-(2**61), 2**61), max_size=3),
    max_size=8,
)


class Counter:
    """Gives ids one after the other."""

    def __init__(self) -> None:
        self.values: list[int] = []

    def append(self, values: Integers) -> Ids:
        first = len(self.values)
        self.values += values.tolist()
        return np.arange(first, len(self.values), dtype=np.uint32)


@given(batches, batches)
def test_each_integer_has_one_id_and_keeps_it(before: list[list[int]], after: list[list[int]]) -> None:
    given_ids = Counter()
    integers = IntegerIds(4, given_ids.append)
    known: dict[int, int] = {}

    def encode(batch: list[int]) -> None:
        ids = integers.encode(np.array(batch, np.int64)).tolist()
        for value, number in zip(batch, ids, strict=True):
            assert known.setdefault(value, number) == number
            assert given_ids.values[number] == value

    for batch in before:
        encode(batch)
    integers = IntegerIds(4, given_ids.append, integers.freeze())
    for batch in after:
        encode(batch)
    assert len(set(known.values())) == len(known) == len(given_ids.values)
