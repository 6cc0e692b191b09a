"""The scores of the league's snapshots against opponents that never change: whether it gets stronger, without a model.

Shape letter: C cells of the payoff.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from league.core.metagame.ratings import INTERVAL_Z
from league.core.state.population import FIXED_OPPONENT, SNAPSHOT
from league.core.state.state import LeagueState

MAIN = "main_agent"
MAX_POINTS = 40
"""Points of one line; with more snapshots several stand for one point."""
MAX_OPPONENTS = 8


class YardstickPoint(msgspec.Struct, frozen=True):
    """Games of one or several snapshots of like age against one opponent.

    Fields:
      steps: trained by the snapshots, mean. games: between them and the opponent.
      score: mean, a draw one half; low, high: its 95 % interval.
    """

    steps: float
    score: float
    low: float
    high: float
    games: int


class Yardstick(msgspec.Struct, frozen=True):
    """An opponent that never changes, with the scores against it by the age of the snapshots."""

    opponent: str
    points: tuple[YardstickPoint, ...]


def yardsticks(state: LeagueState) -> tuple[Yardstick, ...]:
    """The bots and imported policies that main agents' snapshots (or all, without main agents) have met."""
    population, payoff = state.population, state.payoff
    kind = population.kind.values
    fixed = np.flatnonzero(kind == FIXED_OPPONENT)[:MAX_OPPONENTS]
    main = population.roles.get(MAIN)
    is_home = kind == SNAPSHOT if main is None else (kind == SNAPSHOT) & (population.role.values == main)
    home, away = payoff.home.values, payoff.away.values
    found = []
    for opponent in fixed.tolist():
        cells = np.flatnonzero(away == opponent)
        cells = cells[is_home[home[cells]]]
        games = payoff.totals.values[cells].sum(axis=(1, 2)).astype(np.float64)
        steps = [state.snapshots[population.names[number]].trained_steps for number in home[cells].tolist()]
        rows = np.column_stack([np.array(steps, dtype=np.float64), payoff.scores.values[cells].sum(axis=1), games])
        if len(rows):
            found.append(Yardstick(population.names[opponent], _points(rows)))
    return tuple(found)


def _points(rows: NDArray[np.float64]) -> tuple[YardstickPoint, ...]:
    """Points of [C, 3] rows of steps, scores and games."""
    ordered = rows[np.argsort(rows[:, 0], kind="stable")]
    points = []
    for group in np.array_split(ordered, min(MAX_POINTS, len(ordered))):
        games = float(group[:, 2].sum())
        if games:
            score = float(group[:, 1].sum()) / games
            low, high = score_interval(score, games)
            points.append(YardstickPoint(float(group[:, 0].mean()), score, low, high, int(games)))
    return tuple(points)


def score_interval(score: float, games: float) -> tuple[float, float]:
    """The 95 % interval of a mean score in [0, 1], which varies at most as a coin of that mean does.

    Source: Wilson 1927, the score interval.
    """
    z2 = INTERVAL_Z**2
    centre = (score + z2 / (2.0 * games)) / (1.0 + z2 / games)
    spread = INTERVAL_Z / (1.0 + z2 / games) * math.sqrt(score * (1.0 - score) / games + z2 / (4.0 * games**2))
    return max(centre - spread, 0.0), min(centre + spread, 1.0)
