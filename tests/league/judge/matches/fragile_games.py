"""Games that fail by lot, also in child processes: this module imports no more than a user's game does."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

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
