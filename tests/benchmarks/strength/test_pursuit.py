"""The benchmark of fresh exploiting teams: gains over a half, their ratio to newest-only's, and the one bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.strength import pursuit
from benchmarks.strength.runs import CROSS_PLAY, LATEST, LEAGUE, Plan

SCORES = {"latest": 0.9, "league": 0.7, "cross": 0.6}


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    def attack(run: Path, *, player: str, core_seconds: float, **_: object) -> dict[str, float]:
        assert core_seconds == 1.0
        value = SCORES[run.name.split("-")[1]] + (0.05 if player == "last" else 0.0) + 0.01 * int(run.name[-1])
        return {"value": value, "low": value - 0.02, "high": value + 0.02}

    monkeypatch.setattr(pursuit, "attack", attack)
    monkeypatch.setattr(pursuit, "finished_run", lambda *_, **__: None)
    return Plan((0, 1), (LATEST, LEAGUE, CROSS_PLAY), 5.0, 0.0, 10, 1, tmp_path)


def test_gains_are_compared_with_newest_only_s_and_one_is_bounded(plan: Plan) -> None:
    rows = {row.name: row for row in pursuit.measure(plan, ("auto", "last")).rows}
    assert rows["latest: auto, seed 1 [0.890, 0.930]"].value == pytest.approx(0.91)
    ratio = rows["auto: an exploiter's gain, cross_play over newest only"]
    assert ratio.value == pytest.approx(0.105 / 0.405) and ratio.met and ratio.required == "<= 0.5"
    assert rows["last: an exploiter's gain, league over newest only"].value == pytest.approx(0.255 / 0.455)
    assert sum(row.required is not None for row in rows.values()) == 1


def test_without_a_gain_against_newest_only_there_is_nothing_to_halve(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCORES, "latest", 0.48)
    rows = {row.name: row for row in pursuit.measure(plan, ("auto",)).rows}
    ratio = rows["auto: an exploiter's gain, cross_play over newest only"]
    assert ratio.value is None and ratio.met is None
