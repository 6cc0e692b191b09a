"""Tells from random play which seats want the same: those that return the same, or nearly so, whatever happens.

Some games pay seats of one team a little apart, for a bump or a hit of their own. Their returns still rise and fall
together. In a race they do as well, since all pay for its length, but among races of one length they do not.

Shape letters: G finished games, S seats.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from league.envs.facts.game_facts import ENOUGH_EPISODES, ENOUGH_VALUES

MANY_EPISODES = 30
"""Episodes from which seats are taken for a team that returned nearly the same."""

MANY_REWARDS = 30
"""Turns with a reward from which seats are taken for a team that earned the same in each."""

MIN_CORRELATION = 0.95
"""Least correlation between the ranks of two seats' returns, given the length of the game, from which they want nearly
the same. Measured: 1.00 in simple_spread of mpe2; 0.85 in the battle of the sexes and 0.58 in simple_reference, where
each wants something for itself too. In every game of opponents it was at most 0.4."""

Array = NDArray[np.float64]


def equal_seats(returns: NDArray[np.floating]) -> list[list[int]]:
    """Groups of two seats or more that returned the same in every game, and not the same number in all games.

    Args:
      returns: [G, S].
    """
    return [group for group in _equal_columns(returns) if np.ptp(returns[:, group[0]]) > 0]


def seats_with_one_interest(returns: Array, turns: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Groups of seats that are a team by what they returned, where enough games tell.

    Args:
      returns: [G, S].
      turns: [G], of each game.
    """
    equal = [group for group in equal_seats(returns) if _is_evidence(returns[:, group[0]])]
    if len(returns) < MANY_EPISODES or returns.shape[1] < 2:
        return tuple(map(tuple, equal))
    ranks = _ranks(_beside_length(returns, np.array(turns, np.float64)))
    varied = [seat for seat in range(returns.shape[1]) if np.ptp(ranks[:, seat]) > 0]
    groups: list[list[int]] = []
    for seat in varied:
        group = next((one for one in groups if all(_rise_together(ranks, seat, other) for other in one)), None)
        if group is None:
            groups.append([seat])
        else:
            group.append(seat)
    found = [group for group in groups if len(group) > 1]
    # Where the length alone tells all returns, no ranks are left, and only equal ones count.
    known = {seat for group in found for seat in group}
    return tuple(map(tuple, sorted([*found, *(group for group in equal if not known.intersection(group))])))


def seats_paid_alike(rewards: Array, gaps: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Groups of seats with equal rewards in every turn, for a game of which hardly an episode has ended yet.

    What every turn costs, or every round, is paid by opponents as well: rewards must have several sizes, or come at
    irregular times.

    Args:
      rewards: [R, S], of turns in which all seats act, those without any reward left out.
      gaps: [R], turns of the same game since its reward before, or since it began.
    """
    if len(rewards) < MANY_REWARDS:
        return ()
    is_irregular = len(set(gaps)) >= ENOUGH_VALUES
    return tuple(
        tuple(group)
        for group in _equal_columns(rewards)
        if len(values := np.unique(rewards[:, group[0]])) >= ENOUGH_VALUES or (is_irregular and values.any())
    )


def _equal_columns(values: NDArray[np.floating]) -> list[list[int]]:
    """Groups of two columns or more with the same numbers; none without rows."""
    groups: dict[bytes, list[int]] = {}
    for seat, column in enumerate(values.T if len(values) else ()):
        groups.setdefault(np.ascontiguousarray(column).tobytes(), []).append(seat)
    return [group for group in groups.values() if len(group) > 1]


def _is_evidence(returns: Array) -> bool:
    """True if equal returns [G] of several seats are hardly chance: many episodes, or several distinct values."""
    return len(returns) >= ENOUGH_EPISODES or len(np.unique(returns)) >= ENOUGH_VALUES


def _rise_together(ranks: Array, seat: int, other: int) -> bool:
    """True if the ranks of two seats rise and fall together."""
    return float(np.corrcoef(ranks[:, seat], ranks[:, other])[0, 1]) >= MIN_CORRELATION


def _beside_length(returns: Array, turns: Array) -> Array:
    """Returns [G, S] less what the length of the game and its square tell of them, rounded so that ties stay."""
    if np.ptp(turns) == 0:
        return returns
    scaled = (turns - turns.mean()) / turns.std()
    features = np.stack([np.ones_like(scaled), scaled, scaled**2], axis=1)
    left: Array = returns - features @ np.linalg.lstsq(features, returns, rcond=None)[0]
    return left.round(6)


def _ranks(values: Array) -> Array:
    """Ranks [G, S] within each column, equal values at their mean rank."""
    ranks = np.empty_like(values)
    for seat, column in enumerate(values.T):
        _, inverse, counts = np.unique(column, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        ranks[:, seat] = (ends - (counts - 1) / 2.0)[inverse]
    return ranks
