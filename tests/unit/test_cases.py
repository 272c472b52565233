"""Every folder in cases/programs, by every method, in memory and through a store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hdlog.api import Update
from hdlog.operations.stores import materialise, update
from hdlog.program.model import Program
from hdlog.tuning import Tuning
from tests.case_folders import Case, Step, cases, facts_of, write_files
from tests.engines import ON_SPARK, Reasoner, settings
from tests.properties.test_maintenance import check_state, told

CASES = cases()
TUNINGS = {
    "combined": Tuning("combined"),
    "standard": Tuning("standard"),
    "hd": Tuning("hd"),
    "nodes": Tuning("hd").without("views"),
    "overdeleted": Tuning("hd").without("counting"),
}
METHODS = ["combined"] if ON_SPARK else list(TUNINGS)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_case_in_memory(case: Case, method: str) -> None:
    reasoner = Reasoner(case.program, tuning=TUNINGS[method])
    program, present = case.program, set(facts_of(case.program))
    check_state(reasoner, rules_of(program), present)
    for step in case.steps:
        if step.rules is not None:
            new = tuple(r for r in step.rules.rules if r not in program.rules)
            program = replace(program, rules=program.rules + new)
            present |= set(facts_of(step.rules))
            change = reasoner.add_rules(step.rules)
        elif step.remove is not None:
            program = without(program, step.remove)
            present -= set(facts_of(step.remove)) - set(facts_of(program))
            change = reasoner.remove_rules(step.remove)
        else:
            present = (present - set(step.delete)) | set(step.add)
            change = reasoner.update(step.add, step.delete)
        check_state(reasoner, rules_of(program), present)
        check_change(step, change)


def rules_of(program: Program) -> Program:
    """Without facts: those are asserted, and may have been retracted."""
    return replace(program, rules=tuple(r for r in program.rules if not r.is_fact))


def without(program: Program, gone: Program) -> Program:
    return replace(program, rules=tuple(r for r in program.rules if r not in gone.rules))


def check_change(step: Step, change: Update) -> None:
    if step.came is not None:
        assert told(change) == (step.came, step.went)


@pytest.mark.parametrize("case", [c for c in CASES if not c.changes_rules], ids=lambda c: c.name)
def test_a_case_through_a_store_that_is_opened_for_each_update(case: Case, tmp_path: Path) -> None:
    store = tmp_path / "store"
    materialise([case.path], [], store, settings())
    for number, step in enumerate(case.steps):
        add = write_files(tmp_path / f"{number}-add", step.add)
        delete = write_files(tmp_path / f"{number}-delete", step.delete)
        check_change(step, update(store, add, delete, settings())["change"])
