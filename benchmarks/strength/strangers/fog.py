"""Generals of generals-bots as a game of PettingZoo: fog, two seats that move at the same time, composite actions.

Needs `pip install --no-deps generals-bots numba llvmlite pygame scipy`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from generals.agents import ExpanderAgent
from generals.core.game import Game
from generals.core.grid import GridFactory
from generals.core.observation import Observation
from gymnasium import spaces
from pettingzoo import ParallelEnv

SIDE, LAST_TURN = 8, 200


class Fog(ParallelEnv):  # type: ignore[misc]
    """An action is: pass, row, column, direction, split. Who holds more land at the last turn has half a win."""

    metadata: ClassVar = {"name": "generals", "render_modes": []}

    def __init__(self) -> None:
        self.possible_agents = ["red", "blue"]
        self._grids = GridFactory(min_grid_dims=(SIDE, SIDE), max_grid_dims=(SIDE, SIDE))

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Box(0.0, 10.0, (15, SIDE, SIDE), np.float32)

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.MultiDiscrete([2, SIDE, SIDE, 4, 2])

    def reset(self, seed: int | None = None, options: object = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self._grids.set_rng(np.random.default_rng(seed))
        self.agents = list(self.possible_agents)
        self.game = Game(self._grids.generate(), self.agents)
        return {agent: view(self.observation(agent)) for agent in self.agents}, {agent: {} for agent in self.agents}

    def observation(self, agent: str) -> Observation:
        return self.game.agent_observation(agent)

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        seen, _ = self.game.step({agent: np.asarray(action) for agent, action in actions.items()})
        over = self.game.is_done()
        late = not over and self.game.time >= LAST_TURN
        rewards = dict.fromkeys(self.agents, 0.0)
        if over:
            rewards = {agent: 1.0 if agent == self.game.winner else -1.0 for agent in self.agents}
        elif late:
            red, blue = (int(seen[agent].owned_land_count) for agent in self.possible_agents)
            sign = float(np.sign(red - blue))
            rewards = {"red": 0.5 * sign, "blue": -0.5 * sign}
        views = {agent: view(seen[agent]) for agent in self.agents}
        ended, cut = dict.fromkeys(self.agents, over), dict.fromkeys(self.agents, late)
        infos: dict[str, Any] = {agent: {} for agent in self.agents}
        if over or late:
            self.agents = []
        return views, rewards, ended, cut, infos

    def close(self) -> None:
        """Nothing is held."""


def view(seen: Observation) -> np.ndarray[Any, Any]:
    """float32 [15, SIDE, SIDE]; counts by their logarithm."""
    return np.log1p(np.asarray(seen.as_tensor(), np.float32))


def expander(game: Fog, name: str) -> Any:
    """The move of the package's own agent, which takes land."""
    return np.asarray(EXPANDER.act(game.observation(name)))


def make() -> Fog:
    """The game as League loads it."""
    return Fog()


EXPANDER = ExpanderAgent()
BOTS = {"expander": expander}
