"""What the documentation names exists, and what exists is named where it should be."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from hdlog import errors
from hdlog.tuning import SWITCHES

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "hdlog"
DOCS = ROOT / "docs"


def names_in(path: Path) -> set[str]:
    """Functions, classes, and `Class.member` of a module."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            members = [m.name for m in ast.walk(node) if isinstance(m, ast.FunctionDef)]
            members += [
                a.target.id
                for a in node.body
                if isinstance(a, ast.AnnAssign) and isinstance(a.target, ast.Name)
            ]
            members += [
                a.target.attr
                for a in ast.walk(node)
                if isinstance(a, ast.AnnAssign) and isinstance(a.target, ast.Attribute)
            ]
            names |= {f"{node.name}.{member}" for member in members}
    return names


def references(text: str) -> list[tuple[str, str]]:
    """Pairs of a file and a name in it: `maintenance/dred.py`: `mat`, `dred`; ..."""
    found = []
    for file, names in re.findall(r"`([\w/]+\.py)`: ((?:`[\w.]+`(?:, )?(?:[\w ,:]*?: )?)+)", text):
        found += [(file, name) for name in re.findall(r"`([\w.]+)`", names)]
    return found


def test_every_name_in_the_map_of_the_paper_exists() -> None:
    told = references((DOCS / "paper.md").read_text())
    assert len(told) > 25
    for file, name in told:
        assert name in names_in(SRC / file), f"docs/paper.md: {file} has no {name}"


@pytest.mark.parametrize("page", [p.name for p in DOCS.glob("*.md")] + ["../README.md", "../CONTRIBUTING.md"])
def test_files_and_links_in_the_documentation_exist(page: str) -> None:
    text = (DOCS / page).read_text()
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert ((DOCS / page).parent / target).exists(), f"{page} links to {target}"
    for file in re.findall(r"`([\w/]+/[\w]+\.py)`", text):
        assert (SRC / file).exists() or (ROOT / file).exists(), f"{page} names {file}"


def test_every_improvement_has_a_line_in_the_documentation() -> None:
    engine = (DOCS / "engine.md").read_text()
    for switch in SWITCHES:
        assert f"`{switch}`" in engine, f"docs/engine.md does not tell of {switch}"


def test_every_exit_code_is_documented() -> None:
    told = dict(re.findall(r"^\| (\d+) \| (.*?) \|", (DOCS / "errors.md").read_text(), re.MULTILINE))
    kinds = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.HdlogError)]
    for kind in kinds:
        if kind is not errors.HdlogError:
            assert f"`{kind.__name__}`" in told[str(kind.exit_code)], kind.__name__
    assert set(told) == {
        *(str(k.exit_code) for k in kinds if k is not errors.HdlogError),
        "0",
        str(errors.OPERATING_SYSTEM),
        str(errors.INTERRUPTED),
    }


def test_departures_from_the_paper_are_marked_where_they_are() -> None:
    marked = [p for p in SRC.rglob("*.py") if "Differs from the paper:" in p.read_text()]
    assert {p.name for p in marked} >= {"dred.py", "hypertree.py", "views.py"}
