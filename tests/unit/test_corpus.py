"""Every program of the corpus can be read and evaluated, and all methods come to the same facts."""

import pytest

from hdlog.benchmarks.data.loading import encode_columns
from hdlog.benchmarks.programs.cell import make
from hdlog.benchmarks.programs.corpus import PROGRAMS
from hdlog.engines.columnar.engine import ColumnarEngine
from hdlog.reasoning import start_reasoning
from hdlog.tuning import Method, Tuning


def count(name: str, method: Method) -> int:
    rules, given, _ = make(name, PROGRAMS[name].sizes[0] / 50)
    engine = ColumnarEngine()
    reasoner = start_reasoning(engine, rules, Tuning(method))
    reasoner.materialise(encode_columns(engine, given))
    return len(reasoner)


@pytest.mark.parametrize("name", PROGRAMS)
def test_methods_agree(name: str) -> None:
    counts = {method: count(name, method) for method in ("standard", "hd", "combined")}
    assert min(counts.values()) > 100
    assert len(set(counts.values())) == 1
