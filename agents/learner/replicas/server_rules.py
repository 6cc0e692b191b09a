"""Rules of a parameter server: what a stale gradient counts, who waits for whom, which losses are outliers."""

from __future__ import annotations

import math
from collections.abc import Iterable

from league.agents.learner.replicas.free_config import OnStale

OUTLIER_DECAY = 0.99
"""Decay per batch of the running mean and variance of the losses."""

OUTLIER_BATCHES = 20
"""Batches before the first that may be an outlier: there is no deviation to compare with before."""


def stale_weight(lag: int, *, max_staleness: int, on_stale: OnStale) -> float:
    """Factor of a gradient, 0 for one that is discarded.

    Args:
      lag: steps of the server since the weights of the gradient were fetched.
    Source: Nair et al. 2015, GORILA, section 4.3 (drop); Zhang et al. 2016, Staleness-aware async-SGD, equation 5, with
      1 + lag for their lag that starts at 1 (scale).
    """
    if lag <= max_staleness or on_stale == "wait":
        return 1.0
    return 0.0 if on_stale == "drop" else 1.0 / (1.0 + lag)


def part_bounds(size: int, parts: int) -> list[tuple[int, int]]:
    """[start, stop) of equal parts of a vector, the first ones longer by 1 where it does not divide."""
    length, longer = divmod(size, parts)
    stops = [(index + 1) * length + min(index + 1, longer) for index in range(parts)]
    return list(zip([0, *stops[:-1]], stops, strict=True))


class ReplicaClocks:
    """Lets a replica begin a batch unless it is more than `max_ahead` batches ahead of one that is still at work.

    Source: Ho et al. 2013, More effective distributed ML via a stale synchronous parallel parameter server, section 3.
    """

    def __init__(self, max_ahead: int) -> None:
        self._max_ahead = max_ahead
        self._ended: dict[int, int] = {}
        self._working: set[int] = set()

    def join(self, rank: int) -> None:
        """A replica begins with as many batches as the one with the fewest."""
        self._ended[rank] = min(self._ended.values(), default=0)

    def leave(self, rank: int) -> None:
        """Nobody waits for a lost replica."""
        self._ended.pop(rank, None)
        self._working.discard(rank)

    def may_begin(self, rank: int) -> bool:
        """False if the replica is too far ahead of one at work."""
        slowest = min((self._ended[other] for other in self._working), default=self._ended[rank])
        return self._ended[rank] - slowest <= self._max_ahead

    def begin(self, rank: int) -> None:
        """The replica works on a batch."""
        self._working.add(rank)

    def end(self, rank: int) -> None:
        """The replica has learnt from its batch."""
        self._working.discard(rank)
        self._ended[rank] += 1


class LossOutliers:
    """The running mean and deviation of a replica's losses, and which of them lie far above.

    An outlier does not move them, so that one is as far off as the next.

    Source: Nair et al. 2015, GORILA, section 4.3.
    """

    def __init__(self, deviations: float) -> None:
        self._deviations = deviations
        self._mean = self._variance = 0.0
        self._batches = 0

    def is_outlier(self, loss: float) -> bool:
        """Count a loss, and say if it is an outlier; never where that is switched off."""
        if self._deviations == 0.0:
            return False
        difference = loss - self._mean
        known = self._batches >= OUTLIER_BATCHES
        if known and not difference <= self._deviations * math.sqrt(self._variance):  # also of NaN
            return True
        self._batches += 1
        rate = max(1.0 - OUTLIER_DECAY, 1.0 / self._batches)
        self._mean += rate * difference
        self._variance = (1.0 - rate) * (self._variance + rate * difference * difference)
        return False


def weighted_mean(counts: Iterable[float]) -> list[float]:
    """Weights of gradients that are means over so many decisions each, in their mean over all decisions."""
    given = list(counts)
    total = math.fsum(given)
    return [count / total for count in given]
