"""Evolution strategies on many workers, simulated from measured costs: how close to linear they scale.

Shape letters: W workers, n episodes of one update.

Each worker plays an episode, sends it, takes what newer weights have come, and plays the next one. The learner takes an
episode at a time and steps once `episodes` of the newest version have come; what plays on then is given up, and what
is on its way is late. The clock is the simulation's own.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ESCosts:
    """Costs of one run, in seconds of one core.

    Fields:
      episode_s: mean of an episode; spread: standard deviation of its logarithm; longest: most times the mean, as by a
        limit of steps.
      episodes: of one update.
      send_s: until what one process sends is with another. take_s: of the learner, to take in one episode.
      step_s: of the learner, for a step; rebuild_s: of each worker, to take the same step.
    """

    episode_s: float
    episodes: int
    spread: float = 0.5
    longest: float = 2.0
    send_s: float = 1e-3
    take_s: float = 2e-6
    step_s: float = 0.02
    rebuild_s: float = 0.02


@dataclass(frozen=True)
class ESScaling:
    """One simulated run.

    Fields:
      seconds: per update. late: fraction of the episodes played to their end that were too late.
    """

    seconds: float
    late: float


def simulate_es(costs: ESCosts, *, workers: int, updates: int, seed: int) -> ESScaling:
    """Play some updates with so many workers."""
    lengths = _Lengths(costs, np.random.default_rng(seed))
    version, come, late, taken = 0, 0, 0, 0
    learner_free = published_at = 0.0  # when workers have the newest weights
    queue = [(lengths.draw(), worker, 0) for worker in range(workers)]  # end of an episode, who plays it, its version
    heapq.heapify(queue)
    while version < updates:
        ended, worker, played = heapq.heappop(queue)
        learner_free = max(learner_free, ended + costs.send_s) + costs.take_s
        taken += 1
        come, late = (come + 1, late) if played == version else (come, late + 1)
        begins = ended if played == version else max(ended, published_at) + costs.rebuild_s
        heapq.heappush(queue, (begins + lengths.draw(), worker, version))
        if come == costs.episodes:
            version, come = version + 1, 0
            learner_free += costs.step_s
            published_at = learner_free + costs.send_s
            begins = published_at + costs.rebuild_s
            queue = [
                (begins + lengths.draw(), who, version) if end > published_at else (end, who, was)
                for end, who, was in queue
            ]
            heapq.heapify(queue)
    return ESScaling(published_at / updates, late / taken)


def efficiency(costs: ESCosts, *, workers: int, beside: int, updates: int = 20, seed: int = 0) -> float:
    """Speed-up from `beside` workers to `workers`, as a part of the linear one."""
    few, many = (simulate_es(costs, workers=count, updates=updates, seed=seed) for count in (beside, workers))
    return few.seconds / many.seconds * beside / workers


class _Lengths:
    """Seconds of episodes, drawn many at a time."""

    def __init__(self, costs: ESCosts, rng: np.random.Generator) -> None:
        self._costs, self._rng = costs, rng
        self._drawn: NDArray[np.float64] = np.zeros(0)
        self._next = 0

    def draw(self) -> float:
        """Log-normal around the mean, and cut at the longest."""
        if self._next == len(self._drawn):
            spread = self._costs.spread
            times = self._rng.lognormal(-(spread**2) / 2, spread, size=4096)
            self._drawn, self._next = self._costs.episode_s * np.minimum(times, self._costs.longest), 0
        self._next += 1
        return float(self._drawn[self._next - 1])
