"""Small random games of three kinds, of which chosen ones fail at call k of one method: by an exception, by the death
of the process, by never coming back, or by taking more and more memory.

A game knows itself by the seed of its first episode. `targets` maps that seed to k.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

from tests.envs.counting_games import TurnProbe

SPACE = spaces.Box(-np.inf, np.inf, (3,), np.float32)
ACTIONS = 4


class Crash:
    """Counts the calls of one method since the episode with a target's seed, and fails at its call k."""

    hoard: ClassVar[list[Any]] = []

    def __init__(self, method: str, how: str, targets: Mapping[str, int], length: int, one_in: int) -> None:
        self.method, self.how, self.targets, self.length, self.one_in = method, how, targets, length, one_in
        self.k = 0
        self.calls: Counter[str] = Counter()

    def arm(self, seed: int) -> None:
        if str(seed) in self.targets:
            self.k = self.targets[str(seed)]
        elif self.one_in:
            self.k, self.calls = 3 * (seed % self.one_in == 0), Counter()

    def call(self, method: str) -> None:
        if not self.k or method != self.method:
            return
        self.calls[method] += 1
        if self.calls[method] != self.k:
            return
        if self.how == "raise":
            raise RuntimeError("the ball rolled off")
        if self.how == "exit":
            os._exit(3)
        if self.how == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.how == "hang":
            time.sleep(3600)
        if self.how == "spin":
            while True:
                pass
        if self.how == "leak":
            while True:
                self.hoard.append(np.ones(1 << 20))
                time.sleep(0.005)


class Walk:
    """A random walk that the actions steer; about `length` steps long."""

    drift = 0

    def __init__(self, seed: int, length: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.left = length + int(self.rng.integers(3))
        self.place = 0.0

    def move(self, action: int) -> float:
        self.place += float(self.rng.normal()) + action
        self.left -= 1
        return float(np.float32(self.place) % 3)

    def see(self) -> np.ndarray:
        return np.array([self.place + self.drift, self.left, self.rng.random()], np.float32)


class CrashGym(gymnasium.Env):
    """One seat."""

    observation_space = SPACE
    action_space = spaces.Discrete(ACTIONS)

    def __init__(self, **options: Any) -> None:
        self.crash = Crash(**options)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        assert seed is not None
        self.crash.arm(seed)
        self.crash.call("reset")
        self.walk = Walk(seed, self.crash.length)
        return self.walk.see(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.crash.call("step")
        reward = self.walk.move(int(action))
        over = self.walk.left == 0
        return self.walk.see(), reward, over and reward > 1, over and reward <= 1, {}

    def close(self) -> None:
        self.crash.call("close")


class CrashParallel(ParallelEnv):
    """Two seats at once."""

    metadata: ClassVar[dict[str, Any]] = {"name": "crash_parallel"}
    possible_agents: ClassVar[list[str]] = ["a", "b"]

    def __init__(self, **options: Any) -> None:
        self.crash = Crash(**options)

    def observation_space(self, agent: str) -> spaces.Box:
        return SPACE

    def action_space(self, agent: str) -> spaces.Discrete:
        return spaces.Discrete(ACTIONS)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict, dict]:
        assert seed is not None
        self.crash.arm(seed)
        self.crash.call("reset")
        self.agents = list(self.possible_agents)
        self.walk = Walk(seed, self.crash.length)
        return self._see(), {}

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        self.crash.call("step")
        reward = self.walk.move(actions["a"] - actions["b"])
        over = dict.fromkeys(self.agents, self.walk.left == 0)
        seen = self._see()
        if self.walk.left == 0:
            self.agents = []
        return seen, {"a": reward, "b": -reward}, over, dict.fromkeys(over, False), {}

    def close(self) -> None:
        self.crash.call("close")

    def _see(self) -> dict[str, np.ndarray]:
        seen = self.walk.see()
        return {"a": seen, "b": -seen}


class CrashAec(AECEnv):
    """Two seats in turn."""

    metadata: ClassVar[dict[str, Any]] = {"name": "crash_aec"}

    def __init__(self, **options: Any) -> None:
        self.crash = Crash(**options)
        self.possible_agents = ["a", "b"]

    def observation_space(self, agent: str) -> spaces.Dict:
        mask = spaces.Box(0, 1, (ACTIONS,), np.int8)
        return spaces.Dict({"observation": SPACE, "action_mask": mask})

    def action_space(self, agent: str) -> spaces.Discrete:
        return spaces.Discrete(ACTIONS)

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        assert seed is not None
        self.crash.arm(seed)
        self.crash.call("reset")
        self.walk = Walk(seed, self.crash.length)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = "a"
        self.seen = self.walk.see()

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        self.crash.call("observe")
        mask = np.ones(ACTIONS, np.int8)
        mask[0] = self.walk.left % 2
        return {"observation": self.seen, "action_mask": mask}

    def step(self, action: Any) -> None:
        if self.terminations[self.agent_selection] or self.truncations[self.agent_selection]:
            self._was_dead_step(action)
            return
        self.crash.call("step")
        reward = self.walk.move(int(action))
        self.seen = self.walk.see()
        self.rewards = {"a": reward, "b": -reward}
        if self.walk.left == 0:
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = "b" if self.agent_selection == "a" else "a"

    def close(self) -> None:
        self.crash.call("close")


KINDS = {"gym": CrashGym, "parallel": CrashParallel, "aec": CrashAec}


def make(
    *,
    kind: str = "aec",
    method: str = "",
    how: str = "raise",
    targets: Mapping[str, int] | None = None,
    length: int = 60,
    drifts: bool = False,
    one_in: int = 0,
) -> Any:
    """One game. drifts: what it shows depends on the process too. one_in: of so many episodes one fails in call 3."""
    game = KINDS[kind](method=method, how=how, targets=targets or {}, length=length, one_in=one_in)
    if drifts:
        Walk.drift = os.getpid()
    return game


class DyingBatch(TurnProbe):
    """A batched env. The first process that takes step `dies_at` makes the file `once` and dies."""

    def __init__(self, *, num_envs: int, dies_at: int, once: str) -> None:
        super().__init__(num_envs=num_envs)
        self.dies_at, self.steps, self.once = dies_at, 0, once

    def step(self, actions: np.ndarray) -> Any:
        self.steps += 1
        if self.steps == self.dies_at:
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.once, os.O_CREAT | os.O_EXCL))
                os._exit(1)
        return super().step(actions)


def make_batched(*, num_envs: int, dies_at: int, once: str) -> DyingBatch:
    """A batch."""
    return DyingBatch(num_envs=num_envs, dies_at=dies_at, once=once)
