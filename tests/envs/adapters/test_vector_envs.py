"""Vector envs that hand out arrays of their own and write into them later: what a turn reported stays as it was."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

from league.envs.adapters.gymnasium_arrays import vector_env

LENGTH = 3


class OwnArrays(VectorEnv):  # type: ignore[misc]
    """Counts up to `LENGTH` and pays 1 a step; every call returns the same arrays."""

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.DISABLED}  # noqa: RUF012  as Gymnasium reads it

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.single_observation_space = spaces.Box(0, LENGTH, (1,), np.float32)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self.counts = np.zeros((num_envs, 1), np.float32)
        self.rewards = np.zeros(num_envs)
        self.ends, self.cuts = np.zeros(num_envs, np.bool_), np.zeros(num_envs, np.bool_)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        which = np.ones(self.num_envs, np.bool_) if options is None else options["reset_mask"]
        for array in (self.counts, self.rewards, self.ends, self.cuts):
            array[which] = 0
        return self.counts, {}

    def step(self, actions: Any) -> tuple[Any, ...]:
        self.counts += 1
        self.rewards[:] = 1.0
        at_end = self.counts[:, 0] == LENGTH
        self.ends[:], self.cuts[:] = at_end & (np.arange(self.num_envs) == 0), at_end & (np.arange(self.num_envs) == 1)
        return self.counts, self.rewards, self.ends, self.cuts, {}


def test_an_end_is_reported_although_the_restart_clears_the_envs_arrays() -> None:
    env = vector_env(OwnArrays(2), OwnArrays, env_id="own_arrays")
    env.reset(0)
    for _ in range(LENGTH):
        turn = env.step(np.zeros(2, np.int64))
    assert turn.terminated.tolist() == [True, False]
    assert turn.truncated.tolist() == [False, True]
    assert turn.rewards.tolist() == [[1.0], [1.0]]
    assert turn.returns.tolist() == [[LENGTH], [LENGTH]]
    assert turn.final is not None
    assert turn.final.obs["observation"].tolist() == [[LENGTH]]
    assert turn.obs["observation"].tolist() == [[0.0], [0.0]]
