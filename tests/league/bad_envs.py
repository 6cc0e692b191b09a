"""Games that break in the ways that users' games do: N games of rock, paper, scissors in four rounds."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np

from league.envs.games.matrix import RepeatedRockPaperScissors
from league.envs.protocol import Turn


class Breaking(RepeatedRockPaperScissors):
    """Does `how` from the `after`-th step on; "hang" first touches the file `flag`.

    "hang_when_asked" waits for the file, whatever `after` is, and takes it away before it hangs.
    """

    def __init__(self, *, num_envs: int, how: str, after: int, flag: str) -> None:
        super().__init__(num_envs=num_envs, rounds=4)
        self._how = how
        self._left = after
        self._flag = flag

    def step(self, actions: Any) -> Turn:
        turn = super().step(actions)
        self._left -= 1
        if self._how == "hang_when_asked":
            return self._broken(turn) if Path(self._flag).exists() else turn
        return turn if self._left > 0 else self._broken(turn)

    def _broken(self, turn: Turn) -> Turn:
        if self._how == "raise":
            raise RuntimeError("the dice fell under the table")
        if self._how == "nan_reward":
            rewards = turn.rewards.copy()
            rewards[1, 0] = np.nan
            return dataclasses.replace(turn, rewards=rewards)
        if self._how == "inf_obs":
            state = turn.obs["state"].copy()
            state[2] = np.inf
            return dataclasses.replace(turn, obs={"state": state})
        if self._how == "hang":
            Path(self._flag).touch()
        else:
            Path(self._flag).unlink()
        while True:
            time.sleep(60)


def breaking(num_envs: int, how: str, after: int = 20, flag: str = "") -> Breaking:
    return Breaking(num_envs=num_envs, how=how, after=after, flag=flag)
