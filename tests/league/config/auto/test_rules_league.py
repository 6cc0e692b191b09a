"""The rules that choose the players, their opponents, and the cadence of snapshots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from league.config.auto.rules_league import SNAPSHOTS
from league.config.auto.situation import Situation
from league.config.player_settings import settings_of
from league.config.run_config import BudgetConfig
from league.core.scouting import COUNTER_GAMES, MEASURED, MIN_LIFE_UPDATES, SCOUT
from league.errors import ConfigError
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


PAIRS = spec(seats=4, teams=(0, 0, 1, 1))
HOUR = BudgetConfig(core_seconds=3600.0)


def test_a_game_of_teams_begins_with_counters_where_a_twentieth_of_its_updates_are_a_life() -> None:
    config, reasons = settled(one_shot(spec=PAIRS), budget=HOUR)
    assert config.league.population.choice == MEASURED
    main, scout = config.league.players
    assert (main.role, scout.role, scout.prefix) == ("main_agent", "main_exploiter", SCOUT)
    assert main.matchmaker["self_play"] == COUNTER_GAMES["self_play"]  # type: ignore[index]
    assert main.step_weight == scout.step_weight
    assert "until they find nothing" in reasons["league.players"]
    own = settings_of(config, scout.player_id(0)).learner
    life = scout.gate.timeout_steps / (own.batch_rows * own.unroll_length)
    assert own.batch_rows <= 64 and life >= 0.95 * MIN_LIFE_UPDATES and scout.gate.min_steps == scout.gate.timeout_steps
    assert scout.reset_probability == 1.0


def test_too_short_a_budget_and_games_of_single_seats_have_no_scout_and_the_reason_names_counters() -> None:
    short, reasons = settled(one_shot(spec=PAIRS, costs=SLOW), budget=BudgetConfig(core_seconds=20.0))
    assert short.league.population.choice == "given"
    assert [group.role for group in short.league.players] == ["main_agent"]
    assert "league.population.choice: always" in reasons["league.players"]
    alone, reasons = settled(one_shot(), budget=HOUR)
    assert alone.league.population.choice == "given"
    assert "population" not in reasons["league.players"]


@pytest.mark.parametrize("game", [board_game, one_shot], ids=["board", "one-shot"])
@pytest.mark.parametrize("pairs", [False, True], ids=["single seats", "teams"])
def test_every_choice_of_a_population_can_be_asked_for(game: Any, pairs: bool) -> None:
    facts = game(spec=PAIRS) if pairs else game()
    roles, self_play = {}, {}
    for choice in ("always", "never", "measured", "auto"):
        given = {} if choice == "auto" else {"league": {"population": {"choice": choice}}}
        config, _ = settled(facts, given, budget=HOUR)
        roles[choice] = [group.prefix for group in config.league.players]
        self_play[choice] = config.league.players[0].matchmaker["self_play"]  # type: ignore[index]
    assert roles["never"] == ["main"] and self_play["never"] == 1.0
    assert roles["measured"] == ["main", SCOUT] and self_play["measured"] == (0.1 if pairs else 1.0)
    assert self_play["always"] == pytest.approx(0.1) if pairs else self_play["always"] < 1.0
    assert roles["auto"] == (roles["measured"] if pairs else roles["always"])


def test_a_choice_beside_a_preset_is_refused_and_none_is_made_beside_players_or_a_trainer_of_ones_own() -> None:
    with pytest.raises(ConfigError, match="the preset 'self_play' is a population"):
        settled(one_shot(), {"league": {"preset": "self_play", "population": {"choice": "always"}}}, budget=HOUR)
    for given in ({"league": {"players": [{"role": "main_agent"}]}}, {"trainer": {"kind": "own"}}):
        config, _ = settled(one_shot(spec=PAIRS), given, budget=HOUR)
        assert config.league.population.choice == "given"


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
