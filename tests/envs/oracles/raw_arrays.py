"""A counting array env of Gymnasium in each way of restarting, and one whose games cannot be exchanged row by row."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space

LENGTH = 4


class RawArrayProbe(VectorEnv):
    """Every game counts its steps to LENGTH; the observation is (start, step, last action), start drawn at a restart.

    mode: how it restarts. late_start: NEXT_STEP restarts as Gymnasium defines them. The reward is 16 (step + 1).
    """

    metadata: ClassVar[dict[str, Any]] = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, num_envs: int = 1, mode: str = "NextStep", truncate: bool = False, **_: Any) -> None:
        self.num_envs, self.truncate = num_envs, truncate
        self.metadata = {"autoreset_mode": AutoresetMode(mode)}
        self.single_observation_space = spaces.Box(-1, 1e6, (3,), np.float32)
        self.single_action_space = spaces.Discrete(3, start=1)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.counts = np.zeros((num_envs, 3))
        self.over = np.zeros(num_envs, np.bool_)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        which = np.ones(self.num_envs, np.bool_) if options is None else options["reset_mask"]
        self._restart(which)
        return self.counts.astype(np.float32), {}

    def step(self, actions: Any) -> tuple[Any, ...]:
        assert self.action_space.contains(actions)
        mode = self.metadata["autoreset_mode"]
        late = self.over.copy() if mode == AutoresetMode.NEXT_STEP else np.zeros(self.num_envs, np.bool_)
        assert not (mode == AutoresetMode.DISABLED and self.over.any())
        self.counts[:, 1] += 1
        self.counts[:, 2] = actions
        rewards = np.where(late, 0.0, 16 * self.counts[:, 1])
        self._restart(late)
        self.over = self.counts[:, 1] == LENGTH
        over, infos = self.over, {}
        if mode == AutoresetMode.SAME_STEP and over.any():
            last = np.full(self.num_envs, None, dtype=object)
            for game in np.flatnonzero(over):
                last[game] = self.counts[game].astype(np.float32)
            infos = {"final_obs": last, "_final_obs": over.copy()}
            self._restart(over.copy())
        never = np.zeros(self.num_envs, np.bool_)
        flags = (never, over.copy()) if self.truncate else (over.copy(), never)
        return self.counts.astype(np.float32), rewards, *flags, infos

    def _restart(self, which: np.ndarray) -> None:
        starts = self.np_random.integers(100, 1000, size=int(which.sum()))
        self.counts[which] = 0
        self.counts[which, 0] = starts
        self.counts[which, 2] = -1
        self.over = self.over & ~which


class HiddenArrayProbe(RawArrayProbe):
    """Keeps its starts where no row can be exchanged: in a list."""

    def _restart(self, which: np.ndarray) -> None:
        super()._restart(which)
        if not hasattr(self, "hidden"):
            self.hidden = [0.0] * self.num_envs
        for game in range(self.num_envs):
            self.hidden[game] = self.counts[game, 0] if which[game] else self.hidden[game]

    def step(self, actions: Any) -> tuple[Any, ...]:
        result = super().step(actions)
        result[0][:, 0] = self.hidden
        return result


class SingleTwin(gymnasium.Env):
    """The single env that an array env's registration also needs."""

    observation_space = spaces.Box(-1, 1e6, (3,), np.float32)
    action_space = spaces.Discrete(3, start=1)

    def __init__(self, **_: Any) -> None:
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(3, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.steps += 1
        return np.full(3, self.steps, np.float32), 16.0 * self.steps, self.steps == LENGTH, False, {}


gymnasium.register("RawArrayProbe-v0", entry_point=SingleTwin, vector_entry_point=RawArrayProbe)
gymnasium.register("HiddenArrayProbe-v0", entry_point=SingleTwin, vector_entry_point=HiddenArrayProbe)


def own_arrays(num_envs: int, mode: str = "NextStep") -> RawArrayProbe:
    """A user's factory of a vector env."""
    return RawArrayProbe(num_envs, mode)


def own_hidden(num_envs: int) -> HiddenArrayProbe:
    """One that restarts late, and whose games cannot be exchanged."""
    return HiddenArrayProbe(num_envs)


def own_sync(num_envs: int, mode: str = "NextStep") -> SyncVectorEnv:
    """Gymnasium's own wrapper of single envs."""
    return SyncVectorEnv([SingleTwin] * num_envs, autoreset_mode=AutoresetMode(mode))


def own_few(num_envs: int) -> RawArrayProbe:
    """One of another number of games than asked for."""
    return RawArrayProbe(num_envs + 1)
