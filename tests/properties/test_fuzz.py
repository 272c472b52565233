"""No input, however broken, gives a traceback: 10,000 mutations of real programs and random text."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdlog.dialects import Dialect
from hdlog.text import Reading, examine
from tests.unit.test_rdfox import EVERYTHING as RDFOX
from tests.unit.test_souffle import EVERYTHING as SOUFFLE

EXAMPLES = Path(__file__).parents[2] / "examples"
SEEDS: list[tuple[str, Dialect]] = [
    (RDFOX, "rdfox"),
    (SOUFFLE, "souffle"),
    ((EXAMPLES / "family.dlog").read_text(), "rdfox"),
    ((EXAMPLES / "reach.dl").read_text(), "souffle"),
]
PIECES = [
    ".",
    ",",
    ";",
    ":",
    ":-",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "!",
    "<",
    ">",
    "<=",
    "=",
    "!=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "_",
    "?x",
    "x",
    "1",
    "1.5",
    "-1",
    "0x",
    "1e9",
    "9999999999999999999999",
    '"',
    "'",
    "\\",
    "#",
    "//",
    "/*",
    "*/",
    "@",
    "@decl",
    "@prefix",
    "PREFIX",
    "BASE",
    ".decl",
    ".type",
    ".input",
    ".comp",
    "$",
    "nil",
    "NOT",
    "FILTER(",
    "BIND(",
    "AGGREGATE(",
    "AS",
    "ON",
    "IN",
    '"a"',
    "count",
    "sum",
    "min",
    ":",
    "\x00",
    "\ud7ff",
    "\u2028",
    "é",
    "a:b",
    "<http://e#x>",
    "<x",
]
BATCHES = 20
MUTATIONS_PER_BATCH = 500


def survives(text: str, dialect: Dialect) -> Reading:
    reading = examine(text, dialect, "fuzzed")
    for problem in reading.problems:
        assert problem.message
        assert str(problem)
        assert problem.span is None or problem.span.line >= 1
    return reading


def mutated(text: str, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 4)):
        at, to = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        to = min(to, at + 30)
        match chance.randrange(6):
            case 0:
                text = text[:at] + text[to:]
            case 1:
                text = text[:at] + chance.choice(PIECES) + text[at:]
            case 2:
                text = text[:at] + text[at:to] * 2 + text[to:]
            case 3:
                text = text[:at] + chance.choice(PIECES) + text[to:]
            case 4:
                text = text[:at] + chr(chance.randrange(0x250)) + text[at + 1 :]
            case _:
                piece, text = text[at:to], text[:at] + text[to:]
                into = chance.randrange(len(text) + 1)
                text = text[:into] + piece + text[into:]
    return text


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_mutated_programs_are_read_or_refused_without_a_traceback(batch: int) -> None:
    chance = random.Random(batch)
    broken = 0
    for _ in range(MUTATIONS_PER_BATCH):
        text, dialect = chance.choice(SEEDS)
        lines = text.split("\n")
        start = chance.randrange(len(lines))
        part = "\n".join(lines[start : start + 12])
        broken += bool(survives(mutated(part, chance), dialect).errors)
    assert broken > MUTATIONS_PER_BATCH // 4


@given(st.text(), st.sampled_from(["rdfox", "souffle"]))
def test_random_text_is_read_or_refused_without_a_traceback(text: str, dialect: Dialect) -> None:
    survives(text, dialect)


@given(st.lists(st.sampled_from(PIECES)).map(" ".join), st.sampled_from(["rdfox", "souffle"]))
def test_random_tokens_are_read_or_refused_without_a_traceback(text: str, dialect: Dialect) -> None:
    survives(text, dialect)


@pytest.mark.parametrize("dialect", ["rdfox", "souffle"])
@pytest.mark.parametrize("bracket", ["(", "[", "{", "!", "-", "!("])
def test_deep_nesting_is_refused_without_a_traceback(bracket: str, dialect: Dialect) -> None:
    survives(f"p(x) :- q(x), x = {bracket * 5000}1.", dialect)
    survives(f"p[?x] :- q[?x], FILTER({bracket * 5000}1) .", dialect)
