"""Slow literal power of Student's paired test: the integral over the spread that is seen, in plain Python floats."""

from __future__ import annotations

import math

POINTS = 200
"""Midpoints of the integral over the ratio of the seen to the true spread, from 0 to 5."""


def chance_above(bound: float, shift: float, freedom: int) -> float:
    """P((Z + shift) / S > bound), where freedom S^2 has the chi-square distribution; S has the density below."""
    total, width = 0.0, 5.0 / POINTS
    for point in range(POINTS):
        seen = (point + 0.5) * width
        log_density = (
            (1.0 - freedom / 2.0) * math.log(2.0)
            - math.lgamma(freedom / 2.0)
            + (freedom / 2.0) * math.log(freedom)
            + (freedom - 1) * math.log(seen)
            - freedom * seen * seen / 2.0
        )
        total += width * math.exp(log_density) * 0.5 * math.erfc((bound * seen - shift) / math.sqrt(2.0))
    return total


def critical_value(freedom: int) -> float:
    """The bound that Student's t exceeds with the chance 0.025, by bisection."""
    low, high = 0.0, 50.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if chance_above(middle, 0.0, freedom) > 0.025 else (low, middle)
    return high


def fewest_seeds(effect: float, spread: float, power: float) -> int:
    """Seeds are added one by one until the test finds the effect with that chance."""
    seeds = 2
    while True:
        shift = effect / (spread / math.sqrt(seeds))
        if chance_above(critical_value(seeds - 1), shift, seeds - 1) >= power:
            return seeds
        seeds += 1
