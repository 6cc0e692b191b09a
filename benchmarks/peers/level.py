"""The level of a policy on a ladder of searches: the simulations against which it scores one half.

Shape letters: R rungs of the ladder, G groups of games on one rung, B resamples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2_000
HALF = 0.5

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rung:
    """One match of the ladder. simulations: of the search. groups: float64 [G], scores of its groups of games."""

    simulations: float
    groups: tuple[float, ...]

    @property
    def score(self) -> float:
        """Mean over the groups."""
        return float(np.mean(self.groups))


@dataclass(frozen=True)
class Level:
    """A level in simulations, with its 95 % interval; a bound at an end of the ladder may lie beyond it."""

    value: float
    low: float
    high: float


def falling(scores: Floats, weights: Floats) -> Floats:
    """Isotonic regression: the falling sequence [R] that is nearest in weighted squares.

    Source: Barlow et al. 1972, Statistical inference under order restrictions: pool adjacent violators.
    """
    blocks: list[tuple[float, float, int]] = []
    for score, weight in zip(scores.tolist(), weights.tolist(), strict=True):
        block = (score, weight, 1)
        while blocks and blocks[-1][0] < block[0]:
            mean, mass, size = blocks.pop()
            total = mass + block[1]
            block = ((mean * mass + block[0] * block[1]) / total, total, size + block[2])
        blocks.append(block)
    return np.repeat([mean for mean, _, _ in blocks], [size for _, _, size in blocks])


def crossing(simulations: Floats, scores: Floats) -> float:
    """Simulations at which falling scores [R] pass one half, linear in their logarithm; an end where they do not.

    Where several rungs score exactly one half, it is the strongest of them.
    """
    above = np.flatnonzero(scores >= HALF)
    if not above.size:
        return float(simulations[0])
    last = int(above[-1])
    if last == len(scores) - 1:
        return float(simulations[-1])
    share = (scores[last] - HALF) / (scores[last] - scores[last + 1])
    low, high = math.log(simulations[last]), math.log(simulations[last + 1])
    return math.exp(low + share * (high - low))


def level_of(rungs: Sequence[Rung]) -> float:
    """The level by the scores of rungs that rise in simulations, made falling first."""
    weights = np.array([len(rung.groups) for rung in rungs], np.float64)
    scores = falling(np.array([rung.score for rung in rungs]), weights)
    return crossing(np.array([rung.simulations for rung in rungs], np.float64), scores)


def resampled_levels(rungs: Sequence[Rung], *, seed: int, resamples: int = RESAMPLES) -> Floats:
    """Levels [B] of bootstrap resamples of every rung's groups.

    Source: Efron 1979, Bootstrap methods.
    """
    rng = np.random.default_rng(seed)
    simulations = np.array([rung.simulations for rung in rungs], np.float64)
    weights = np.array([len(rung.groups) for rung in rungs], np.float64)
    drawn = np.stack([_means(np.array(rung.groups), rng, resamples) for rung in rungs], axis=1)
    return np.array([crossing(simulations, falling(scores, weights)) for scores in drawn])


def level(rungs: Sequence[Rung], *, seed: int) -> Level:
    """The level with its bootstrap interval."""
    low, high = np.quantile(resampled_levels(rungs, seed=seed), [0.025, 0.975])
    return Level(level_of(rungs), float(low), float(high))


def _means(groups: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    means: Floats = groups[rng.integers(len(groups), size=(resamples, len(groups)))].mean(axis=1)
    return means
