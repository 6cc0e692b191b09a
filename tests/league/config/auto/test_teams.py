"""Teams and networks of seats that are chosen: never against what is given, and only where the game takes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium import spaces

from league.config.auto.resolve import chosen_policies, chosen_teams, resolve
from league.config.run_config import BudgetConfig
from league.envs.facts.game_facts import ENOUGH_EPISODES
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from tests.envs.oracles.raw_roles import RawRoles
from tests.league.config.auto.situations import board_game

SHARED = f"{__name__}:Shared"
UNEVEN = "tests.envs.facts.test_seat_roles:Uneven"
BUDGET = BudgetConfig(core_seconds=20.0)


class Shared(RawRoles):
    """Reds share what they earn, which is drawn anew in each game; blue earns the opposite of it."""

    def __init__(self) -> None:
        names = ("red_0", "red_1", "blue_0")
        super().__init__(dict.fromkeys(names, 1), dict.fromkeys(names, spaces.Discrete(2)), length=3)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.worth = float(np.random.default_rng(seed).normal())
        return super().reset(seed, options)

    def step(self, actions: dict[str, Any]) -> Any:
        observations, rewards, *rest = super().step(actions)
        return observations, {seat: self.worth * (-1) ** (seat == "blue_0") for seat in rewards}, *rest


def test_seats_that_earn_the_same_become_a_team() -> None:
    found = resolve(SHARED, limit=BUDGET)
    assert found.config.env.teams == (("red_0", "red_1"), ("blue_0",))
    assert "2 seats earned the same" in found.reasons["env.teams"]
    assert found.situation.game.spec.teams == (0, 0, 1)


class Partners(RawRoles):
    """Two seats earn 1 together now and then in a long game, and what `last` says at its end."""

    def __init__(self, length: int = 500, last: tuple[float, float] = (0.0, 0.0)) -> None:
        names = ("one", "two")
        super().__init__(dict.fromkeys(names, 1), dict.fromkeys(names, spaces.Discrete(2)), length=length)
        self.last = dict(zip(names, last, strict=True))

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.rng = np.random.default_rng(seed)
        return super().reset(seed, options)

    def step(self, actions: dict[str, Any]) -> Any:
        observations, rewards, terminations, *rest = super().step(actions)
        earned = float(self.rng.random() < 0.2)
        over = any(terminations.values())
        return observations, {seat: earned + over * self.last[seat] for seat in rewards}, terminations, *rest


def test_partners_in_long_games_become_a_team_by_their_rewards() -> None:
    found = resolve(f"{__name__}:Partners", limit=BUDGET)
    assert found.config.env.teams == (("one", "two"),)
    assert found.reasons["env.teams"] == "2 seats earned the same as others, or nearly so, in all of random play"


def test_few_games_with_a_winner_show_opponents_whatever_they_earned_together_before() -> None:
    exact = BudgetConfig(env_steps=10_000)  # 500 turns of four games at random
    for last, teams in (((1.0, -1.0), ()), ((0.0, 0.0), (("one", "two"),))):
        rules = f"env.kwargs={{length: 300, last: {list(last)}}}"
        found = resolve(f"{__name__}:Partners", overrides=[rules], limit=exact, ends_by_steps=True)
        assert 0 < found.situation.game.episodes < ENOUGH_EPISODES
        assert found.config.env.teams == teams


def test_teams_that_are_given_stay() -> None:
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


def test_seats_of_different_roles_have_networks_and_scales_of_their_own() -> None:
    found = resolve(UNEVEN, limit=BUDGET)
    assert found.config.env.policies == {"one": ("one",), "two": ("two",)}
    assert "scales of their own" in found.reasons["env.policies"]
    assert [group.seats for group in found.situation.game.spec.seat_groups] == [(0,), (1,)]
    scales = found.config.learner.reward_scales
    assert len(scales) == 2
    assert scales[0] >= 1000.0 * scales[1], "each learns from rewards of about 1"


def test_groups_that_are_given_stay() -> None:
    together = resolve(UNEVEN, overrides=["env.policies={both: [one, two]}"], limit=BUDGET)
    assert together.config.env.policies == {"both": ("one", "two")}
    assert "env.policies" not in resolve(UNEVEN, overrides=["env.policies={}"], limit=BUDGET).reasons


def test_a_game_that_takes_no_groups_gets_none() -> None:
    game = replace(board_game(), roles=((0,), (1,)))
    assert (
        chosen_policies(EnvConfig("tic_tac_toe"), replace(game, spec=replace(game.spec, seat_names=("x", "o")))) is None
    )


class InAnotherScript(RawRoles):
    """Two seats whose names have no letter that the name of a group may have."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys("甲乙", 1), dict.fromkeys("甲乙", spaces.Discrete(2)), length=3)


def test_roles_in_another_script_have_networks_of_their_own_too() -> None:
    env = EnvConfig(f"{__name__}:InAnotherScript")
    game = replace(board_game(), spec=spec_of(env), roles=((0,), (1,)), roles_differ="they are paid differently")
    chosen = chosen_policies(env, game)
    assert chosen is not None
    assert chosen.value == {"seat-0": ["甲"], "seat-1": ["乙"]}
