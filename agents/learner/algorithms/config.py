"""Options of the built-in objectives, without torch, so that a configuration is checked without loading it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from league.agents.learner.algorithms.evolution_config import CMAConfig, ESConfig
from league.agents.learner.algorithms.q_config import DDPGConfig, DQNConfig, TD3Config
from league.agents.learner.config import MAX_COST
from league.envs.text.number_text import number_text

CLIPS = ("clip_rho", "clip_c", "clip_pg_rho")
"""Options that bound the importance ratios."""

MAX_EPOCHS = 1000
"""Most optimizer steps on one batch."""


@dataclass(frozen=True)
class ActorCriticConfig:
    """Options of every actor-critic objective.

    Fields:
      value_cost: weight of half the squared value error.
      upgo_cost: weight of the upgoing policy gradient; magnet_cost: weight of the KL to the target network. 0 for none.
      action_groups: groups of sub-actions whose ratio is clipped together, each sub-action in one group. Empty for one
        ratio of the whole action, which cuts nearly every trace if there are many sub-actions.
      lambda_: decay of V-trace's and GAE's sums over steps; 0 looks one step ahead.
      clip_rho: V-trace's clip of the importance ratio in the fixed point of the values; null for no clip.
      clip_c: that of the traces, which limits how far a correction reaches back.
      clip_pg_rho: that of the policy gradient.
    """

    value_cost: float = 1.0
    upgo_cost: float = 0.0
    magnet_cost: float = 0.0
    action_groups: tuple[tuple[int, ...], ...] = ()
    lambda_: float = 0.95
    clip_rho: float | None = 1.0
    clip_c: float | None = 1.0
    clip_pg_rho: float | None = 1.0

    def problems(self) -> list[str]:
        found = []
        if not 0 <= self.lambda_ <= 1:
            found.append(f"lambda_: {self.lambda_} is not in [0, 1]")
        for name in ("value_cost", "upgo_cost", "magnet_cost"):
            cost = getattr(self, name)
            if cost < 0 or MAX_COST < cost < math.inf:  # that it is finite is looked at elsewhere
                found.append(f"{name}: {cost} must be at least 0 and at most {number_text(MAX_COST, 9)}")
        for name in CLIPS:
            clip = getattr(self, name)
            if clip is not None and clip <= 0:
                found.append(f"{name}: {clip} must be greater than 0, or null for no clip")
        sub_actions = sorted(part for group in self.action_groups for part in group)
        if sub_actions != list(range(len(sub_actions))) or not all(self.action_groups):
            found.append(
                f"action_groups: {self.action_groups} must hold every sub-action, counted from 0, exactly once"
            )
        return found


@dataclass(frozen=True)
class VTraceConfig(ActorCriticConfig):
    """Options of `vtrace`.

    Fields:
      correction: "vtrace", or "none", which takes every ratio as 1, as if the trained policy had acted. With `lambda_`
        1 these are the n-step returns of A3C and A2C (Mnih et al. 2016).
      policy_loss: "policy_gradient", or "neurd", whose step on a logit does not shrink with the action's probability.
      neurd_min_prob: floor of that probability.
      neurd_max_logit: a logit farther than this from the mean of its row is not pushed farther out; null for no bound.
    """

    correction: Literal["vtrace", "none"] = "vtrace"
    policy_loss: Literal["policy_gradient", "neurd"] = "policy_gradient"
    neurd_min_prob: float = 0.05
    neurd_max_logit: float | None = None

    def problems(self) -> list[str]:
        found = super().problems()
        for name in CLIPS if self.correction == "none" else ():
            if getattr(self, name) is not None and 0 < getattr(self, name) < 1:
                found.append(
                    f"{name}: {getattr(self, name)} would cut the ratios of 1 of correction: none; use 1 or null"
                )
        if not 0 < self.neurd_min_prob <= 1:
            found.append(f"neurd_min_prob: {self.neurd_min_prob} is not in (0, 1]")
        if self.neurd_max_logit is not None and self.neurd_max_logit <= 0:
            found.append(f"neurd_max_logit: {self.neurd_max_logit} must be greater than 0")
        if self.action_groups and self.policy_loss != "policy_gradient":
            found.append(f"action_groups: {self.policy_loss} is for one categorical, without sub-actions")
        return found


@dataclass(frozen=True)
class PPOConfig(ActorCriticConfig):
    """Options of `ppo`.

    Fields:
      clip_ratio: largest distance of the ratio from 1. clip_value: largest distance of a value from its old one; null
        for no clip.
      targets: advantages by "gae", or by "vtrace" for old data.
      epochs: optimizer steps on one batch.
    """

    clip_ratio: float = 0.2
    clip_value: float | None = None
    targets: Literal["gae", "vtrace"] = "vtrace"
    epochs: int = 1

    def problems(self) -> list[str]:
        found = [*super().problems(), *_surrogate_problems(self.clip_ratio, self.epochs)]
        if self.clip_value is not None and self.clip_value <= 0:
            found.append(f"clip_value: {self.clip_value} must be greater than 0, or null for no clip")
        return found


@dataclass(frozen=True)
class APPOConfig(ActorCriticConfig):
    """Options of `appo`.

    Fields:
      clip_ratio: largest distance from 1 of the ratio to the target network.
      epochs: optimizer steps on one batch.
    """

    clip_ratio: float = 0.2
    epochs: int = 1

    def problems(self) -> list[str]:
        return [*super().problems(), *_surrogate_problems(self.clip_ratio, self.epochs)]


@dataclass(frozen=True)
class SearchTargetsConfig(ActorCriticConfig):
    """Options of `search_targets`. It corrects nothing for other policies, so that no clip and no UPGO has a meaning.

    Fields:
      lambda_: 1 for the outcome of the game as the value's target (published); below, values of searches stand for the
        rest of it.
    """

    lambda_: float = 1.0

    def problems(self) -> list[str]:
        found = super().problems()
        if self.upgo_cost:
            found.append(f"upgo_cost: {self.upgo_cost} must be 0: searches say what to play, not advantages")
        if self.action_groups:
            found.append(f"action_groups: {self.action_groups} must be empty: a search numbers whole moves")
        return found


ALGORITHM_OPTIONS: Mapping[str, type] = {
    "vtrace": VTraceConfig,
    "ppo": PPOConfig,
    "appo": APPOConfig,
    "dqn": DQNConfig,
    "ddpg": DDPGConfig,
    "td3": TD3Config,
    "search_targets": SearchTargetsConfig,
    "es": ESConfig,
    "cmaes": CMAConfig,
}
"""Name of a registered algorithm -> the record of its options."""


def _surrogate_problems(clip_ratio: float, epochs: int) -> list[str]:
    found = []
    if clip_ratio <= 0:
        found.append(f"clip_ratio: {clip_ratio} must be greater than 0")
    if not 1 <= epochs <= MAX_EPOCHS:
        found.append(f"epochs: {epochs} must be at least 1 and at most {MAX_EPOCHS}")
    return found
