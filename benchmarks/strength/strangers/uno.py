"""UNO of rlcard for two as a game of PettingZoo: hidden hands, in turns. Needs `pip install rlcard`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import rlcard
from gymnasium import spaces
from pettingzoo import AECEnv
from rlcard.games.uno.utils import ACTION_SPACE
from rlcard.models.uno_rule_models import UNORuleAgentV1

NAMES = ["first", "second"]


class Uno(AECEnv):  # type: ignore[misc]
    """Whoever has no card left wins."""

    metadata: ClassVar = {"name": "uno", "render_modes": [], "is_parallelizable": False}

    def __init__(self) -> None:
        super().__init__()
        self.possible_agents = list(NAMES)
        self.game = rlcard.make("uno")
        shape, self._actions = tuple(self.game.state_shape[0]), int(self.game.num_actions)
        seen = spaces.Box(0.0, 1.0, shape, np.float32)
        self._space = spaces.Dict({"observation": seen, "action_mask": spaces.MultiBinary(self._actions)})

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self._space

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Discrete(self._actions)

    def reset(self, seed: int | None = None, options: object = None) -> None:
        self.agents = list(NAMES)
        if seed is not None:
            self.game.seed(seed % 2**32)
        _, player = self.game.reset()
        self.agent_selection = NAMES[player]
        self.rewards = self._cumulative_rewards = dict.fromkeys(NAMES, 0.0)
        self.terminations, self.truncations = dict.fromkeys(NAMES, False), dict.fromkeys(NAMES, False)
        self.infos: dict[str, dict[str, Any]] = {name: {} for name in NAMES}

    def observe(self, agent: str) -> dict[str, Any]:
        state = self.state_of(agent)
        mask = np.zeros(self._actions, np.int8)
        if agent == self.agent_selection and not any(self.terminations.values()):
            mask[list(state["legal_actions"])] = 1
        return {"observation": np.asarray(state["obs"], np.float32), "action_mask": mask}

    def state_of(self, name: str) -> dict[str, Any]:
        """The state that the package's own agents take."""
        return dict(self.game.get_state(NAMES.index(name)))

    def step(self, action: int | None) -> None:
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        _, player = self.game.step(int(action or 0))
        self.agent_selection = NAMES[player]
        self._cumulative_rewards = dict.fromkeys(NAMES, 0.0)
        if self.game.is_over():
            self.rewards = dict(zip(NAMES, map(float, self.game.get_payoffs()), strict=True))
            self.terminations = dict.fromkeys(NAMES, True)
            self._cumulative_rewards = dict(self.rewards)

    def close(self) -> None:
        """Nothing is held."""


def rule(game: Uno, name: str) -> int:
    """The action of the package's own agent by rules."""
    return int(ACTION_SPACE[UNORuleAgentV1().step(game.state_of(name))])


def make() -> Uno:
    """The game as League loads it."""
    return Uno()


BOTS = {"rule": rule}
