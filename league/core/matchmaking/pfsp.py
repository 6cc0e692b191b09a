"""Prioritised fictitious self-play: which past opponents to meet, from the win rates against them.

Shape letters: C candidates, K kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Weighting = Literal["squared", "hard", "variance", "variance_rectified", "linear", "linear_capped", "uniform"]

SQUARED = 2.0
RECTIFIED_BELOW = 0.1

WEIGHTINGS: dict[Weighting, Callable[[Array], Array]] = {
    "squared": lambda x: (1.0 - x) ** SQUARED,
    "variance": lambda x: x * (1.0 - x),
    "linear": lambda x: 1.0 - x,
    "linear_capped": lambda x: np.minimum(0.5, 1.0 - x),
    "uniform": np.ones_like,
}
"""Weight of an opponent that is beaten with probability x; two more take a number, see `pfsp`.

Source: Vinyals et al. 2019, methods and pseudocode.
"""

MIN_TOTAL = 1e-10
"""Sum of weights below which they say nothing (every opponent is always beaten, or never) and all count alike."""


def pfsp(
    win_rates: Array, weighting: Weighting, *, exponent: float = SQUARED, rectified_below: float = RECTIFIED_BELOW
) -> Array:
    """Probabilities with which to meet the candidates.

    Args:
      win_rates: float64 [C] in [0, 1], against each candidate.
      weighting: one of `WEIGHTINGS`, "hard" or "variance_rectified".
      exponent: of "hard", (1 - x) ** exponent.
      rectified_below: "variance_rectified" is the variance of max(x, rectified_below), as TLeague has it: an opponent
        that always wins is not left out for ever.
    Returns:
      float64 [C], sums to 1; uniform where every weight vanishes.
    Raises:
      ValueError: no candidate, or a win rate outside [0, 1].
    """
    if not len(win_rates):
        raise ValueError("pfsp needs at least one candidate")
    if not bool(np.all((win_rates >= 0.0) & (win_rates <= 1.0))):
        raise ValueError("win rates must lie in [0, 1]")
    if weighting == "hard":
        weights = (1.0 - win_rates) ** exponent
    elif weighting == "variance_rectified":
        weights = WEIGHTINGS["variance"](np.maximum(win_rates, rectified_below))
    else:
        weights = WEIGHTINGS[weighting](win_rates)
    total = weights.sum()
    if total < MIN_TOTAL:
        return np.full(len(win_rates), 1.0 / len(win_rates))
    probabilities: Array = weights / total
    return probabilities


def sparse_probabilities(
    probabilities: Array, *, limit: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Array]:
    """At most `limit` candidates with probabilities whose expectation is `probabilities`, and as little noise as can
    be.

    Candidates above a threshold keep their exact probability; the rest are drawn systematically and get the threshold
    each. So 35 % of self-play is 35 % of every lease while a thousand rare opponents take turns.

    Args:
      probabilities: float64 [C], sums to 1.
      limit: most candidates kept, at least 1.
    Returns:
      int64 [K] candidates in ascending order and float64 [K] their probabilities, which sum to 1.
    Source: Fearnhead and Clifford 2003, optimal resampling, section 3.
    """
    candidates = (probabilities > 0.0).nonzero()[0]
    weights = probabilities[candidates]
    if len(candidates) <= limit:
        return candidates, weights / weights.sum()
    threshold = _threshold(weights, limit)
    exact = weights >= threshold
    rest = (~exact).nonzero()[0]
    num_drawn = limit - int(exact.sum())
    if num_drawn == 0:  # the rest together weighs less than rounding
        return candidates[exact], weights[exact] / weights[exact].sum()
    ends = np.cumsum(weights[rest])
    points = (np.arange(num_drawn) + rng.random()) * (ends[-1] / num_drawn)
    drawn = rest[np.minimum(np.searchsorted(ends, points, side="right"), len(rest) - 1)]
    kept = np.sort(np.concatenate([exact.nonzero()[0], drawn]))
    probabilities = np.where(exact[kept], weights[kept], ends[-1] / num_drawn)
    return candidates[kept], probabilities / probabilities.sum()


def _threshold(weights: Array, limit: int) -> float:
    """The t for which the sum of min(weight / t, 1) is `limit`; fewer than `limit` weights reach it."""
    descending = np.sort(np.partition(weights, -limit)[-limit:])[::-1]
    rest = weights.sum() - np.concatenate([[0.0], np.cumsum(descending[: limit - 1])])
    for num_exact in range(limit):
        threshold = float(rest[num_exact]) / (limit - num_exact)
        if descending[num_exact] < threshold:
            return threshold
    return float(descending[limit - 1])
