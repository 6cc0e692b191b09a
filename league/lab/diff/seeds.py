"""Differences between two groups of runs: an interval over the runs, and a permutation test of which side each is of.

Runs of one side differ by their seeds alone, so that their spread is what seeds explain. With one run on each side
there is no spread: any difference may be chance, however many games are played.

Shape letters: N, M runs of the two sides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from league.core.metagame.ratings import INTERVAL_Z

CONFIDENCE = 0.95
MAX_SPLITS = 20_000
"""Ways to split the runs into two sides up to which all are counted; beyond, so many are drawn with a fixed seed."""
SEED = 7


@dataclass(frozen=True)
class Difference:
    """The right side's mean less the left side's.

    Fields:
      value: the difference. low, high: its 95 % interval over runs; None where each side has one run and no spread of
        seeds is given.
      p_value: chance of one as far from 0 if the runs were dealt to the sides at random; None with one run each.
      least_p_value: the smallest that so few runs can give.
      method: "welch", "pooled", "given spread" or "none".
    """

    value: float
    low: float | None
    high: float | None
    p_value: float | None
    least_p_value: float | None
    method: Literal["welch", "pooled", "given spread", "none"]

    @property
    def is_more_than_seeds(self) -> bool | None:
        """True if the interval leaves out 0; None where there is none."""
        return None if self.low is None or self.high is None else self.low > 0.0 or self.high < 0.0


def difference(left: Sequence[float], right: Sequence[float], *, seed_spread: float | None = None) -> Difference:
    """Compare two groups of runs.

    With two runs or more on each side the interval is Welch's. With one on a side its spread is taken to be that of the
    other side. With one on each it is that of a normal distribution with `seed_spread`, where that is given.

    Args:
      left, right: [N], [M] one value for each run.
      seed_spread: standard deviation between seeds, known from elsewhere.
    Source: Welch 1947; Student 1908; Pitman 1937 (the permutation test).
    """
    one, two = np.asarray(left, np.float64), np.asarray(right, np.float64)
    num, other = len(one), len(two)
    value = float(two.mean() - one.mean())
    if num == 1 and other == 1:
        if seed_spread is None:
            return Difference(value, None, None, None, None, "none")
        half = INTERVAL_Z * seed_spread * math.sqrt(2.0)
        return Difference(value, value - half, value + half, None, None, "given spread")
    if num > 1 and other > 1:
        parts = np.array([one.var(ddof=1) / num, two.var(ddof=1) / other])
        spread = float(parts.sum())
        freedom = (
            spread**2 / float((parts**2 / np.array([num - 1, other - 1])).sum()) if spread > 0.0 else num + other - 2
        )
        method: Literal["welch", "pooled"] = "welch"
    else:
        freedom, method = float(num + other - 2), "pooled"
        squares = float(((one - one.mean()) ** 2).sum() + ((two - two.mean()) ** 2).sum())
        spread = squares / freedom * (1.0 / num + 1.0 / other)
    half = float(stdtrit(freedom, 0.5 + 0.5 * CONFIDENCE)) * math.sqrt(spread)
    p_value, least = permutation_test(left, right)
    return Difference(value, value - half, value + half, p_value, least, method)


def permutation_test(left: Sequence[float], right: Sequence[float]) -> tuple[float, float]:
    """Chance of a difference of means as far from 0 if the sides meant nothing, and the smallest that is possible."""
    values = np.array([*left, *right], np.float64)
    num, total = len(left), len(values)
    seen = abs(np.mean(right) - np.mean(left)) - 1e-12
    count = math.comb(total, num)
    if count <= MAX_SPLITS:
        splits = np.array(list(itertools.combinations(range(total), num)))
    else:
        rng = np.random.default_rng(SEED)
        splits = np.array([rng.permutation(total)[:num] for _ in range(MAX_SPLITS)])
    first = values[splits].sum(axis=1)
    means = first / num - (values.sum() - first) / (total - num)
    as_far = np.count_nonzero(np.abs(means) >= seen)
    least = (2.0 if 2 * num == total else 1.0) / count
    return (as_far / count if count <= MAX_SPLITS else (1.0 + as_far) / (1.0 + MAX_SPLITS)), least
