"""The core imports the standard library and numpy alone, and touches no clock, file or global randomness."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import league.core

PURE = (
    "league.envs.component_choice",
    "league.envs.placements",
    "league.envs.text.number_text",
    "league.higher_wings",
    "league.wording",
)
"""Modules outside the core that it may import: each holds to the rules of the core."""

CORE = Path(league.core.__path__[0])
MODULES = [*CORE.rglob("*.py"), *(CORE.parent.joinpath(*name.split(".")[1:]).with_suffix(".py") for name in PURE)]
MODULES.sort()
IMPURE = {
    "time",
    "datetime",
    "random",
    "os",
    "io",
    "pathlib",
    "tempfile",
    "shutil",
    "sqlite3",
    "socket",
    "subprocess",
    "threading",
}


def imported(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_only_the_standard_library_and_numpy_are_imported(path: Path) -> None:
    for name in imported(ast.parse(path.read_text())):
        top = name.partition(".")[0]
        assert top not in IMPURE, f"{path.name} imports {name}"
        assert top in sys.stdlib_module_names or top == "numpy" or name.startswith("league.core") or name in PURE, (
            f"{path.name}: {name}"
        )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_file_and_no_hidden_randomness_is_touched(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        text = ast.unparse(node.func)
        assert text != "open", f"{path.name} opens a file"
        seeded = text == "np.random.default_rng" and node.args
        assert seeded or not text.startswith("np.random."), f"{path.name} calls {text}"
