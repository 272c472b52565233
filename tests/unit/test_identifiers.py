"""Ids of terms that need no dictionary are the same wherever they are made."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdlog.reading.identifiers import (
    INTEGER_LIMIT,
    INTEGER_MARK,
    INTEGERS,
    SKOLEMS,
    inline_integer,
    integer_text,
    name_number,
    skolem_ids,
)


@given(st.integers(-INTEGER_LIMIT + 1, INTEGER_LIMIT - 1))
def test_an_integer_in_its_shortest_form_is_its_own_id(value: int) -> None:
    identifier = inline_integer(f'"{value}{INTEGER_MARK}')
    assert identifier == INTEGERS + value
    assert identifier < 0
    assert integer_text(identifier) == f'"{value}{INTEGER_MARK}'


@pytest.mark.parametrize(
    "digits",
    ["", "-", "--0", "-0", "+1", "01", "1.0", "٣", str(INTEGER_LIMIT), str(-INTEGER_LIMIT), "9" * 25],
)
def test_other_spellings_have_a_place_in_the_dictionary(digits: str) -> None:
    assert inline_integer(f'"{digits}{INTEGER_MARK}') is None


def test_skolem_terms_are_told_apart_by_name_number_and_order_of_arguments() -> None:
    a, b = np.array([1, 2, 3]), np.array([3, 2, 1])
    made = [
        skolem_ids(*given)
        for given in (("f", [a], 3), ("g", [a], 3), ("f", [a, b], 3), ("f", [b, a], 3), ("f", [], 3))
    ]
    assert all((ids >= SKOLEMS).all() for ids in made)
    different = {int(i) for ids in made for i in ids}
    assert len(different) == 3 + 3 + 3 + 1  # f(1, 3), f(2, 2) and f(3, 1) come twice
    assert (made[2] != made[3]).tolist() == [True, False, True]


def test_the_hash_of_a_skolem_term_is_the_one_that_stores_have() -> None:
    """Written down: stores rest on it."""
    assert name_number("Eval") == 7481791081888655506
    assert skolem_ids("Eval", [np.array([7]), np.array([INTEGERS + 5])], 1).tolist() == [5555805604685259792]
