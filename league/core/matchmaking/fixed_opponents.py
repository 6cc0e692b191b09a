"""Guests: policies that do not learn here and take a share of a player's games."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.core.state.state import LeagueState


def guest_shares(state: LeagueState, player: str) -> NDArray[np.float64] | None:
    """Shares of a player's games that its guests take.

    Returns:
      float64 [P], P policies of the population; an outsider that has not been added yet, or whose weights cannot be
      had, has none. None without guests.
    """
    assert state.settings is not None
    index, absent = state.population.index, state.population.absent
    guests = state.settings.guests_of(state.players[player].role)
    there = [guest for guest in guests if guest[0] in index and index[guest[0]] not in absent]
    if not there:
        return None
    shares = np.zeros(len(index))
    for policy, share in there:
        shares[index[policy]] += share
    return shares
