"""Differences between groups of runs, of any seeds or in pairs of equal ones: intervals, tests, and seeds still needed.

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
from scipy.special import nctdtr, stdtrit

from league.core.metagame.ratings import INTERVAL_Z

CONFIDENCE = 0.95
MAX_SPLITS = 20_000
"""Ways to split the runs into two sides up to which all are counted; beyond, so many are drawn with a fixed seed."""
SEED = 7
POWER = 0.8
"""Chance that a difference is found, for which seeds are asked."""
MAX_SEEDS = 1_000
"""Seeds beyond which no number is given."""


@dataclass(frozen=True)
class Difference:
    """The right side's mean less the left side's.

    Fields:
      value: the difference. low, high: its 95 % interval over runs; None where each side has one run and no spread of
        seeds is given.
      p_value: chance of one as far from 0 if the runs were dealt to the sides at random; None with one run each.
      least_p_value: the smallest that so few runs can give.
      method: "welch", "pooled", "paired", "given spread" or "none".
    """

    value: float
    low: float | None
    high: float | None
    p_value: float | None
    least_p_value: float | None
    method: Literal["welch", "pooled", "paired", "given spread", "none"]

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


def paired_difference(differences: Sequence[float], *, looks: int = 1) -> Difference:
    """The mean of differences between runs of equal seeds, with Student's interval over the seeds.

    Where it is looked at several times and ends at the first that leaves out 0, each interval is as much wider: all
    together they leave out a true 0 with the chance that one interval of 95 % has (Bonferroni).

    Args:
      differences: [N], one for each seed. looks: at most; at least 1.
    Source: Student 1908; Dunn 1961.
    """
    values, num = np.asarray(differences, np.float64), len(differences)
    mean = float(values.mean())
    if num < 2:
        return Difference(mean, None, None, None, None, "none")
    half = float(stdtrit(num - 1, 1.0 - 0.5 * (1.0 - CONFIDENCE) / looks) * values.std(ddof=1) / math.sqrt(num))
    return Difference(mean, mean - half, mean + half, None, None, "paired")


def seeds_needed(effect: float, spread: float) -> int | None:
    """The fewest seeds with which Student's paired test finds a difference at the 5 % level with the chance `POWER`.

    Args:
      effect: the true mean of the differences. spread: their standard deviation between seeds.
    Returns:
      None where it is more than `MAX_SEEDS`.
    Source: Cohen 1988, Statistical power analysis, section 2.3, by the noncentral t distribution of Owen 1965.
    """
    if spread <= 0.0 < abs(effect):
        return 2
    if spread <= 0.0:
        return None
    low, high = 2, MAX_SEEDS
    if _power(effect / spread, high) < POWER:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(effect / spread, middle) >= POWER else (middle + 1, high)
    return low


def _power(standardised: float, num: int) -> float:
    """Chance that a two-sided paired test of so many seeds finds the true sign; rises with their number."""
    bound, shift = float(stdtrit(num - 1, 0.5 + 0.5 * CONFIDENCE)), abs(standardised) * math.sqrt(num)
    return 1.0 - float(nctdtr(num - 1, shift, bound))
