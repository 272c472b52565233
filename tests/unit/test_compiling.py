"""Loops on their way to machine code, and from disk into processes that know nothing of numba."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hdlog.compiling import Kernel, kernel
from hdlog.compiling.loading import find_code

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled without the compiler"
)
STEP = 3


@kernel("Tuple((i8, f8))(i8[::1], Array(u4, 1, 'C', readonly=True), f8[:, ::1], i8, u8, b1, f8)")
def add_up(
    out: Any, given: Any, figures: Any, number: int, large: Any, twice: bool, factor: float
) -> tuple[int, float]:
    total = number
    for i in range(given.shape[0]):
        out[i] = given[i] * STEP
        total += given[i]
    if large >> np.uint64(63):
        total += 1
    figure = 0.0
    for i in range(figures.shape[0]):
        for j in range(figures.shape[1]):
            figure += figures[i, j] * factor
    return (2 * total if twice else total), figure


def arguments() -> list[Any]:
    return [
        np.zeros(3, np.int64),
        np.array([1, 2, 3], np.uint32),
        np.ones((2, 2)),
        np.int64(-1),
        2**64 - 1,
        True,
        0.5,
    ]


def test_a_loop_takes_arrays_and_numbers_and_gives_numbers() -> None:
    add_up.load()
    given = arguments()
    assert add_up(*given) == (12, 2.0)
    assert given[0].tolist() == [3, 6, 9]
    given[3:] = [-1, 0, False, np.float64(2)]
    assert add_up(*given) == (5, 8.0)


def test_arrays_that_may_not_be_written_and_mapped_ones_are_read(tmp_path: Path) -> None:
    add_up.load()
    given = arguments()
    given[1].tofile(tmp_path / "numbers")
    given[1] = np.memmap(tmp_path / "numbers", np.uint32, "r")
    assert add_up(*given) == (12, 2.0)


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (0, np.zeros(3, np.uint64)),
        (0, np.zeros(6, np.int64)[::2]),
        (0, np.zeros((1, 3), np.int64)),
        (0, np.frombuffer(bytes(24), np.int64)),
        (0, np.zeros(3, ">i8")),
        (0, [0, 0, 0]),
        (0, None),
        (1, np.zeros(3, np.int32)),
        (2, np.ones((2, 2), np.float32)),
        (2, np.ones((2, 2), order="F")),
        (3, "one"),
        (3, 2**70),
        (4, 1.5),
        (6, "half"),
    ],
)
def test_what_a_loop_cannot_take_is_refused(place: int, wrong: object) -> None:
    add_up.load()
    given = arguments()
    given[place] = wrong
    with pytest.raises((TypeError, OverflowError)):
        add_up(*given)
    with pytest.raises(TypeError):
        add_up(*given[:-1])


def test_code_is_made_once_and_found_again_by_what_it_is_made_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hdlog.compiling.loading._folders", lambda: [tmp_path / "there"])
    made: list[str] = []

    def make(text: str) -> Callable[[str], bytes]:
        return lambda name: made.append(name) or text.encode()  # type: ignore[func-returns-value]

    assert find_code("loop", "a", make("first"))[1] == b"first"
    assert find_code("loop", "a", make("second"))[1] == b"first"
    assert find_code("loop", "b", make("third"))[1] == b"third"
    assert len(set(made)) == len(made) == 2


def test_code_that_cannot_be_kept_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("hdlog.compiling.loading._folders", lambda: [tmp_path / "file" / "below"])
    assert find_code("loop", "a", lambda _: b"one")[1] == b"one"
    assert find_code("loop", "a", lambda _: b"two")[1] == b"two"


def test_code_depends_on_constants_and_on_loops_that_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    def describe(loop: Kernel[Any, Any]) -> list[str]:
        return list(loop._describe())

    before = describe(add_up)
    monkeypatch.setitem(add_up.python.__globals__, "STEP", 4)
    assert describe(add_up) != before


def test_a_process_that_finds_its_loops_does_not_import_numba() -> None:
    code = (
        "import sys; from hdlog import Reasoner; "
        "r = Reasoner('p[?x, ?z] :- e[?x, ?y], e[?y, ?z] .'); "
        "import numpy as np, pyarrow as pa; n = np.arange(100000); "
        "r.update(add={'e': pa.table({'x': n, 'y': n + 1})}); "
        "assert len(r.facts('p')) == 99999; "
        "assert 'llvmlite' in sys.modules and 'numba' not in sys.modules"
    )
    for _ in range(2):  # the first time, loops may have to be made
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
