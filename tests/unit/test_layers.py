"""Imports point one way: a layer knows itself and the ones before it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "hdlog"
LAYERS = (
    "errors",
    "interrupts",
    "journal",
    "program",
    "tuning",
    "text",
    "plan",
    "reading",
    "writing",
    "engines",
    "maintenance",
    "pipeline",
    "report",
    "api",
    "running",
    "storing",
    "streaming",
    "evaluation",
    "cli",
)
CONFINED = {
    "lark": ("text",),
    "typer": ("cli", "evaluation/commands"),
    "rich": ("report", "cli", "evaluation/commands"),
    "matplotlib": ("evaluation/plots",),
    "duckdb": ("evaluation/duck",),
    "numba": ("engines/columnar", "reading/kernels", "writing/kernels", "pipeline/buckets"),
    "pyspark": ("engines/spark", "pipeline", "streaming"),
}


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


MODULES = sorted(
    p for p in SRC.rglob("*.py") if (p.name not in ("__main__.py",) and p.parent != SRC) or p.stem in LAYERS
)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_a_module_imports_only_its_own_and_earlier_layers(path: Path) -> None:
    own = path.relative_to(SRC).parts[0].removesuffix(".py")
    assert own in LAYERS, f"{own} is not a layer"
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "hdlog" and len(parts) > 1 and parts[1] in LAYERS:
            assert LAYERS.index(parts[1]) <= LAYERS.index(own), f"{own} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_a_library_is_imported_only_where_it_belongs(path: Path) -> None:
    place = str(path.relative_to(SRC))
    for name in imported(path):
        allowed = CONFINED.get(name.split(".")[0])
        assert allowed is None or place.startswith(allowed), f"{place} imports {name}"


def test_every_layer_that_exists_is_tested() -> None:
    assert {p.relative_to(SRC).parts[0].removesuffix(".py") for p in MODULES} >= {
        "errors",
        "program",
        "text",
        "cli",
    }
