"""Judges for tests: numbers drawn from a position, and perfect knowledge."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from league.envs.bots import RandomBot
from league.envs.protocol import BatchedEnv, Turn


class DrawnJudge:
    """Logits and values that look random and depend on the position alone.

    Attributes:
      num_calls: how often it was asked.
    """

    def __init__(self, num_actions: int, *, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._factors = self._rng.normal(size=(1_000, num_actions + 1))
        self.num_calls = 0

    def judge(
        self, obs: Mapping[str, NDArray[np.generic]], legal: NDArray[np.bool_], seat: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        self.num_calls += 1
        flat = np.concatenate(
            [np.asarray(obs[name], np.float64).reshape(len(seat), -1) for name in sorted(obs)], axis=1
        )
        mixed = np.sin(3 * flat @ self._factors[: flat.shape[1]] + seat[:, None])
        return (2 * mixed[:, 1:]).astype(np.float32), mixed[:, 0].astype(np.float32)


def played(env: BatchedEnv, *, plies: int, seed: int = 0) -> Turn:
    """The turn after some random plies of games that begin."""
    turn, bot = env.reset(seed), RandomBot(seed=seed)
    for _ in range(plies):
        turn = env.step(bot.act(env, turn, np.arange(len(turn.env_index))))
    return turn
