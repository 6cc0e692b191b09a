"""The most even of all mixtures that keep within bounds: a convex quadratic program, by an interior-point method.

A game has many Nash mixtures as soon as two policies play alike, and a linear program returns whichever its pivots
come to. The most even one is a single one: it does not depend on the order of the policies, and copies of one policy
share its weight.

Shape letters: R rows (opponents), N columns (members).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TOLERANCES = (1e-9, 1e-7)
"""Tolerances of the optimality conditions; a row may exceed its bound by as much. The second is tried where the first
is beyond the digits of a float. That happens about once in a thousand games in which hardly anything is won."""
NOTHING = 100.0
"""Weights up to so many tolerances are none: what the tolerance lets in of a member that the bounds keep out."""
MAX_STEPS = 100
SHORTENED = 0.995
"""Fraction of the way to the nearest bound that a step goes, so that everything stays positive."""


@dataclass(frozen=True)
class _Point:
    """A point of the interior-point method, or a step from one.

    Fields:
      weights: [N], p. room: [R], bound - gains p. prices: [R], multipliers of the rows. held: [N], multipliers of
        p >= 0. level: multiplier of sum p = 1.
    """

    weights: Array
    room: Array
    prices: Array
    held: Array
    level: float

    def moved(self, step: _Point, length: float) -> _Point:
        return _Point(
            self.weights + length * step.weights,
            self.room + length * step.room,
            self.prices + length * step.prices,
            self.held + length * step.held,
            self.level + length * step.level,
        )

    def gap(self) -> float:
        """Mean product of what is bounded and its multiplier: 0 at the solution."""
        return float(self.room @ self.prices + self.weights @ self.held) / (self.room.size + self.weights.size)


def most_even(gains: Array, *, bound: float, favour: Array) -> Array | None:
    """The p with the least sum of p^2 / favour among those with gains p <= bound, p >= 0 and sum p = 1.

    Where all gains are equal p is in proportion to `favour`. For equal favour 1 / sum p^2, the inverse Simpson index,
    is the number of members of an equally even mixture. It is then the most that the bounds allow.

    Args:
      gains: float64 [R, N], how far each opponent wins against each member.
      bound: what no opponent may win more than; some mixture keeps it.
      favour: float64 [N], positive.
    Returns:
      float64 [N], sums to 1; None where the method does not come to an end for want of digits.
    Source: Mehrotra 1992 (predictor and corrector); Nocedal and Wright 2006, Numerical Optimization, algorithm 16.4.
    """
    attempts = (_solved(gains, bound, favour.mean() / favour, tolerance) for tolerance in TOLERANCES)
    return next((found for found in attempts if found is not None), None)


def _solved(gains: Array, bound: float, cost: Array, tolerance: float) -> Array | None:
    rows, columns = gains.shape
    even = np.full(columns, 1.0 / columns)
    limit = bound + tolerance
    room = np.maximum(limit - gains @ even, 1.0 / columns)
    point = _Point(even, room, np.full(rows, 1.0 / columns), even.copy(), 0.0)
    for _ in range(MAX_STEPS):
        pull = gains.T @ point.prices
        left = (cost * point.weights + point.level + pull - point.held, gains @ point.weights + point.room - limit)
        excess = float(point.weights.sum()) - 1.0
        # Multipliers grow without end where the bounds leave no room at all: what is left of them is relative.
        scale = 1.0 + float(np.abs(pull).max(initial=0.0))
        worst = max(np.abs(left[0]).max() / scale, np.abs(left[1]).max(initial=0.0), abs(excess), point.gap())
        if worst < tolerance:
            weights = np.where(point.weights > NOTHING * tolerance, point.weights, 0.0)
            found: Array = weights / weights.sum()
            return found
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                point = _stepped(point, gains, cost, left, excess)
        except (np.linalg.LinAlgError, FloatingPointError):
            return None
    return None


def _stepped(point: _Point, gains: Array, cost: Array, left: tuple[Array, Array], excess: float) -> _Point:
    """One step of predictor and corrector. left: of the stationarity and of the rows; excess: of the sum."""
    matrix = gains.T @ ((point.prices / point.room)[:, None] * gains)
    matrix[np.diag_indices_from(matrix)] += cost + point.held / point.weights
    ones = np.ones(len(cost))

    def solve(aim_rows: Array, aim_held: Array) -> _Point:
        """The Newton step to room * prices = aim + present, weights * held likewise."""
        rhs = aim_held / point.weights - left[0] - gains.T @ ((aim_rows + point.prices * left[1]) / point.room)
        along, per_level = np.linalg.solve(matrix, np.stack([rhs, ones], axis=1)).T
        level = float((along.sum() + excess) / per_level.sum())
        weights = along - level * per_level
        room = -left[1] - gains @ weights
        prices = (aim_rows - point.prices * room) / point.room
        return _Point(weights, room, prices, (aim_held - point.held * weights) / point.weights, level)

    products = point.room * point.prices, point.weights * point.held
    guess = solve(-products[0], -products[1])
    centred = (point.moved(guess, _longest(point, guess)).gap() / point.gap()) ** 3 * point.gap()
    step = solve(centred - products[0] - guess.room * guess.prices, centred - products[1] - guess.weights * guess.held)
    return point.moved(step, min(1.0, SHORTENED * _longest(point, step)))


def _longest(point: _Point, step: _Point) -> float:
    """The largest fraction of a step, at most 1, that keeps everything non-negative."""
    values = np.concatenate([point.weights, point.room, point.prices, point.held])
    changes = np.concatenate([step.weights, step.room, step.prices, step.held])
    falls = changes < 0.0
    return float(min(1.0, (values[falls] / -changes[falls]).min(initial=1.0)))
