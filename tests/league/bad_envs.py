"""Games that break in the ways that users' games do. Each factory makes N games of rock, paper, scissors."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np

from envs.games.matrix import RepeatedRockPaperScissors
from envs.protocol import Turn


class Breaking(RepeatedRockPaperScissors):
    """Does `how` from the `after`-th step on."""

    def __init__(self, *, num_envs: int, how: str, after: int) -> None:
        super().__init__(num_envs=num_envs, rounds=4)
        self._how = how
        self._left = after

    def step(self, actions: Any) -> Turn:
        turn = super().step(actions)
        self._left -= 1
        if self._left > 0:
            return turn
        if self._how == "raise":
            raise RuntimeError("the dice fell under the table")
        if self._how == "exit":
            os._exit(9)
        if self._how == "nan_reward":
            rewards = turn.rewards.copy()
            rewards[1, 0] = np.nan
            return dataclasses.replace(turn, rewards=rewards)
        if self._how == "nan_obs":
            state = turn.obs["state"].copy()
            state[2] = np.inf
            return dataclasses.replace(turn, obs={"state": state})
        assert self._how == "nothing"
        return turn


def breaking(num_envs: int, how: str, after: int = 20) -> Breaking:
    return Breaking(num_envs=num_envs, how=how, after=after)
