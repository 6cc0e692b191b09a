"""Gymnasium games whose observations and actions are not arrays from 0: what a user's own env may look like."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Told(gymnasium.Env[Any, Any]):
    """Shows draws of its observation space and keeps every action; an episode is ten steps."""

    def __init__(self, observation_space: Any, action_space: Any) -> None:
        self.observation_space = observation_space
        self.action_space = action_space
        self.told: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.told.clear()
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.told.append(action)
        return self.observation_space.sample(), 0.0, len(self.told) == 10, False, {}


DICT = spaces.Dict(
    {
        "tile": spaces.Discrete(5, start=2),
        "bag": spaces.Dict({"coins": spaces.MultiDiscrete([3, 2]), "weight": spaces.Box(0, 9, (2,), np.float64)}),
        "doors": spaces.MultiBinary(4),
        "picture": spaces.Box(0, 255, (4, 4, 3), np.uint8),
        "pair": spaces.Tuple((spaces.Discrete(2), spaces.Box(-1, 1, (1,)))),
    }
)


def dict_game() -> Told:
    return Told(DICT, spaces.Discrete(3, start=7))


def tuple_game() -> Told:
    return Told(spaces.Tuple((spaces.Discrete(4), spaces.Box(0, 1, (3,)))), spaces.MultiDiscrete([3, 2], start=[1, 5]))


def uneven_box_game() -> Told:
    low, high = np.array([-1, 100], np.float32), np.array([1, 200], np.float32)
    return Told(spaces.MultiDiscrete([3, 3, 2]), spaces.Box(low, high))


def binary_game() -> Told:
    return Told(spaces.Discrete(6), spaces.MultiBinary(3))
