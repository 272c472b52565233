"""Built-ins over columns give what their definition gives, row by row, on values of every kind."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdlog.engines.columnar import builtins
from hdlog.engines.columnar.dictionary import Dictionary
from hdlog.engines.columnar.keys import PairTable
from hdlog.engines.columnar.relation import Relation
from hdlog.program.functions import FUNCTIONS, NoValue, evaluate, holds
from hdlog.program.model import Call, Expression
from hdlog.program.terms import (
    XSD_BOOLEAN,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    BlankNode,
    Constant,
    Iri,
    Literal,
    Skolem,
    Variable,
    double,
    integer,
    string,
)

VALUES: list[Constant] = [
    *map(
        integer, (0, 1, -1, 2, 3, 7, -7, 63, 64, 2**31, 2**53, 2**53 + 1, 2**61, 2**62, 2**63 - 1, -(2**63))
    ),
    *(Literal(t, XSD_INTEGER) for t in ("01", "+1", "9223372036854775808", "x")),
    Literal("1", "http://www.w3.org/2001/XMLSchema#int"),
    *map(double, (0.0, -0.0, 1.0, 0.1, 1e300, -2.5, -0.4, 0.49999999999999994, 1e-300, 2.0**53)),
    *(Literal(t, XSD_DOUBLE) for t in ("INF", "-INF", "NaN", "1", "1E0", ".5")),
    *(Literal(t, XSD_DECIMAL) for t in ("1.0", "0.1", "2.50")),
    *map(string, ("", "a", "b", "ab", "é", "10", "9", 'q"\\', "aa\n", "A.b", "a]")),
    Literal("a", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "en"),
    Literal("true", XSD_BOOLEAN),
    Literal("2020-01-01", "http://www.w3.org/2001/XMLSchema#date"),
    Iri("http://e/a"),
    Iri("http://e/b"),
    BlankNode("b"),
    Skolem("f", (integer(1),)),
]
X, Y = Variable("x"), Variable("y")
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "idiv",
    "mod",
    "pow",
    "min",
    "max",
    "band",
    "bor",
    "bxor",
    "bshl",
    "bshr",
]
UNARY = ["neg", "abs", "bnot", "strlen", "floor", "ceil", "round"]
PATTERNS = [
    "a", "^a+$", "(a+)+$", "[a-z]b", "a|é", r"A\.b", "[[:digit:]]+", r"\d", "a.", "a{1,2}$", "a++", "[]a]", "[^a]", r"\]", "$",
]  # fmt: skip
FLAGS = ["", "i", "s", "im", "x"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge", "sameterm"]


def leaves() -> st.SearchStrategy[Expression]:
    return st.one_of(st.sampled_from([X, Y]), st.sampled_from([X, Y]), st.sampled_from(VALUES))


def numbers() -> st.SearchStrategy[Expression]:
    def more(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        return st.one_of(
            st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(BINARY), inner, inner),
            st.builds(lambda f, a: Call(f, (a,)), st.sampled_from(UNARY), inner),
            st.builds(
                lambda f, a, b, c: Call("if", (Call(f, (a, b)), a, c)),
                st.sampled_from(COMPARISONS),
                inner,
                inner,
                inner,
            ),
        )

    return st.recursive(leaves(), more, max_leaves=3)


def conditions() -> st.SearchStrategy[Expression]:
    patterns = st.sampled_from(PATTERNS).map(string)
    simple = st.one_of(
        st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(COMPARISONS), numbers(), numbers()),
        st.builds(
            lambda a, b, c: Call("regex", (a, b, c)), leaves(), patterns, st.sampled_from(FLAGS).map(string)
        ),
        st.builds(lambda a, b: Call("match", (a, b)), patterns, leaves()),
    )

    def more(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        return st.one_of(
            st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(["and", "or"]), inner, inner),
            inner.map(lambda a: Call("not", (a,))),
        )

    return st.recursive(simple, more, max_leaves=3)


PAIRS = [(a, b) for a in VALUES for b in VALUES]


def relation(dictionary: Dictionary) -> Relation:
    x, y = (dictionary.encode_terms(side) for side in zip(*PAIRS, strict=True))
    return Relation({"x": x, "y": y, "row": np.arange(len(PAIRS), dtype=np.uint32)}, len(PAIRS))


@settings(max_examples=max(10, settings().max_examples // 2))
@given(conditions())
def test_a_filter_keeps_the_rows_for_which_the_definition_holds(condition: Expression) -> None:
    dictionary = Dictionary()
    kept = builtins.select(dictionary, PairTable(), relation(dictionary), condition)
    expected = [n for n, (x, y) in enumerate(PAIRS) if holds(condition, {X: x, Y: y})]
    assert kept.columns["row"].tolist() == expected


@settings(max_examples=max(10, settings().max_examples // 2))
@given(numbers())
def test_a_value_is_that_of_the_definition(expression: Expression) -> None:
    dictionary = Dictionary()
    made = builtins.extend(dictionary, PairTable(), relation(dictionary), expression, "z")
    found = dict(zip(made.columns["row"].tolist(), dictionary.terms(made.columns["z"]), strict=True))
    expected = {}
    for n, (x, y) in enumerate(PAIRS):
        try:
            expected[n] = evaluate(expression, {X: x, Y: y})
        except NoValue:
            continue
    assert found == expected


def test_every_function_on_arrays_is_drawn() -> None:
    from hdlog.engines.columnar import arrays

    drawn = {*BINARY, *COMPARISONS, *UNARY}
    on_arrays = {*arrays._WHOLE, *arrays._REAL, *arrays._UNARY, *arrays._ROUNDING, *arrays._COMPARISONS}
    assert on_arrays <= drawn <= FUNCTIONS.keys()


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_finds_what_the_definition_finds(pattern: str, flags: str) -> None:
    for condition in (
        Call("regex", (X, string(pattern), string(flags))),
        Call("match", (string(pattern), X)),
    ):
        dictionary = Dictionary()
        kept = builtins.select(dictionary, PairTable(), relation(dictionary), condition)
        expected = [n for n, (x, _) in enumerate(PAIRS) if holds(condition, {X: x})]
        assert kept.columns["row"].tolist() == expected


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_replaced_is_what_the_definition_replaces(pattern: str, flags: str) -> None:
    for wanted in ("", "zé", "<$0>", '"\\\\'):
        expression = Call("replace", (X, string(pattern), string(wanted), string(flags)))
        dictionary = Dictionary()
        made = builtins.extend(dictionary, PairTable(), relation(dictionary), expression, "z")
        found = dict(zip(made.columns["row"].tolist(), dictionary.terms(made.columns["z"]), strict=True))
        expected = {}
        for n, (x, _) in enumerate(PAIRS):
            with suppress(NoValue):
                expected[n] = evaluate(expression, {X: x})
        assert found == expected


def test_a_pattern_that_would_be_tried_in_too_many_ways_ends() -> None:
    dictionary = Dictionary()
    x = dictionary.encode_terms([string("a" * 200 + "b"), string("a" * 200)])
    found = builtins.select(
        dictionary, PairTable(), Relation({"x": x}, 2), Call("regex", (X, string("^(a+)+$")))
    )
    assert found.columns["x"].tolist() == [x[1]]
