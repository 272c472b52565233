"""Imports point one way: a layer knows itself and the ones before it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hdlog.operations import prepare

SRC = Path(__file__).parents[2] / "src" / "hdlog"
LAYERS = (
    "errors",
    "dialects",
    "interrupts",
    "compiling",
    "journal",
    "memory",
    "places",
    "program",
    "tuning",
    "text",
    "plan",
    "reading",
    "writing",
    "engines",
    "maintenance",
    "ingest",
    "reasoning",
    "query",
    "store",
    "report",
    "api",
    "operations",
    "opening",
    "benchmarks",
    "commands",
)
CONFINED = {
    "lark": ("text",),
    "click": ("commands",),
    "rich": ("report", "commands"),
    "matplotlib": ("benchmarks/paper/plots",),
    "duckdb": ("query/sql", "benchmarks/peers", "benchmarks/micro"),
    "rdflib": ("query/sparql",),
    "clingo": ("benchmarks/peers",),
    "numba": ("compiling/making",),
    "llvmlite": ("compiling",),
    "pyspark": (
        "engines/spark",
        "engines/mixed",
        "ingest/pipeline",
        "store/spark",
        "api",
        "opening",
        "benchmarks/micro",
    ),
}
"""Where a library may be imported."""
WITHOUT = {
    "maintenance": ("numpy", "pyarrow", "numba", "pyspark", "hdlog.engines.columnar", "hdlog.engines.spark"),
    "query": ("numba", "pyspark", "hdlog.engines.columnar", "hdlog.engines.spark"),
    "plan": ("numpy", "pyarrow", "numba", "pyspark", "hdlog.engines"),
    "program": ("numpy", "pyarrow", "numba", "pyspark", "lark", "pyoxigraph"),
    "engines": ("hdlog.plan", "hdlog.text", "hdlog.maintenance"),
    "engines/columnar": ("pyspark", "hdlog.engines.spark"),
    "engines/spark": ("hdlog.engines.columnar",),
}
"""What a folder does not know, not even through what it imports."""
LOOPS = "hdlog.plan.work"
"""What the search for trees does thousands of times is compiled; those who import it do not see its arrays."""


def imported(path: Path, at_once: bool = False) -> set[str]:
    """The modules that a module imports, and what of them; `at_once`: when it is imported itself."""
    names: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif not at_once or not _is_later(node):
            waiting += ast.iter_child_nodes(node)
    return names


def _is_later(node: ast.AST) -> bool:
    """A function, which is called later, or what only a type checker sees."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return True
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


MODULES = sorted(
    p for p in SRC.rglob("*.py") if p.relative_to(SRC).parts[0] not in ("__init__.py", "__main__.py")
)
BY_NAME = {
    ".".join(("hdlog", *p.relative_to(SRC).with_suffix("").parts)).removesuffix(".__init__"): p
    for p in MODULES
}


def place_of(path: Path) -> str:
    return str(path.relative_to(SRC))


@pytest.mark.parametrize("path", MODULES, ids=place_of)
def test_a_module_imports_only_its_own_and_earlier_layers(path: Path) -> None:
    own = path.relative_to(SRC).parts[0].removesuffix(".py")
    assert own in LAYERS, f"{own} is not a layer"
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "hdlog" and len(parts) > 1 and parts[1] in LAYERS:
            assert LAYERS.index(parts[1]) <= LAYERS.index(own), f"{own} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=place_of)
def test_a_library_is_imported_only_where_it_belongs(path: Path) -> None:
    for name in imported(path):
        allowed = CONFINED.get(name.split(".")[0])
        assert allowed is None or place_of(path).startswith(allowed), f"{place_of(path)} imports {name}"


def reached(name: str, seen: dict[str, str], by: str) -> None:
    """All that importing a module imports, each with what imports it; not what is imported when a function is called."""
    if name in seen:
        return
    seen[name] = by
    if name in BY_NAME and name != LOOPS:
        for other in imported(BY_NAME[name], at_once=True):
            reached(other, seen, name)


@pytest.mark.parametrize("folder", WITHOUT)
def test_a_folder_does_not_know_even_indirectly(folder: str) -> None:
    for name, path in BY_NAME.items():
        if place_of(path).startswith(folder + "/") and name != LOOPS:
            seen: dict[str, str] = {}
            reached(name, seen, "")
            for unknown in WITHOUT[folder]:
                known = [k for k in seen if k == unknown or k.startswith(unknown + ".")]
                assert not known, f"{name} knows {known[0]}, by {seen[known[0]]}"


def test_every_folder_is_a_layer() -> None:
    folders = {p.name for p in SRC.iterdir() if p.is_dir() and any(p.glob("*.py"))}
    assert folders <= set(LAYERS)


@pytest.mark.parametrize("engine", ["columnar", "spark"])
def test_files_of_an_engine_are_short(engine: str) -> None:
    for path in (SRC / "engines" / engine).rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, place_of(path)


def test_both_engines_have_files_of_the_same_names_for_the_same_roles() -> None:
    names = [{p.name for p in (SRC / "engines" / engine).glob("*.py")} for engine in ("columnar", "spark")]
    assert names[0] & names[1] >= {
        f"{role}.py"
        for role in (
            "aggregates",
            "builtins",
            "context",
            "dictionary",
            "engine",
            "fact_sets",
            "in_and_out",
            "relation",
            "relations",
            "statistics",
            "table",
            "tables",
        )
    }


def test_every_module_with_loops_is_compiled_beforehand() -> None:
    with_loops = {
        name
        for name, path in BY_NAME.items()
        if imported(path) & {"hdlog.compiling.kernel", "hdlog.compiling.inner"}
    }
    assert {module.__name__ for module in prepare.MODULES} == with_loops
