"""Fixed opponents: policies that do not learn here and take a fraction of a player's games."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.core.state.state import LeagueState


def fixed_opponent_probabilities(state: LeagueState, player: str) -> NDArray[np.float64] | None:
    """Fractions of a player's games that its fixed opponents take.

    Returns:
      float64 [P], P policies of the population; an imported policy that has not been added yet, or whose weights
      cannot be had, has none. None without fixed opponents.
    """
    assert state.config is not None
    index, absent = state.population.index, state.population.absent
    fixed_opponents = state.config.fixed_opponents_of(state.players[player].role)
    there = [opponent for opponent in fixed_opponents if opponent[0] in index and index[opponent[0]] not in absent]
    if not there:
        return None
    probabilities = np.zeros(len(index))
    for policy, probability in there:
        probabilities[index[policy]] += probability
    return probabilities
