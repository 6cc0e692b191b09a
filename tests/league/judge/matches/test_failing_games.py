"""A match outlives games of the env that fail: their groups count for nobody, and the others as if nothing had been."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv

from league.envs.protocol import EnvConfig, EnvError
from league.judge.matches.match import Match
from league.judge.matches.match_result import MatchResult
from tests.league.judge.matches.eval_runs import RulePolicy, always

ROUNDS = 10


class Fragile(ParallelEnv):
    """Ten rounds that pay by lot, of which each fails with a chance; or the first object, and each made later, always.

    Args:
      chance: of a failure in a round. num_sound: objects after the first that never fail; None leaves it to chance.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "fragile"}
    made = 0

    def __init__(self, chance: float = 0.0, num_sound: int | None = None) -> None:
        self.possible_agents = ["one", "two"]
        is_sound = num_sound is not None and 0 < Fragile.made <= num_sound
        self.chance = chance if num_sound is None else float(not is_sound)
        Fragile.made += 1

    def observation_space(self, agent: str) -> spaces.Space:
        return spaces.Box(0, ROUNDS, (1,), np.float32)

    def action_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents, self.round, self.lots = list(self.possible_agents), 0, np.random.default_rng(seed)
        return self._see(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> Any:
        pay, fate = self.lots.normal(), self.lots.random()
        if fate < self.chance:
            raise RuntimeError("the dice fell under the table")
        self.round += 1
        over = self.round == ROUNDS
        seen, rewards = self._see(), {"one": pay, "two": -pay}
        flags = dict.fromkeys(self.agents, over), dict.fromkeys(self.agents, False)
        self.agents = [] if over else self.agents
        return seen, rewards, *flags, {agent: {} for agent in seen}

    def _see(self) -> dict[str, np.ndarray]:
        return {agent: np.array([self.round], np.float32) for agent in self.agents}


def played(games: int = 80, **rules: Any) -> MatchResult:
    Fragile.made = -1  # the one that only shows its spec comes first
    policies = [RulePolicy(always(0)), RulePolicy(always(1))]
    return Match(EnvConfig(f"{__name__}:Fragile", kwargs=rules), policies, seed=3).play(games)


def test_groups_with_a_failed_game_count_for_nobody_and_the_others_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    whole = played()
    assert (whole.games, caplog.messages) == (80, [])
    with caplog.at_level(logging.WARNING):
        result = played(chance=0.02)
    assert 0 < result.games < 80
    (message,) = caplog.messages
    assert message.startswith(f"{40 - result.num_groups} of 40 groups of games failed and count for nobody: ")
    assert "the dice fell under the table" in message
    kept = [
        int(np.flatnonzero(np.isclose(whole.team_returns[0, :, 0], value))[0]) for value in result.team_returns[0, :, 0]
    ]
    np.testing.assert_array_equal(result.team_returns, whole.team_returns[:, kept])
    assert result.mean_steps == ROUNDS


def test_a_game_that_is_given_up_is_missed_in_later_rotations() -> None:
    result = played(games=8, num_sound=3)
    assert (result.games, result.mean_steps) == (6, ROUNDS)


def test_a_match_of_which_no_game_is_left_is_an_error() -> None:
    with pytest.raises(EnvError, match="the dice fell under the table"):
        played(chance=1.0)
