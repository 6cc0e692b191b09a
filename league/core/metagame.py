"""The game between whole policies: which mixture of snapshots no single one of them beats.

Shape letter: N policies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from league.core.ratings import frozen_pairs, most_probable_ratings, win_probability
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


def replicator_mixture(win_rates: Array, *, explore: float = 1e-3, steps: int = 4_000, rate: float = 1.0) -> Array:
    """The time average of replicator dynamics in one population whose members meet in pairs.

    For games of more than two sides: what is known of them is how each side fares against each other one.

    Args:
      win_rates: float64 [N, N], entry (i, j) the win rate of i against j in [0, 1].
      explore: least weight of a policy is explore / N.
      steps, rate: of multiplicative updates x_i <- x_i exp(rate f_i), from even weights.
    Returns:
      float64 [N], sums to 1.
    Raises:
      ValueError: not square, or empty.
    Source: Taylor and Jonker 1978; Lanctot et al. 2017, projected replicator dynamics (the least weight); Syrgkanis et
      al. 2015 (the step ahead, whose average nears the solution as 1 / steps).
    """
    if win_rates.ndim != 2 or win_rates.shape[0] != win_rates.shape[1] or not len(win_rates):
        raise ValueError(f"win_rates must be [N, N] with N >= 1, not {list(win_rates.shape)}")
    size = len(win_rates)
    gains = 0.5 * (win_rates - win_rates.T)
    current, total, before = np.full(size, 1.0 / size), np.zeros(size), np.zeros(size)
    for _ in range(steps):
        fitness = gains @ current
        # The fitness expected next, not the one just seen: where play goes in circles, the plain step spirals outward.
        ahead = 2.0 * fitness - before
        before = fitness
        current = current * np.exp(rate * (ahead - ahead.max()))
        current = (1.0 - explore) * current / current.sum() + explore / size
        total += current
    mixture: Array = total / total.sum()
    return mixture


def exploitability(win_rates: Array, mixture: Array) -> float:
    """How far over a half the best single row wins against the mixture."""
    return _exploitability(0.5 * (win_rates - win_rates.T), mixture)


def league_mixture(state: LeagueState) -> tuple[tuple[str, float], ...]:
    """The Nash mixture over all snapshots of this league: (snapshot, weight), heaviest first; empty without one."""
    names = [name for name, snapshot in state.snapshots.items() if snapshot.player]
    if not names:
        return ()
    if len(set(state.teams)) == 1 or len(names) == 1:
        return ((names[-1], 1.0),)
    mixture = nash_mixture(snapshot_win_rates(state, names))
    kept = np.flatnonzero(mixture >= min(LEAST_WEIGHT, mixture.max()))
    weights = mixture[kept] / mixture[kept].sum()
    members = zip([names[i] for i in kept.tolist()], weights.tolist(), strict=True)
    return tuple(sorted(members, key=lambda member: -member[1]))


def snapshot_win_rates(state: LeagueState, names: Sequence[str]) -> Array:
    """float64 [N, N] of snapshots, oldest first: games played, filled up by what the ratings forecast."""
    assert state.settings is not None
    numbers = np.array([state.population.index[name] for name in names], dtype=np.int64)
    pairs = frozen_pairs(state, numbers)
    places = {name: place for place, name in enumerate(names)}
    parents = [state.snapshots[name].parent for name in names]
    ratings = most_probable_ratings(
        len(numbers),
        pairs,
        parents=np.array([-1 if parent is None else places.get(parent, -1) for parent in parents], dtype=np.int64),
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
