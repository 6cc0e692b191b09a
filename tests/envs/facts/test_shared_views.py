"""Visible dice against hidden ones: what all seats of a game in turns see."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import AECEnv

from league.envs.facts.game_facts import GameFacts
from league.envs.facts.random_play import RandomPlay
from league.envs.plugins import admit
from league.envs.protocol import EnvConfig


class Race(AECEnv):
    """Two seats roll a die in turn, and go so many fields or stay; 20 turns.

    Args:
      shown: to whom the die is shown that has just been rolled: "all", "mover", or "nobody" until it is used.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "race", "is_parallelizable": False}

    def __init__(self, shown: str) -> None:
        super().__init__()
        self._shown = shown
        self.possible_agents = ["white", "black"]

    def observation_space(self, agent: str) -> spaces.Space:
        return spaces.Box(0.0, 200.0, (4,), np.float32)

    def action_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(2)

    def observe(self, agent: str) -> np.ndarray:
        seat = self.possible_agents.index(agent)
        sees = self._shown == "all" or (self._shown == "mover" and agent == self.agent_selection)
        return np.array([self._at[seat], self._at[1 - seat], self._die if sees else 0, self._turn], np.float32)

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self._rng = np.random.default_rng(seed)
        self.agents = self.possible_agents[:]
        self._at, self._turn, self._die = [0, 0], 0, int(self._rng.integers(1, 4))
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations, self.truncations = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = "white"

    def step(self, action: int | None) -> None:
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        seat = self.possible_agents.index(agent)
        self._cumulative_rewards[agent] = 0.0
        self._at[seat] += self._die * int(action or 0)
        self._die, self._turn = int(self._rng.integers(1, 4)), self._turn + 1
        if self._turn == 20:
            lead = float(np.sign(self._at[0] - self._at[1]))
            self.rewards = {"white": lead, "black": -lead}
            self.terminations = dict.fromkeys(self.agents, True)
        self._accumulate_rewards()
        self.agent_selection = self.possible_agents[1 - seat]


class Silent(Race):
    """Only the seat to move may be asked what it sees."""

    def observe(self, agent: str) -> np.ndarray:
        if agent != self.agent_selection:
            raise RuntimeError("not your turn")
        return super().observe(agent)


def visible() -> Race:
    return Race("all")


def hidden() -> Race:
    return Race("mover")


def unseen() -> Race:
    return Race("nobody")


def silent() -> Silent:
    return Silent("all")


def facts(game: str) -> GameFacts:
    admit([f"{__name__}:{game}"])
    play = RandomPlay(EnvConfig(f"{__name__}:{game}"), seconds=None)
    play.run()
    found = play.facts()
    assert found is not None
    return found


@pytest.mark.parametrize(("game", "hides"), [("visible", False), ("hidden", True), ("unseen", False), ("silent", True)])
def test_dice_that_all_seats_see_hide_nothing(game: str, hides: bool) -> None:
    found = facts(game)
    assert found.surprises
    assert found.hides == hides


def test_hidden_cards_stay_hidden() -> None:
    play = RandomPlay(EnvConfig("pettingzoo:classic/leduc_holdem_v4"), seconds=None)
    play.run()
    found = play.facts()
    assert found is not None and found.hides
