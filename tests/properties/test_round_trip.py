"""parse(write(p)) == p, in both dialects, wherever a dialect has the words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hdlog.errors import Inexpressible, Source
from hdlog.program.model import Program, TypeDeclaration
from hdlog.text import parse, rdfox, souffle
from hdlog.text.write import write
from tests.strategies import (
    Features,
    any_rdfox_program,
    declared,
    programs,
    type_declarations,
)

COMMON = Features(aggregates=False)


@given(any_rdfox_program())
def test_rdfox_text_reads_back_as_the_program_it_was_written_from(program: Program) -> None:
    text = write(program, "rdfox")
    again, problems = rdfox.parse(Source("written", text))
    assert not problems
    assert again == program


@given(programs(Features(triples=True, graphs=True, negation=False, builtins=False, aggregates=False)))
def test_rules_over_triples_and_graphs_read_back(program: Program) -> None:
    again, problems = rdfox.parse(Source("written", write(program, "rdfox")))
    assert not problems
    assert again.rules == program.rules


@given(programs().map(declared), type_declarations())
def test_souffle_text_reads_back_as_the_program_it_was_written_from(
    program: Program, types: list[TypeDeclaration]
) -> None:
    program = replace(program, types=tuple(types))
    try:
        text = write(program, "souffle")
    except Inexpressible:
        assume(False)
    again, problems = souffle.parse(Source("written", text))
    assert not problems
    assert again == program


@given(programs(COMMON).map(declared), st.sampled_from(["rdfox", "souffle"]))
def test_a_program_of_the_common_language_reads_back_from_both_dialects(
    program: Program, dialect: str
) -> None:
    assert parse(write(program, dialect), dialect) == program  # type: ignore[arg-type]


def test_what_a_dialect_has_no_words_for_is_refused_with_all_reasons() -> None:
    program = parse("<http://e/p>[?x] :- [?x, ?p, ?y], FILTER(isIRI(?y)) .")
    with pytest.raises(Inexpressible) as caught:
        write(program, "souffle")
    reasons = str(caught.value)
    assert "the name http://e/p" in reasons
    assert "variables in place of predicates" in reasons
    assert "a filter that is not a comparison" in reasons


def test_prefixes_are_used_when_writing() -> None:
    program = parse("PREFIX ex: <http://example.org/>\nex:p[?x] :- ex:q[?x] .")
    assert write(program) == "PREFIX ex: <http://example.org/>\nex:p[?x] :- ex:q[?x] .\n"
