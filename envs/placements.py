"""Placements: the order in which the sides of a game finished. Pure rules on the teams of its seats.

Shape letters: G games, S seats, K sides (the teams, in the order of their first seats).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-6
"""Share of a return within which it is not known: float32 sums of rewards are exact to a tenth of it."""

Placements = tuple[tuple[tuple[int, ...], int], ...]
"""(ranks, games) each: ranks [K] is the number of sides placed before each side."""


def sides_of(teams: Sequence[int]) -> list[int]:
    """[K] the team of each side. teams: [S] team of each seat."""
    return list(dict.fromkeys(teams))


def first_seats(teams: Sequence[int]) -> list[int]:
    """[K] the first seat of each side. teams: [S] team of each seat."""
    return [list(teams).index(team) for team in sides_of(teams)]


def is_competitive(teams: Sequence[int]) -> bool:
    """True for a game with opponents: more than one team. teams: [S] team of each seat."""
    return len(set(teams)) > 1


def has_placements(teams: Sequence[int]) -> bool:
    """True if outcomes of the game hold placements: it has more than one team and more than two seats.

    In a game of two seats the wins and draws of the pair already tell the order.

    Args:
      teams: [S] team of each seat.
    """
    return len(teams) > 2 and is_competitive(teams)


def comparable(returns: NDArray[np.floating], *, scale: NDArray[np.floating] | None = None) -> NDArray[np.float64]:
    """Returns of sides in whole steps of a millionth, so that sums which differ by rounding alone are equal.

    Args:
      returns: [..., K] of the sides of a game.
      scale: [...] what a step is a millionth of; the largest of the game's returns if None.
    """
    largest = np.abs(returns).max(axis=-1) if scale is None else scale
    step = np.where(largest > 0, largest * ROUNDING, 1.0)
    return np.rint(returns / step[..., None])


def ranks_of(scores: NDArray[np.generic]) -> NDArray[np.int64]:
    """int64 [G, K], the number of sides with a higher score than each side; equal scores share a rank.

    Args:
      scores: [G, K], more is better.
    """
    ranks: NDArray[np.int64] = (scores[:, None, :] > scores[:, :, None]).sum(axis=2)  # type: ignore[operator]  # numbers
    return ranks
