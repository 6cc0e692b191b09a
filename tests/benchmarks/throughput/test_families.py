"""The benchmark of families on small budgets: its rows, its bounds, and a replay of OpenSpiel's games."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyspiel
import pytest

from benchmarks.report import Report
from benchmarks.strength.run_to_end import RunFailed
from benchmarks.throughput import families
from benchmarks.throughput.families import (
    FAMILIES,
    Family,
    _parts,
    add_learning,
    add_speed,
    against_random,
    main,
    random_policy,
    replay,
)
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of


@pytest.mark.parametrize(
    ("family", "bounds"),
    [
        (Family("pettingzoo:classic/tictactoe_v3"), [None, None, ">= 0.6"]),
        (Family("openspiel:goofspiel(num_cards=3)", python=False), [None, None, None]),
        (Family("tic_tac_toe", python=False), [None]),
    ],
)
def test_speed_is_held_against_the_bare_env(family: Family, bounds: list[str | None]) -> None:
    report = Report()
    add_speed(report, "it", family, seconds=0.02)
    assert [row.required for row in report.rows] == bounds
    rates = [row.value or 0.0 for row in report.rows]
    assert min(rates) > 0


def test_what_was_learnt_is_held_against_random_play(tmp_path: Path) -> None:
    report = Report()
    add_learning(report, "it", Family("tic_tac_toe", games=40), core_seconds=1.0, seed=0, folder=tmp_path)
    chance, learnt = report.rows
    assert chance.value == pytest.approx(0.5, abs=0.25)
    assert learnt.required is not None
    assert float(learnt.required.removeprefix(">= ")) > (chance.value or 0.0)


def test_a_training_that_crashes_is_a_row_and_the_other_families_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def learn(report: Report, name: str, family: Family, *, folder: Path, **settings: float) -> None:
        if name == "classic_leduc":
            (folder / "log.txt").write_text("the game dumped its core")
            raise RunFailed.of(["league", "train"], reason="left with code -11", log=folder / "log.txt")
        report.add(f"{name}: after 1 core-s", 0.9, "score", at_least=0.5)

    monkeypatch.setattr(families, "add_learning", learn)
    arguments = ["families", "--rows", "classic_leduc,openspiel_leduc", "--seconds", "0", "--results", f"{tmp_path}"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert main() == 1
    printed = capsys.readouterr()
    assert "left with code -11" in printed.out and "the game dumped its core" in printed.err
    kept = {name: json.loads((tmp_path / f"{name}.json").read_text()) for name in ("classic_leduc", "openspiel_leduc")}
    assert [rows["rows"][0]["met"] for rows in kept.values()] == [False, True]


@pytest.mark.parametrize("name", ["goofspiel(num_cards=3)", "leduc_poker", "kuhn_poker(players=3)"])
def test_a_finished_game_is_replayed_to_its_end(name: str) -> None:
    game, rng = pyspiel.load_game(name), np.random.default_rng(0)
    state = game.new_initial_state()
    while not state.is_terminal():
        seats = range(game.num_players()) if state.is_simultaneous_node() else (state.current_player(),)
        chosen = [int(rng.choice(state.legal_actions(seat))) for seat in seats]
        state.apply_actions(chosen) if len(chosen) > 1 else state.apply_action(chosen[0])
    parts = list(_parts(state, game.num_players(), game))
    assert [action for part in parts for action in part] == state.history()
    replay(game, parts)


def test_the_families_are_games_that_can_be_made() -> None:
    for family in FAMILIES.values():
        if "atari" not in family.env_id:  # the console takes seconds to switch on
            assert spec_of(EnvConfig(family.env_id, dict(family.kwargs))).num_seats >= 1


def test_a_game_without_opponents_is_held_against_random_returns() -> None:
    mean, error = against_random(random_policy(0), EnvConfig("gymnasium:CartPole-v1"), games=20, alone=True)
    assert mean == pytest.approx(22.0, abs=10.0) and 0.0 < error < 6.0


def test_a_game_with_stakes_is_held_against_random_returns() -> None:
    """Three seats share what is bet: a share of games won is near 1/2, a mean return near 0."""
    kuhn = EnvConfig("openspiel:kuhn_poker(players=3)")
    score, _ = against_random(random_policy(0), kuhn, games=300, alone=False)
    mean, error = against_random(random_policy(0), kuhn, games=300, alone=False, stakes=True)
    assert score == pytest.approx(0.5, abs=0.1)
    assert mean == pytest.approx(0.0, abs=0.4) and 0.0 < error < 0.2
