"""Options of the evolution strategies, without torch, so that a configuration is checked without loading it."""

from __future__ import annotations

import math
from dataclasses import dataclass

MAX_EVALUATIONS = 1 << 20
"""Most episodes of one update."""
MAX_CMA_WEIGHTS = 2_000
"""Most weights of a network for `cmaes`, which keeps a number for every pair of them."""


@dataclass(frozen=True)
class ESConfig:
    """Options of `es`.

    Fields:
      evaluations: episodes of one update; half of them play with a perturbation, and half with its opposite.
      weight_decay: times the weights is added to the gradient of each update.
      episode_cap: an episode is cut, and counts as it stands, after so many times the mean decisions of an episode of
        the last update; null for never. A round lasts as long as its longest episode. Source: Salimans et al. 2017,
        section 2.1, which takes 2.
    """

    evaluations: int = 256
    weight_decay: float = 0.005
    episode_cap: float | None = None

    def problems(self) -> list[str]:
        found = _count_problems("evaluations", self.evaluations, least=2)
        if self.evaluations % 2:
            found.append(
                f"evaluations: {self.evaluations} episodes do not make pairs of a perturbation and its opposite; "
                f"use {self.evaluations + 1}"
            )
        if not 0 <= self.weight_decay < math.inf:
            found.append(f"weight_decay: {self.weight_decay} is not at least 0 and finite")
        if self.episode_cap is not None and not 1 < self.episode_cap < math.inf:
            found.append(
                f"episode_cap: {self.episode_cap} times the mean would cut most episodes; use more than 1, or null"
            )
        return found


@dataclass(frozen=True)
class CMAConfig:
    """Options of `cmaes`.

    Fields:
      population: candidates of one update; null for 4 + 3 ln P of them, for P weights.
      episodes: that each candidate plays before an update.
      sigma: standard deviation of the first candidates around the first weights.
    """

    population: int | None = None
    episodes: int = 1
    sigma: float = 0.1

    def problems(self) -> list[str]:
        found = _count_problems("episodes", self.episodes, least=1)
        if self.population is not None:
            found += _count_problems("population", self.population, least=3)
        if not 0 < self.sigma < math.inf:
            found.append(f"sigma: {self.sigma} must be greater than 0 and finite")
        return found

    def population_of(self, num_weights: int) -> int:
        """Candidates for so many weights. Source: Hansen 2016, The CMA Evolution Strategy: a Tutorial, table 1."""
        return self.population or 4 + int(3 * math.log(max(num_weights, 1)))


def _count_problems(name: str, count: int, *, least: int) -> list[str]:
    if least <= count <= MAX_EVALUATIONS:
        return []
    return [f"{name}: {count} must be at least {least} and at most {MAX_EVALUATIONS}"]
