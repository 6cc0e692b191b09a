"""The notebooks of docs/examples run: their cells in one namespace, the main module, as a kernel runs them.

A kernel of Jupyter would bring 14 packages into the tests, and a process that loads torch once more.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "examples").rglob("*.ipynb"))


def sources_of(path: Path) -> list[str]:
    cells = json.loads(path.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_holds_no_outputs(path: Path) -> None:
    assert path.stat().st_size < 10_000
    cells = json.loads(path.read_text())["cells"]
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in cells)


def shown(source: str, names: dict[str, object]) -> object:
    """The value of the last expression of a cell that is run; None where it ends otherwise."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec", dont_inherit=True), names)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "cell", "eval", dont_inherit=True), names)


def test_a_game_of_a_notebook_trains_and_shows_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.chdir(tmp_path)
    cells = sources_of(NOTEBOOKS[0])
    short = [cell.replace("10_000", "256").replace("games=200", "games=20") for cell in cells]
    assert short != cells
    _, run, prices, score, last, plots = (shown(cell, main.__dict__) for cell in short)
    assert "training" in capsys.readouterr().out
    assert isinstance(run, Path) and run.parent == tmp_path / "runs"
    assert prices.sum() == pytest.approx(1.0) and 0.0 < score.value < 1.0  # type: ignore[attr-defined]
    assert "return mean" in last  # type: ignore[operator]
    html = plots._repr_html_()  # type: ignore[attr-defined]
    assert html.startswith("<iframe sandbox") and "<script>" not in html and len(repr(plots)) < 80
