"""The command line as a user meets it."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

XSD = "http://www.w3.org/2001/XMLSchema#"
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
    assert "<u:1> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <u:A> ." in lines
    assert len(lines) == 2
    assert "left out: 1 facts of u:q/2 are no triples: their subject is a literal" in run.stderr


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
    assert told == "interrupted: files that were written are whole, the others are not there\n"
    assert not (tmp_path / "n.csv").exists()


@pytest.mark.slow
def test_an_interrupted_update_says_what_has_become_of_the_store(tmp_path: Path) -> None:
    store = tmp_path / "store"
    (tmp_path / "r.dlog").write_text(
        "path[?x, ?y] :- edge[?x, ?y] . path[?x, ?z] :- path[?x, ?y], edge[?y, ?z] ."
    )
    (tmp_path / "edge.facts").write_text("".join(f"{i}\t{i + 1}\n" for i in range(300)))
    hdlog("materialise", tmp_path / "r.dlog", tmp_path / "edge.facts", "--store", store)
    outcomes = []
    for number in range(5):
        more = tmp_path / f"{number}" / "edge.facts"
        more.parent.mkdir()
        more.write_text("".join(f"{i}\t{i + 1}\n" for i in range(300, 310 + number)))
        before = info(store)["version"]
        command = [sys.executable, "-m", "hdlog", "update", str(store), "--add", str(more), "--quiet"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=_heed_interrupts) as run:
            time.sleep(0.2 + 0.15 * number)
            run.send_signal(signal.SIGINT)
            _, told = run.communicate(timeout=60)
        after = info(store)["version"]
        outcomes.append(run.returncode)
        assert "Traceback" not in told
        if "everything is as it was before" in told:
            assert (run.returncode, after) == (130, before)
        elif "that was too late" in told:
            assert (run.returncode, after) == (130, before + 1)
        elif run.returncode == 0:
            assert after == before + 1
    assert 130 in outcomes


def info(store: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads((store / "manifest.json").read_text())["content"]["entry"]
    return found


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


def test_files_are_read_and_written_as_directives_say(tmp_path: Path) -> None:
    program = tmp_path / "io.dl"
    program.write_text(
        """
        .decl pair(a: symbol, b: number)
        .input pair(filename="sub/pairs.txt", delimiter=",", columns="2:0")
        .decl quoted(a: symbol, b: symbol)
        .input quoted(filename="quoted.csv", rfc4180=true, headers=true)
        .decl flag()
        .input flag
        .decl name(a: symbol)
        .input name
        .decl piped(a: number)
        .input piped(IO=stdin)
        .output pair(filename="deep/er/pair.csv", delimiter=";", headers=true)
        .output quoted(rfc4180=true)
        .output flag, name(compress=true), piped(IO=stdout)
        .output pair(IO=stdoutprintsize)
        """
    )
    facts = tmp_path / "facts"
    (facts / "sub").mkdir(parents=True)
    (facts / "sub" / "pairs.txt").write_text('1,x,"a"\n2,y,b')
    (facts / "quoted.csv").write_text('b,a\n"x,y","l1\nl2"\n')
    (facts / "flag.facts").write_text("()\n")
    (facts / "name.facts").write_text("a\n\nb\n")
    command = [
        sys.executable,
        "-m",
        "hdlog",
        "run",
        str(program),
        "-F",
        str(facts),
        "-D",
        str(tmp_path / "out"),
    ]
    run = subprocess.run(command, input="7\n5\n", capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    out = tmp_path / "out"
    assert (out / "deep" / "er" / "pair.csv").read_text() == 'a;b\n"a";1\nb;2\n'
    assert (out / "quoted.csv").read_text() == '"l1\nl2","x,y"\n'
    assert (out / "flag.csv").read_text() == "()\n"
    assert gzip.decompress((out / "name.csv.gz").read_bytes()) == b"\na\nb\n"
    assert run.stdout == "---------------\npiped\na\n===============\n5\n7\n===============\npair\t2\n"
    again = hdlog("run", program, "-F", out, "-D", tmp_path / "again")
    assert again.returncode == 7, "the file of pairs is elsewhere"


def test_a_value_that_a_table_cannot_hold_is_told_and_the_others_are_written(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(
        '.decl a(x: symbol)\n.output a\na("tab\\there").\n.decl b(x: number)\n.output b\nb(1).\n'
    )
    run = hdlog("run", program, "-D", tmp_path / "out")
    assert run.returncode == 11
    assert "a: the value 'tab\\there' has a line end or a delimiter in it" in run.stderr
    assert (tmp_path / "out" / "b.csv").read_text() == "1\n"
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["b.csv"]


def test_everything_is_written_where_nothing_says_what(tmp_path: Path) -> None:
    (tmp_path / "r.dlog").write_text(
        '<http://e/p>[<http://e/a>, "x"] . <http://e/p>["literal", 1] . edge[1, 2] . t[1, 2, 3] . <http://e/q>[1, 2, 3] .'
    )
    run = hdlog("run", tmp_path / "r.dlog", "-D", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    lines = (tmp_path / "out" / "materialised.nt").read_text().splitlines()
    assert lines == ['<http://e/a> <http://e/p> "x" .']
    assert "1 facts of http://e/p/2 are no triples: their subject is a literal" in run.stderr
    assert (tmp_path / "out" / "edge.csv").read_text() == "c0,c1\n1,2\n"
    assert (tmp_path / "out" / "t.csv").read_text() == "c0,c1,c2\n1,2,3\n"
    assert (tmp_path / "out" / "q.csv").exists()


@pytest.mark.slow
def test_what_the_operating_system_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "afile").write_text("x")
    rules = tmp_path / "r.dlog"
    rules.write_text("<http://e/p>[<http://e/a>, 1] .")
    for arguments, told in (
        (("run", rules, "-D", tmp_path / "afile"), "afile is a file"),
        (("materialise", rules, "--store", tmp_path / "afile"), "afile is a file"),
        (("materialise", rules, "--store", tmp_path / "afile" / "sub"), "Not a directory"),
        (("run", rules, tmp_path / "x.trix"), "neither rules"),
        (("run", rules, "--memory", "0"), "'--memory'"),
    ):
        run = hdlog(*arguments)
        assert run.returncode not in (0, 1), arguments
        assert told in run.stderr
        assert "Traceback" not in run.stderr
    hdlog("materialise", rules, "--store", tmp_path / "store")
    commands: list[tuple[list[str | Path], str]] = [
        (["export", tmp_path / "store", "-o", tmp_path], "is a folder"),
        (["export", tmp_path / "store", "--format", "csv", "-o", tmp_path / "afile"], "is a file"),
        (["export", tmp_path / "store", "--format", "csv", "-o", tmp_path], "has other files"),
        (["load", tmp_path / "store", "--store", tmp_path / "other"], "is a store"),
    ]
    for command, told in commands:
        run = hdlog(*command)
        assert run.returncode not in (0, 1), command
        assert told in run.stderr
    assert hdlog("export", tmp_path / "store").stdout == f'<http://e/a> <http://e/p> "1"^^<{XSD}integer> .\n'
    assert not Path("export.nt").exists()


def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    assert hdlog("materialise", EXAMPLES / "family.dlog", "--store", tmp_path / "s").returncode == 0
    command = f"{sys.executable} -m hdlog info {tmp_path / 's'} | head -1; exit ${{PIPESTATUS[0]}}"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def test_a_change_that_cannot_be_printed_is_said_to_be_in_the_store(tmp_path: Path) -> None:
    store = tmp_path / "s"
    assert hdlog("materialise", EXAMPLES / "family.dlog", "--store", store).returncode == 0
    command = [sys.executable, "-m", "hdlog", "update", str(store), "--add", str(EXAMPLES / "more.ttl")]
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 10
    assert f"the change is in {store}" in run.stderr
    assert "Traceback" not in run.stderr
    assert json.loads(hdlog("info", store, "--json").stdout)["version"] == 2


def test_warnings_of_a_run_to_the_screen_go_to_the_error_stream(tmp_path: Path) -> None:
    rules = tmp_path / "r.dlog"
    rules.write_text("p[1] . p[?x] :- q[?x] .")
    (tmp_path / "bad.nt").write_text("<a> <b>\n<http://e/a> <http://e/b> <http://e/c> .\n")
    run = hdlog("run", rules, tmp_path / "bad.nt", "--lenient", "-D", "-")
    assert "1 malformed line was skipped" in run.stderr
    assert "no facts: q" in run.stderr
    assert "warning" not in run.stdout


def test_lines_of_one_column_and_of_none(tmp_path: Path) -> None:
    rules = tmp_path / "r.dl"
    rules.write_text(".decl yes() .input yes .decl out(x: number) .output out out(1) :- yes().")
    (tmp_path / "yes.facts").write_text("x\n")
    run = hdlog("run", rules, "-F", tmp_path, "-D", tmp_path)
    assert f"{tmp_path / 'yes.facts'}:1: yes has no columns, so a line of it is (), not 'x'" in run.stderr
    (tmp_path / "yes.facts").write_text("()\n")
    assert hdlog("run", rules, "-F", tmp_path, "-D", tmp_path).returncode == 0
    assert (tmp_path / "out.csv").read_text() == "1\n"
    (tmp_path / "word.facts").write_text("a\n\nb\n")
    run = hdlog("load", tmp_path / "word.facts", "--store", tmp_path / "s", "--json")
    assert json.loads(run.stdout)["facts"] == 3


def test_an_empty_file_name_is_refused(tmp_path: Path) -> None:
    rules = tmp_path / "r.dl"
    rules.write_text('.decl s(x: number) .output s(filename="") s(1).')
    run = hdlog("run", rules, "-D", tmp_path / "out")
    assert run.returncode == 3
    assert "the filename is empty" in run.stderr
