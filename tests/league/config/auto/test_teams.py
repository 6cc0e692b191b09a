"""Teams that are chosen: by equal returns, never against what is given, and only where the game takes them."""

from __future__ import annotations

from dataclasses import replace

from envs.protocol import EnvConfig
from league.config.auto.resolve import resolve
from league.config.auto.teams import chosen_teams
from league.config.run_config import BudgetConfig
from tests.league.config.auto.situations import board_game

SHARED = "tests.league.run.test_undeclared_teams:Shared"
BUDGET = BudgetConfig(core_seconds=20.0)


def test_seats_that_earn_the_same_become_a_team() -> None:
    found = resolve(SHARED, limit=BUDGET)
    assert found.config.env.teams == (("red_0", "red_1"), ("blue_0",))
    assert "2 seats earned the same" in found.reasons["env.teams"]
    assert found.situation.game.spec.teams == (0, 0, 1)


def test_given_teams_stay() -> None:
    apart = 'env.teams=[["red_0"], ["red_1"], ["blue_0"]]'
    assert resolve(SHARED, overrides=[apart], limit=BUDGET).situation.game.spec.num_teams == 3
    assert "env.teams" not in resolve(SHARED, overrides=["env.teams=[]"], limit=BUDGET).reasons


def test_a_game_that_says_itself_who_plays_together_keeps_its_word() -> None:
    game = replace(board_game(), equal_seats=((0, 1),))
    assert chosen_teams(EnvConfig("tic_tac_toe"), game) is None


def test_openspiel_says_which_games_are_for_all_together() -> None:
    hanabi = resolve("openspiel:tiny_hanabi", limit=BUDGET)
    assert hanabi.situation.game.spec.num_teams == 1
    assert [group.role for group in hanabi.config.league.players] == ["main_agent"]
    assert hanabi.config.learner.entropy_cost < 0.1


def test_dice_hide_nothing() -> None:
    pig = resolve("openspiel:pig(winscore=10)", limit=BUDGET)
    assert pig.situation.game.surprises
    assert not pig.situation.game.hides
    assert pig.config.network.core == "none"
    assert pig.config.learner.entropy_cost > 0.0
    assert pig.config.evaluation.bots == ("random",), "copies would show what the dice will be"
