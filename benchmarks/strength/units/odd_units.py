"""Well-known games in other units: every observed number or every return is a * x + b of what it was.

Nothing that matters changes: what is best stays best, and how good a policy is follows from its figure.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TransformObservation, TransformReward
from pettingzoo.utils import BaseWrapper

from league.envs.adapters.as_pettingzoo import as_pettingzoo
from league.envs.protocol import EnvConfig


def one_seat(
    name: str, factor: float = 1.0, offset: float = 0.0, reward_factor: float = 1.0
) -> gymnasium.Env[Any, Any]:
    """A game of Gymnasium. factor, offset: of its observed numbers. reward_factor: of every reward."""
    env = gymnasium.make(name)
    if (factor, offset) != (1.0, 0.0):
        assert isinstance(env.observation_space, spaces.Box)
        space = spaces.Box(-np.inf, np.inf, env.observation_space.shape, np.float32)
        env = TransformObservation(env, lambda seen: (factor * seen + offset).astype(np.float32), space)
    return env if reward_factor == 1.0 else TransformReward(env, lambda reward: reward_factor * float(reward))


def kuhn(factor: float = 1.0, offset: float = 0.0) -> BaseWrapper:
    """Kuhn poker through PettingZoo. factor, offset: of what each seat has won in the end."""
    return OtherReturns(as_pettingzoo(EnvConfig("kuhn_poker")), factor, offset)


class OtherReturns(BaseWrapper):  # type: ignore[misc]  # PettingZoo has no types
    """A game in turns that pays at its end, with factor * return + offset for every seat."""

    def __init__(self, env: Any, factor: float, offset: float) -> None:
        super().__init__(env)
        self._factor, self._offset = factor, offset
        self._is_paid = False

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """As of the game."""
        self._is_paid = False
        self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> None:
        """As of the game; the last step pays."""
        self.env.step(action)
        env: Any = self.env
        has_ended = bool(env.agents) and all(env.terminations[agent] for agent in env.agents)
        if has_ended and not self._is_paid:
            self._is_paid = True
            for agent in env.agents:
                paid = self._factor * env.rewards[agent] + self._offset
                env._cumulative_rewards[agent] += paid - env.rewards[agent]
                env.rewards[agent] = paid

    def last(self, observe: bool = True) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """As of the game."""
        found: tuple[Any, float, bool, bool, dict[str, Any]] = self.env.last(observe)
        return found
