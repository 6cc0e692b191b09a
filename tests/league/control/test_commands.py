"""The commands that change a live league, as the control door hears them; the queue behind it is a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from league.config.run_config import ControlConfig
from league.control.door import open_door
from tests.league.commands import league
from tests.league.control.test_door import Desk, run_folder


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """The queue of a live run whose folder is `tmp_path / "run"`."""
    found = Desk()
    with open_door(run_folder(tmp_path / "run"), found, ControlConfig(), say=pytest.fail):
        yield found


@pytest.mark.parametrize("amount", [3600, -3600, -0.5])
def test_a_budget_is_extended_and_cut(amount: float, desk: Desk, tmp_path: Path) -> None:
    made = league("extend", tmp_path / "run", "seconds", amount, "--reason", "less time")
    assert made.code == 0, made.err
    [(name, arguments, _, reason)] = desk.asked
    assert (name, arguments, reason) == ("extend", {"limit": "seconds", "amount": amount}, "less time")
    wrong = league("extend", tmp_path / "run", "seconds", amount, "--raeson", "x")
    assert (wrong.code, len(desk.asked)) == (2, 1), "a misspelt option is still refused"
