"""Games that end after a number of turns, with and without the time in sight."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv

from league.envs.facts.game_facts import GameFacts
from league.envs.facts.random_play import RandomPlay
from league.envs.plugins import admit
from league.envs.protocol import EnvConfig
from tests.league.config.auto.situations import board_game, even, poker, settled


class Rounds(ParallelEnv[str, np.ndarray, int]):
    """Two seats choose a side for some rounds, and see what was chosen last, or points in space.

    Args:
      rounds: until the end. shown: whether the number of rounds is. smooth: whether positions never come twice.
      stops: chance that a round is the last.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "rounds"}

    def __init__(self, rounds: int = 8, shown: bool = False, smooth: bool = False, stops: float = 0.0) -> None:
        self.possible_agents = ["first", "second"]
        self._rounds, self._shown, self._smooth, self._stops = rounds, shown, smooth, stops

    def observation_space(self, agent: str) -> spaces.Box:
        return spaces.Box(-np.inf, np.inf, (3,), np.float32)

    def action_space(self, agent: str) -> spaces.Discrete:
        return spaces.Discrete(2)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.agents = [*self.possible_agents]
        self._rng, self._round, self._seen = np.random.default_rng(seed), 0, np.zeros(2)
        return self._views(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> Any:
        self._round += 1
        chosen = np.array([actions["first"], actions["second"]], np.float64)
        self._seen = self._rng.normal(size=2) if self._smooth else chosen
        won = 1.0 if chosen[0] == chosen[1] else -1.0
        ended = self._round == self._rounds or bool(self._rng.random() < self._stops)
        agents, views = self.agents, self._views()
        self.agents = [] if ended else self.agents
        flags = (dict.fromkeys(agents, ended), dict.fromkeys(agents, False), {agent: {} for agent in agents})
        return views, dict(zip(agents, (won, -won), strict=True)), *flags

    def _views(self) -> dict[str, np.ndarray]:
        time = self._round if self._shown else 0
        return {agent: np.array([*self._seen, time], np.float32) for agent in self.possible_agents}


admit(f"{__name__}:Rounds")


def facts_of(**kwargs: object) -> GameFacts:
    play = RandomPlay(EnvConfig(f"{__name__}:Rounds", kwargs), seconds=None)
    play.run()
    found = play.facts()
    assert found is not None
    return found


@pytest.mark.parametrize("smooth", [False, True], ids=["numbers that recur", "numbers that never do"])
def test_time_is_hidden_where_a_limit_ends_the_game_and_no_number_tells_it(smooth: bool) -> None:
    assert facts_of(smooth=smooth).time_is_hidden
    assert not facts_of(smooth=smooth, shown=True).time_is_hidden


def test_a_game_that_may_also_end_sooner_hides_its_limit_too() -> None:
    assert facts_of(stops=0.1).time_is_hidden
    assert not facts_of(stops=0.3, rounds=100).time_is_hidden, "no game lasts so long"


def test_one_round_has_no_time() -> None:
    assert not facts_of(rounds=1).time_is_hidden
    assert not facts_of(rounds=1, smooth=True).time_is_hidden


@pytest.mark.parametrize("env_id", ["tic_tac_toe", "connect_four", "kuhn_poker", "gymnasium:CartPole-v1"])
def test_time_that_a_board_shows_or_no_other_seat_shares_is_not_hidden(env_id: str) -> None:
    play = RandomPlay(EnvConfig(env_id), seconds=None)
    play.run()
    found = play.facts()
    assert found is not None and not found.time_is_hidden


def test_a_clock_is_chosen_where_nothing_else_remembers() -> None:
    hidden = board_game(time_is_hidden=True, decisions=even(15))
    assert settled(hidden)[0].network.core == {"kind": "clock", "decisions": 15}
    assert settled(poker(time_is_hidden=True, decisions=even(20)))[0].network.core == "lstm"
    assert settled(board_game(decisions=even(15)))[0].network.core == "none"
    assert settled(board_game(time_is_hidden=True, decisions=even(25)))[0].network.core == "none", "the end is far"
