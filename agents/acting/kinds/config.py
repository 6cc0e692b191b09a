"""Options of the built-in kinds of acting, without torch, so that a configuration is checked without loading it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from league.agents.acting.search.config import SearchConfig


@dataclass(frozen=True)
class SampleConfig:
    """Options of `sample`: none."""


@dataclass(frozen=True)
class EpsilonGreedyConfig:
    """Options of `epsilon_greedy`.

    Fields:
      epsilon: probability of a random action in the first game.
      alpha: game i of N has that of the first to the power of 1 + alpha i / (N - 1), over all games of all actor hosts;
        0 for the same everywhere.
    """

    epsilon: float = 0.4
    alpha: float = 7.0

    def problems(self) -> list[str]:
        found = [] if 0 <= self.epsilon <= 1 else [f"epsilon: {self.epsilon} is not in [0, 1]"]
        return found if self.alpha >= 0 else [*found, f"alpha: {self.alpha} must be at least 0"]


@dataclass(frozen=True)
class GaussianConfig:
    """Options of `gaussian`.

    Fields:
      noise: standard deviation in halves of the box's width, in the first game.
      alpha: game i of N has that of the first to the power of 1 + alpha i / (N - 1), over all games of all actor hosts;
        0 for the same everywhere.
    """

    noise: float = 0.1
    alpha: float = 0.0

    def problems(self) -> list[str]:
        found = [] if 0 < self.noise <= 1 else [f"noise: {self.noise} is not in (0, 1]"]
        return found if self.alpha >= 0 else [*found, f"alpha: {self.alpha} must be at least 0"]


@dataclass(frozen=True)
class PerturbedConfig:
    """Options of `perturbed`, with which evolution strategies act.

    Fields:
      sigma: standard deviation of the perturbation of each weight; candidates of `cmaes` have their own.
      greedy: whether perturbed seats take the likeliest action; False for samples.
    """

    sigma: float = 0.02
    greedy: bool = False

    def problems(self) -> list[str]:
        return [] if 0 < self.sigma < math.inf else [f"sigma: {self.sigma} must be greater than 0 and finite"]


ACTING_OPTIONS: Mapping[str, type] = {
    "sample": SampleConfig,
    "epsilon_greedy": EpsilonGreedyConfig,
    "gaussian": GaussianConfig,
    "search": SearchConfig,
    "perturbed": PerturbedConfig,
}
"""Name of a registered kind of acting -> the record of its options."""

DEFAULT_ACTING, SEARCH = "sample", "search"
