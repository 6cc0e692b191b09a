"""Solvers of the game between whole policies: which mixture does no single one of them beat?

Shape letter: N policies.
"""

from __future__ import annotations

from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from league.core.state.built_ins import AUTO, SOLVERS, load
from league.core.state.plugin_answers import called, distribution, is_own

Array = NDArray[np.float64]

TWO_SIDES, MANY_SIDES = "nash", "replicator"
"""The solver that "auto" stands for, by the number of sides."""
MAX_ITERATIONS = 20_000


class Solver(Protocol):
    """Solves a symmetric game.

    Args:
      win_rates: float64 [N, N], entry (i, j) the win rate of i against j in [0, 1]; only its antisymmetric part
        counts, so that estimates of (i, j) and (j, i) may disagree.
    Returns:
      float64 [N], sums to 1: a mixture that the rows win next to nothing against.
    Raises:
      ValueError: not square, or empty.
    """

    def __call__(self, win_rates: Array, /) -> Array: ...


def solver_of(name: str, *, num_sides: int) -> Solver:
    """The solver of that name; of "auto" the one for a game of so many sides.

    Raises:
      ValueError, ModuleNotFoundError: there is none such.
    """
    if name == AUTO:
        name = TWO_SIDES if num_sides == 2 else MANY_SIDES
    return cast(Solver, load(SOLVERS, name, what="solver"))


def gains_of(win_rates: Array) -> Array:
    """float64 [N, N], how far over a half the row wins against the column, the two estimates of each pair as one.

    Raises:
      ValueError: not square, or empty.
    """
    if win_rates.ndim != 2 or win_rates.shape[0] != win_rates.shape[1] or not len(win_rates):
        raise ValueError(f"win_rates must be [N, N] with N >= 1, not {list(win_rates.shape)}")
    gains: Array = 0.5 * (win_rates - win_rates.T)
    return gains


def exploitability(win_rates: Array, mixture: Array) -> float:
    """The best single row's win rate against the mixture, minus a half."""
    return _exploitability(gains_of(win_rates), mixture)


def regret_matching(win_rates: Array, *, tolerance: float = 5e-4) -> Array:
    """A mixture that loses next to nothing against the best row, by playing the game with itself.

    Args:
      win_rates: float64 [N, N], as for every solver.
      tolerance: win rate over a half that the best row may keep against the mixture.
    Returns:
      float64 [N], sums to 1.
    Raises:
      ValueError: not square, or empty.
    Source: Tammelin et al. 2015, regret matching+ with alternating updates and quadratic averaging.
    """
    gains = gains_of(win_rates)
    regrets = np.zeros((2, len(gains)))
    averages = np.zeros((2, len(gains)))
    current = np.full((2, len(gains)), 1.0 / len(gains))
    for iteration in range(1, MAX_ITERATIONS + 1):
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


def replicator(win_rates: Array, *, steps: int = 4_000, rate: float = 1.0) -> Array:
    """The time average of replicator dynamics in one population whose members meet in pairs.

    For games of more than two sides: what is known of them is how each side fares against each other one.

    Args:
      win_rates: float64 [N, N], as for every solver.
      steps, rate: of multiplicative updates x_i <- x_i exp(rate f_i), from even weights.
    Returns:
      float64 [N], sums to 1.
    Raises:
      ValueError: not square, or empty.
    Source: Taylor and Jonker 1978; Lanctot et al. 2017 (as a solver of meta-games); Syrgkanis et al. 2015 (the step
      ahead, whose average nears the solution as 1 / steps).
    """
    gains = gains_of(win_rates)
    size = len(gains)
    current, total, before = np.full(size, 1.0 / size), np.zeros(size), np.zeros(size)
    for _ in range(steps):
        fitness = gains @ current
        # The fitness expected next, not the one just seen: where play goes in circles, the plain step spirals outward.
        ahead = 2.0 * fitness - before
        before = fitness
        current = current * np.exp(rate * (ahead - ahead.max()))
        current /= current.sum()
        total += current
    mixture: Array = total / total.sum()
    return mixture


def _exploitability(gains: Array, mixture: Array) -> float:
    return float((gains @ mixture).max() / mixture.sum())


def solved(name: str, win_rates: NDArray[np.float64], *, num_sides: int) -> NDArray[np.float64]:
    """float64 [N], the mixture that a solver finds for win rates float64 [N, N].

    Raises:
      PluginFault: it raised, or they are not [N] weights that are not negative and sum to 1.
    """
    mixture = called("solver", name, solver_of(name, num_sides=num_sides), win_rates)
    return distribution("solver", name, mixture, len(win_rates), of="policies") if is_own(name) else mixture
