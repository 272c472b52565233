"""Every folder in tests/cases: by every method, in memory, through a store, and through the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hdlog.api import Update
from hdlog.operations.stores import materialise, update
from hdlog.tuning import Tuning
from tests.case_folders import Case, Step, cases, changed, explain, facts_of, rules_of, take, write_files
from tests.engines import ON_SPARK, Reasoner, settings
from tests.properties.test_maintenance import check_state, told
from tests.shell import call

CASES = cases()
TUNINGS = {
    "combined": Tuning("combined"),
    "standard": Tuning("standard"),
    "hd": Tuning("hd"),
    "paper": Tuning.paper(),
    "nodes": Tuning("hd").without("views"),
    "overdeleted": Tuning("hd").without("counting"),
}
METHODS = ["combined"] if ON_SPARK else list(TUNINGS)
every_case = pytest.mark.parametrize("case", CASES[::2] if ON_SPARK else CASES, ids=lambda c: c.name)
FIXED = [c for c in CASES if not c.changes_rules]
with_fixed_rules = pytest.mark.parametrize("case", FIXED[::4] if ON_SPARK else FIXED, ids=lambda c: c.name)


@pytest.mark.parametrize("method", METHODS)
@every_case
def test_a_case_in_memory(case: Case, method: str) -> None:
    reasoner = Reasoner(case.program, tuning=TUNINGS[method])
    program, present = case.program, set(facts_of(case.program))
    held = check_state(reasoner, rules_of(program), present)
    for step in case.steps:
        program, present = changed(case, step, program, present)
        change = take(reasoner, step)
        held = check_state(reasoner, rules_of(program), present)
        check_change(step, change)
    assert held == case.expected


def check_change(step: Step, change: Update) -> None:
    assert step.came is not None, "each step says what it gives"
    assert told(change) == (step.came, step.went)


@with_fixed_rules
def test_a_case_through_a_store_that_is_opened_for_each_update(case: Case, tmp_path: Path) -> None:
    store = tmp_path / "store"
    materialise([case.path], [], store, settings())
    for number, step in enumerate(case.steps):
        add = write_files(tmp_path / f"{number}-add", step.add)
        delete = write_files(tmp_path / f"{number}-delete", step.delete)
        check_change(step, update(store, add, delete, settings())["change"])


@pytest.mark.skipif(ON_SPARK, reason="the same functions as through a store")
@with_fixed_rules
def test_a_case_through_the_command_line(case: Case, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    call("materialise", str(case.path), "--store", store)
    for number, step in enumerate(case.steps):
        add = write_files(tmp_path / f"{number}-add", step.add)
        delete = write_files(tmp_path / f"{number}-delete", step.delete)
        files = [word for name in add for word in ("--add", name)]
        files += [word for name in delete for word in ("--delete", name)]
        lines = call("update", store, *files).stdout.splitlines()
        signs = [line[0] for line in lines if line[:2] in ("+ ", "- ")]
        assert step.came is not None
        assert step.went is not None
        assert (signs.count("+"), signs.count("-")) == (len(step.came), len(step.went))


@pytest.mark.skipif(ON_SPARK, reason="estimates of Spark differ")
@every_case
def test_a_case_is_evaluated_as_explained(case: Case) -> None:
    assert explain(case) == (case.path.parent / "explain.txt").read_text()
