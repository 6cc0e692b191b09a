"""Rankings for games in which strength is not one number: alpha-rank and Nash averaging.

Shape letter: N policies.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.core.metagame.solvers import gains_of

Array = NDArray[np.float64]

MIN_CHANCE = 1e-12
"""Of a take-over: keeps every policy reachable, so that the ranking is unique."""


def alpha_rank(win_rates: Array, *, population: int = 50, alpha: float = 100.0) -> Array:
    """The long-run fraction of time that an evolving population spends on each policy, under rare mutations.

    Args:
      win_rates: float64 [N, N], entry (i, j) the win rate of i against j in [0, 1].
      population: m, number of copies. alpha: intensity of selection; large: the fitter one nearly always takes over.
    Returns:
      float64 [N], sums to 1.
    Raises:
      ValueError: not square, or empty.
    Source: Omidshafiei et al. 2019, alpha-rank, equations 5 to 9, one population; m and alpha as in OpenSpiel.
    """
    gains = gains_of(win_rates)
    size = len(gains)
    if size == 1:
        return np.ones(1)
    # In a game of constant sum the mutant's advantage does not depend on how many there are of it.
    advantage = alpha * population / (population - 1) * gains.T
    transitions = np.maximum(fixation(advantage, population), MIN_CHANCE) / (size - 1)
    np.fill_diagonal(transitions, 0.0)
    return stationary(transitions)


def fixation(advantage: Array, population: int) -> Array:
    """Chance that one mutant takes a population over: (1 - exp(-u)) / (1 - exp(-m u)), 1 / m for u = 0."""
    size = np.maximum(np.abs(advantage), 1e-12)
    upward = np.expm1(-size) / np.expm1(-population * size)
    # For a disadvantage both terms overflow; this is the same quotient with exp((m - 1) |u|) taken out of it.
    chance: Array = upward * np.exp(np.minimum((population - 1) * advantage, 0.0))
    return chance


def stationary(transitions: Array) -> Array:
    """float64 [N], the stationary distribution of a chain with rates [N, N] from row to column; the diagonal is free.

    Source: Grassmann, Taksar and Heyman 1985: elimination without a subtraction, exact for tiny rates too.
    """
    rates = np.array(transitions, dtype=np.float64)
    size = len(rates)
    leaving = np.zeros(size)
    for state in range(size - 1, 0, -1):
        leaving[state] = rates[state, :state].sum()
        rates[:state, state] /= leaving[state]
        rates[:state, :state] += np.outer(rates[:state, state], rates[state, :state])
    probabilities = np.zeros(size)
    probabilities[0] = 1.0
    for state in range(1, size):
        probabilities[state] = probabilities[:state] @ rates[:state, state]
    result: Array = probabilities / probabilities.sum()
    return result


def nash_average(win_rates: Array, mixture: Array) -> Array:
    """float64 [N], each policy's win rate over a half against the Nash mixture: 0 for its members, less for others.

    Copies of a policy change nothing, as they do in a mean over opponents.

    Args:
      win_rates: float64 [N, N], entry (i, j) the win rate of i against j in [0, 1]. mixture: float64 [N].

    Raises:
      ValueError: not square, or empty.
    Source: Balduzzi et al. 2018, re-evaluating evaluation.
    """
    averages: Array = gains_of(win_rates) @ mixture
    return averages
