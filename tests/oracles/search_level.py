"""Slow literal level on a ladder: the min-max formula of isotonic regression, and a scan for the crossing."""

from __future__ import annotations

import math
from collections.abc import Sequence

STEPS = 20_000
"""Points of the scan between two rungs."""


def falling(scores: Sequence[float], weights: Sequence[float]) -> list[float]:
    """At each place the largest over all ends to the right of the smallest over all starts to the left, of means.

    Source: Barlow et al. 1972, Statistical inference under order restrictions, theorem 1.9, for falling sequences.
    """
    count = len(scores)

    def mean(start: int, end: int) -> float:
        places = range(start, end + 1)
        return sum(scores[k] * weights[k] for k in places) / sum(weights[k] for k in places)

    return [
        max(min(mean(start, end) for start in range(place + 1)) for end in range(place, count))
        for place in range(count)
    ]


def crossing(simulations: Sequence[float], scores: Sequence[float]) -> float:
    """The largest number of simulations whose interpolated score is still one half; the ends where there is none."""
    found = simulations[0]
    for place in range(len(scores) - 1):
        low, high = math.log(simulations[place]), math.log(simulations[place + 1])
        for step in range(STEPS + 1):
            share = step / STEPS
            if scores[place] + share * (scores[place + 1] - scores[place]) >= 0.5 - 1e-12:
                found = math.exp(low + share * (high - low))
    return found
