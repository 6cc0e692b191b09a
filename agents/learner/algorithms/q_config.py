"""Options of the objectives that learn the values of actions, without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MAX_STEPS = 4096
"""Most decisions that one target looks ahead, or that a memory is brought up to date over: the longest unroll."""


@dataclass(frozen=True)
class QLearningConfig:
    """Options of every objective that learns action values.

    Fields:
      n_steps: rewards in a target, fewer before the end of an unroll or an episode.
      max_error_share: share of the largest error in the priority of an unroll; the rest is that of the mean.
    """

    n_steps: int = 1
    max_error_share: float = 0.9

    def problems(self) -> list[str]:
        found = []
        if not 1 <= self.n_steps <= MAX_STEPS:
            found.append(f"n_steps: {self.n_steps} must be at least 1 and at most {MAX_STEPS}")
        if not 0 <= self.max_error_share <= 1:
            found.append(f"max_error_share: {self.max_error_share} is not in [0, 1]")
        return found


@dataclass(frozen=True)
class DQNConfig(QLearningConfig):
    """Options of `dqn`.

    Fields:
      target: value that follows. "double": the target network's value of the action that the learning network
        prefers. "max": the target network's largest one. "sarsa": its value of the action that was taken.
      error: "huber", whose slope stays 1 from an error of 1, or "squared".
      rescale: whether values are learnt through h(x) = sign(x) (sqrt(|x| + 1) - 1) + x / 1000, for large returns.
      burn_in: decisions at the start of an unroll that only bring the memory up to date.
    """

    target: Literal["double", "max", "sarsa"] = "double"
    error: Literal["huber", "squared"] = "huber"
    rescale: bool = False
    burn_in: int = 0

    def problems(self) -> list[str]:
        found = super().problems()
        if not 0 <= self.burn_in <= MAX_STEPS:
            found.append(f"burn_in: {self.burn_in} must be at least 0 and at most {MAX_STEPS}")
        return found


@dataclass(frozen=True)
class DDPGConfig(QLearningConfig):
    """Options of `ddpg`.

    Fields:
      policy_delay: updates of the critics for one of the policy, for td3 2. In the others its gradient is 0, and the
        optimizer's moments carry on.
      smoothing: standard deviation of the noise on the action that follows, in halves of the box's width; for td3 0.2.
      smoothing_clip: largest such noise.
    """

    policy_delay: int = 1
    smoothing: float = 0.0
    smoothing_clip: float = 0.5

    def problems(self) -> list[str]:
        found = super().problems()
        if not 1 <= self.policy_delay <= MAX_STEPS:
            found.append(f"policy_delay: {self.policy_delay} must be at least 1 and at most {MAX_STEPS}")
        for name in ("smoothing", "smoothing_clip"):
            if not 0 <= getattr(self, name) <= 2:
                found.append(f"{name}: {getattr(self, name)} is not in [0, 2], the width of the box")
        return found


@dataclass(frozen=True)
class TD3Config(DDPGConfig):
    """Options of `td3`: those of `ddpg`, with other defaults."""

    policy_delay: int = 2
    smoothing: float = 0.2
