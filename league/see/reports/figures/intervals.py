"""Intervals of win rates, as matchmaking and gates know them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.core.state.payoff import LOWER_BOUND_Z

Array = NDArray[np.float64]


def win_rate_interval(score: Array, games: Array, prior_games: float = 1.0) -> tuple[Array, Array]:
    """Bounds of the 90 % intervals of win rates, by the normal approximation to their Beta posteriors.

    Args:
      score: float64 [C], sums of scores. games: float64 [C]. prior_games: games of the prior, half of them won.
    """
    alpha, total = score + 0.5 * prior_games, games + prior_games
    mean = alpha / total
    margin = LOWER_BOUND_Z * np.sqrt(mean * (1.0 - mean) / (total + 1.0))
    return np.maximum(mean - margin, 0.0), np.minimum(mean + margin, 1.0)
