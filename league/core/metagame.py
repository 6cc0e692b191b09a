"""The game between whole policies: which mixture of snapshots no single one of them beats.

Shape letter: N policies.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.core.ratings import bradley_terry, frozen_pairs, win_probability
from league.core.state import LeagueState

Array = NDArray[np.float64]

MODEL_GAMES = 2.0
"""Games with which the rating model's forecast enters a pair's win rate; a pair that never met has that alone."""
LEAST_WEIGHT = 1e-3
"""Members of an exported mixture with less weight are left out."""
MOST_ITERATIONS = 20_000


def nash_mixture(win_rates: Array, *, tolerance: float = 5e-4) -> Array:
    """The mixture over the rows of a symmetric two-player game that loses least against the best row.

    Args:
      win_rates: float64 [N, N], entry (i, j) the win rate of i against j in [0, 1]; only its antisymmetric part
        counts, so that estimates of (i, j) and (j, i) may disagree.
      tolerance: win rate over a half that the best row may keep against the mixture.
    Returns:
      float64 [N], sums to 1.
    Raises:
      ValueError: not square, or empty.
    Source: Tammelin et al. 2015, regret matching+ with alternating updates and quadratic averaging.
    """
    if win_rates.ndim != 2 or win_rates.shape[0] != win_rates.shape[1] or not len(win_rates):
        raise ValueError(f"win_rates must be [N, N] with N >= 1, not {list(win_rates.shape)}")
    gains = 0.5 * (win_rates - win_rates.T)
    regrets = np.zeros((2, len(gains)))
    averages = np.zeros((2, len(gains)))
    current = np.full((2, len(gains)), 1.0 / len(gains))
    for iteration in range(1, MOST_ITERATIONS + 1):
        for side in (0, 1):
            values = gains @ current[1 - side]
            regrets[side] = np.maximum(regrets[side] + values - current[side] @ values, 0.0)
            total = regrets[side].sum()
            if total > 0.0:
                current[side] = regrets[side] / total
            averages[side] += iteration**2 * current[side]
        if iteration % 50 == 0 and min(_exploitability(gains, average) for average in averages) <= tolerance:
            break
    best = min(averages, key=lambda average: _exploitability(gains, average))
    mixture: Array = best / best.sum()
    return mixture


def exploitability(win_rates: Array, mixture: Array) -> float:
    """How far over a half the best single row wins against the mixture."""
    return _exploitability(0.5 * (win_rates - win_rates.T), mixture)


def league_mixture(state: LeagueState) -> tuple[tuple[str, float], ...]:
    """The Nash mixture over all snapshots: (snapshot, weight), heaviest first; empty without a snapshot."""
    if not state.snapshots:
        return ()
    names = list(state.snapshots)
    if len(set(state.teams)) == 1 or len(names) == 1:
        return ((names[-1], 1.0),)
    mixture = nash_mixture(snapshot_win_rates(state))
    kept = np.flatnonzero(mixture >= min(LEAST_WEIGHT, mixture.max()))
    weights = mixture[kept] / mixture[kept].sum()
    members = zip([names[i] for i in kept.tolist()], weights.tolist(), strict=True)
    return tuple(sorted(members, key=lambda member: -member[1]))


def snapshot_win_rates(state: LeagueState) -> Array:
    """float64 [N, N] in the order of `state.snapshots`: games played, filled up by what the ratings forecast."""
    assert state.settings is not None
    numbers = np.array([state.population.index[name] for name in state.snapshots], dtype=np.int64)
    pairs = frozen_pairs(state, numbers)
    places = {name: place for place, name in enumerate(state.snapshots)}
    parents = [snapshot.parent for snapshot in state.snapshots.values()]
    ratings, _ = bradley_terry(
        len(numbers),
        pairs,
        parents=np.array([-1 if parent is None else places[parent] for parent in parents], dtype=np.int64),
        anchor=0,
        parent_draws=state.settings.ratings.parent_draws,
    )
    scores = MODEL_GAMES * win_probability(ratings[:, None] - ratings[None, :])
    games = np.full_like(scores, MODEL_GAMES)
    scores[pairs.first, pairs.second] += pairs.score
    scores[pairs.second, pairs.first] += pairs.games - pairs.score
    games[pairs.first, pairs.second] += pairs.games
    games[pairs.second, pairs.first] += pairs.games
    rates: Array = scores / games
    return rates


def _exploitability(gains: Array, mixture: Array) -> float:
    return float((gains @ mixture).max() / mixture.sum())
