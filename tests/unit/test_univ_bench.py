"""The project's own rules of LUBM L against the paper's, where the paper is beside the project."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.generators.univ_bench import rules

from hdlog.program.model import Atom, Rule
from hdlog.program.terms import Variable
from hdlog.text import read

PAPER_RULES = Path(__file__).parents[3] / "shared" / "paper" / "rules"


def renamed(rule: Rule) -> tuple[object, ...]:
    """A rule with its variables numbered from the head on, its body as a set."""
    names: dict[str, str] = {}

    def plain(atom: Atom) -> tuple[str, ...]:
        return (
            atom.name,
            *(names.setdefault(t.name, f"v{len(names)}") for t in atom.terms if isinstance(t, Variable)),
        )

    heads = tuple(map(plain, rule.heads))
    return heads, frozenset(plain(a) for a in rule.atoms())


def test_there_are_98_different_rules() -> None:
    assert len({renamed(r) for r in rules().rules}) == 98


@pytest.mark.skipif(not PAPER_RULES.is_dir(), reason="the paper is not beside the project")
def test_the_rules_are_those_of_the_paper() -> None:
    theirs = {renamed(r) for r in read(PAPER_RULES / "LUBM_L.dlog").rules}
    assert {renamed(r) for r in rules().rules} == theirs
