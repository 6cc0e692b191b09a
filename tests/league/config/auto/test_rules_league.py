"""The rules that choose the players, their opponents, and the cadence of snapshots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from league.config.auto.rules_league import SNAPSHOTS
from league.config.auto.situation import Situation
from league.config.run_config import BudgetConfig
from tests.league.config.auto.situations import BUDGETS, SLOW, board_game, one_shot, poker, settled, spec


@pytest.mark.parametrize("slow", [False, True], ids=["fast", "slow"])
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_the_main_agent_learns_from_four_fifths_of_all_decisions_where_games_have_turns(
    budget: BudgetConfig, slow: bool
) -> None:
    for game in (board_game(), poker()):
        config, _ = settled(replace(game, costs=SLOW) if slow else game, budget=budget)
        weights = [group.step_weight * group.count for group in config.league.players]
        past = 1.0 - config.league.players[0].matchmaker["self_play"]  # type: ignore[index,operator]
        learnt = weights[0] / sum(weights) * (1.0 - past / 2.0) * (1.0 - config.league.ratings.step_fraction)
        assert learnt >= 0.8


def test_a_short_budget_has_no_exploiter_and_a_long_one_has() -> None:
    short, _ = settled(board_game(), budget=BudgetConfig(core_seconds=600.0))
    long, _ = settled(board_game(), budget=BudgetConfig(core_seconds=7200.0))
    slow, _ = settled(board_game(costs=SLOW), budget=BudgetConfig(core_seconds=7200.0))
    assert [group.role for group in short.league.players] == ["main_agent"]
    assert [group.role for group in long.league.players] == ["main_agent", "main_exploiter"]
    assert [group.role for group in slow.league.players] == ["main_agent"]


def test_the_reason_for_one_main_agent_names_the_preset_where_there_are_teams() -> None:
    pairs = spec(seats=4, teams=(0, 0, 1, 1))
    for game in (board_game, one_shot):
        reasons = [settled(game(**changes))[1]["league.players"] for changes in ({}, {"spec": pairs})]
        assert ["cross_play" in reason for reason in reasons] == [False, True]


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("preset", ["", "self_play"])
def test_a_main_agents_snapshots_are_spread_over_the_budget(budget: BudgetConfig, preset: str) -> None:
    config, _ = settled(board_game(), {"league": {"preset": preset}} if preset else {}, budget=budget)
    gate = config.league.players[0].gate
    decisions = Situation(board_game(), budget).decisions(config.actors.num_envs)
    if budget == BudgetConfig():
        assert config.runtime.snapshots_per_budget == 0
        assert gate.timeout_steps < decisions
    else:
        assert config.runtime.snapshots_per_budget == SNAPSHOTS
        assert gate.min_steps > 10 * decisions


def test_the_snapshots_of_an_exact_run_follow_its_steps() -> None:
    config, _ = settled(board_game(costs=None), budget=BudgetConfig(env_steps=900_000), is_exact=True)
    assert config.runtime.snapshots_per_budget == SNAPSHOTS
    assert config.league.players[0].gate.min_steps > 900_000


def test_the_past_is_met_most_where_nothing_is_hidden() -> None:
    groups = [settled(game)[0].league.players[0] for game in (one_shot(), board_game(), poker())]
    assert [group.matchmaker["self_play"] for group in groups] == [0.9, 0.8, 0.9]  # type: ignore[index]
    weightings = [group.matchmaker["weighting"] for group in groups]  # type: ignore[index]
    assert weightings == ["uniform", "squared", "uniform"]
    assert [group.opponents_per_lease for group in groups] == [2, 1, 1]


@pytest.mark.parametrize("preset", ["", "fictitious"])
@pytest.mark.parametrize("budget", ["minute", "month"])
def test_old_games_fade_with_the_snapshots_where_gates_never_fire(preset: str, budget: str) -> None:
    given = {"league": {"preset": preset}} if preset else {}
    config, reasons = settled(board_game(), given, budget=BUDGETS[budget])
    assert config.league.payoff.half_life_snapshots == SNAPSHOTS
    assert "the whole budget" in reasons["league.payoff.half_life_snapshots"]


@pytest.mark.parametrize(
    "given",
    [
        {"players": [{"role": "main_agent", "gate": {"min_steps": 1_000, "timeout_steps": 8_000}}]},
        {"payoff": {"half_life_steps": 4_000}},
    ],
)
def test_old_games_fade_with_gates_or_steps_that_are_given(given: dict[str, Any]) -> None:
    config, _ = settled(board_game(), {"league": given})
    assert (config.league.half_life_steps, config.league.payoff.half_life_snapshots) == (4_000.0, None)
