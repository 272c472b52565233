"""The command line as a user meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def hdlog(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hdlog", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_check_prints_a_table_with_a_column_for_each_file() -> None:
    run = hdlog("check", EXAMPLES / "family.dlog", EXAMPLES / "reach.dl")
    assert run.returncode == 0
    rows = {
        line.split("  ")[0].strip() or "file": line.split()[-2:]
        for line in run.stdout.splitlines()
        if line.strip()
    }
    assert rows["facts"] == ["5", "4"]
    assert rows["rules"] == ["7", "3"]
    assert rows["errors"] == ["0", "0"]


def test_check_prints_json() -> None:
    run = hdlog("check", "--json", EXAMPLES / "family.dlog")
    found = json.loads(run.stdout)
    assert found["predicates"] == {"total": 7, "derived": 7, "given": 0}
    assert found["rules"]["recursive"] == 1
    assert found["strata"] == 2
    assert found["problems"] == []


def test_check_of_a_broken_program_prints_its_problems_and_fails(tmp_path: Path) -> None:
    path = tmp_path / "bad.dlog"
    path.write_text("p[?x] :- q[?y] .\n")
    run = hdlog("check", path)
    assert run.returncode == 3
    assert f"{path}:1:3: variable ?x of the head does not occur in the body" in run.stderr
    assert "Traceback" not in run.stderr


def test_check_hides_repeated_warnings_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "warn.dlog"
    path.write_text("p[?x] :- q[?x, ?y] .\n" * 9)
    assert "... and 6 more warnings" in hdlog("check", path).stderr
    assert hdlog("check", "--warnings", path).stderr.count("occurs only once") == 9


def test_a_missing_file_and_an_unknown_ending_are_told(tmp_path: Path) -> None:
    run = hdlog("check", tmp_path / "none.dlog")
    assert (run.returncode, "No such file" in run.stderr) == (2, True)
    odd = tmp_path / "rules.txt"
    odd.write_text("p[1] .")
    assert "unknown rule file ending" in hdlog("check", odd).stderr
    assert hdlog("check", "--dialect", "rdfox", odd).returncode == 0


def test_binary_input_is_told(tmp_path: Path) -> None:
    path = tmp_path / "b.dlog"
    path.write_bytes(b"\xff\xfe\x00")
    run = hdlog("check", path)
    assert run.returncode == 2
    assert "not UTF-8" in run.stderr


def test_version() -> None:
    assert hdlog("--version").stdout.startswith("hdlog ")


def test_run_behaves_as_a_souffle_user_expects(tmp_path: Path) -> None:
    program = tmp_path / "tc.dl"
    program.write_text(
        ".decl edge(x: number, y: number)\n.input edge\n.decl path(x: number, y: number)\n.output path\n.printsize path\n"
        "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n"
    )
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "edge.facts").write_text("1\t2\n2\t3\n")
    run = hdlog("run", program, "-F", tmp_path / "facts", "-D", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    assert run.stdout == "path\t3\n"
    assert (tmp_path / "out" / "path.csv").read_text() == "1\t2\n1\t3\n2\t3\n"


def test_run_behaves_as_an_rdf_user_expects(tmp_path: Path) -> None:
    (tmp_path / "rules.dlog").write_text(
        "PREFIX : <u:>\n:A[?x] :- :p[?x, ?y] .\n:q[?y, ?x] :- :p[?x, ?y] .\n"
    )
    (tmp_path / "data.nt").write_text('<u:1> <u:p> "a\\"b"@en .\n')
    run = hdlog("run", tmp_path / "rules.dlog", tmp_path / "data.nt", "-D", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    lines = (tmp_path / "out" / "materialised.nt").read_text().splitlines()
    assert '"a\\"b"@en <u:q> <u:1> .' in lines
    assert "<u:1> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <u:A> ." in lines
    assert len(lines) == 3


def test_run_tells_of_missing_files_bad_lines_and_limits(tmp_path: Path) -> None:
    program = tmp_path / "n.dl"
    program.write_text(".decl n(x: number)\n.input n\n.output n\nn(x + 1) :- n(x).\n")
    run = hdlog("run", program, "-F", tmp_path, "-D", tmp_path)
    assert (run.returncode, "n.facts: No such file" in run.stderr) == (7, True)
    (tmp_path / "n.facts").write_text("1\nx\n")
    run = hdlog("run", program, "-F", tmp_path, "-D", tmp_path)
    assert (run.returncode, "n.facts:2: 'x' is not a number" in run.stderr) == (7, True)
    (tmp_path / "n.facts").write_text("1\n")
    run = hdlog("run", program, "-F", tmp_path, "-D", tmp_path, "--max-rounds", "20")
    assert (run.returncode, "took more than 20 rounds" in run.stderr) == (6, True)
    assert not (tmp_path / "n.csv").exists()


def test_run_warns_of_predicates_that_nothing_has(tmp_path: Path) -> None:
    (tmp_path / "r.dlog").write_text("<u:a>[?x] :- <u:parent>[?x] .\n<u:parents>[1] .\n")
    assert "did you mean u:parents" in hdlog("run", tmp_path / "r.dlog").stderr


def test_an_interrupt_ends_a_run_with_a_word_and_no_output(tmp_path: Path) -> None:
    program = tmp_path / "endless.dl"
    program.write_text(
        ".decl n(x: number)\n.output n\n.input go\n.decl go(x: number)\nn(x) :- go(x).\nn(x + 1) :- n(x).\n"
    )
    os.mkfifo(tmp_path / "go.facts")
    command = [sys.executable, "-m", "hdlog", "run", str(program), "-F", str(tmp_path), "-D", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=_heed_interrupts) as run:
        # Once the facts are taken, the run is in its endless loop.
        (tmp_path / "go.facts").write_text("0\n")
        time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        _, told = run.communicate(timeout=60)
    assert run.returncode == 130
    assert told == "interrupted: nothing was written\n"
    assert not (tmp_path / "n.csv").exists()


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_explain_shows_methods_trees_and_their_reasons(tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text("<p>[?x, ?y] :- <c>[?x, ?z], <d>[?x, ?u], <p>[?z, ?y], <p>[?u, ?y] .")
    run = hdlog("explain", rules)
    assert run.returncode == 0
    assert "complex, width 2: hd" in run.stdout
    assert "hypertree of width 2" in run.stdout
    found = json.loads(hdlog("explain", rules, "--json", "--method", "standard").stdout)
    assert [r["method"] for c in found["components"] for r in c["rules"]] == ["standard"]


def test_explain_with_facts_writes_a_page(tmp_path: Path) -> None:
    rules, facts, page = tmp_path / "rules.dlog", tmp_path / "facts.nt", tmp_path / "page.html"
    rules.write_text(
        "<http://e/t>[?x, ?y] :- <http://e/c>[?x, ?y], <http://e/c>[?y, ?z], <http://e/c>[?z, ?x] ."
    )
    facts.write_text(
        "\n".join(f"<http://e/{a}> <http://e/c> <http://e/{b}> ." for a, b in ("ab", "bc", "ca"))
    )
    assert hdlog("explain", rules, facts, "--method", "hd", "--html", page).returncode == 0
    assert "<svg" in page.read_text()


def test_an_improvement_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    rules = tmp_path / "rules.dlog"
    rules.write_text("<p>[?x] :- <c>[?x] .")
    run = hdlog("explain", rules, "--without", "vews")
    assert run.returncode == 2
    assert "did you mean views" in run.stderr
