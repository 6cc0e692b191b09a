"""The commands that change a live league, as the control door hears them; the queue behind it is a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from league.config.run_config import ControlConfig
from league.run.control.door import open_door
from tests.league.commands import league
from tests.league.run.control.test_door import Desk, run_folder


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


def test_several_settings_are_one_json_object(desk: Desk, tmp_path: Path) -> None:
    made = league("set", tmp_path / "run", "a.b=1", "c.d=[2]", "--json")
    assert made.code == 0, made.err
    assert [change["words"] for change in made.json["changes"]] == ["did set", "did set"]
    assert [arguments["value"] for _, arguments, _, _ in desk.asked] == [1, [2]]


def test_what_holds_is_printed_where_a_later_setting_is_refused(desk: Desk, tmp_path: Path) -> None:
    desk.refused = "c.d"
    made = league("set", tmp_path / "run", "a.b=1", "c.d=2", "--json")
    assert (made.code, len(made.json["changes"])) == (2, 1)
    assert "there is no c.d" in made.err
    desk.asked.clear()
    assert league("set", tmp_path / "run", "a.b=1", "c.d", "--json").code == 2
    assert desk.asked == [], "what is no KEY=VALUE is found before anything is changed"
