"""Scores of snapshots against opponents that never change: they rise where a league gets stronger."""

from __future__ import annotations

import msgspec
import numpy as np

from league.core.metagame.probe_series import series_of
from league.core.state.population import FIXED_OPPONENT
from league.core.state.state import LeagueState
from league.see.reports.figures.extent import Extent, page_of, spread, thinned
from league.see.reports.figures.intervals import win_rate_interval

YARDSTICKS, MAX_YARDSTICKS = 6, 24
"""Fixed opponents shown by default and at most."""
MAX_PLAYERS = 40
"""Curves against one yardstick: more tell nobody anything, and take most of a request."""
MAX_POINTS = 200
"""Snapshots of a curve."""


class YardstickPoint(msgspec.Struct, frozen=True):
    """Games of one snapshot against one yardstick.

    Fields:
      snapshot, trained_steps: of its player when it was frozen. games: played.
      score: mean, draws one half. low, high: 90 % interval.
    """

    snapshot: str
    trained_steps: int
    score: float
    low: float
    high: float
    games: int


class YardstickCurve(msgspec.Struct, frozen=True):
    """One player's snapshots against one yardstick, oldest first. role, index: of the player, as in `RatingCurve`."""

    yardstick: str
    player: str
    role: str
    index: int
    points: tuple[YardstickPoint, ...]


class ProbePoint(msgspec.Struct, frozen=True):
    """One reading of a probe, see `league.core.metagame.probe_series`."""

    snapshot: str
    env_steps: int
    value: float
    low: float
    high: float
    games: int
    note: str


class ProbeCurve(msgspec.Struct, frozen=True):
    """A yardstick that a probe measures while training goes. scale: as of `ProbeReading`."""

    probe: str
    yardstick: str
    scale: str
    points: tuple[ProbePoint, ...]


class YardstickFigures(msgspec.Struct, frozen=True):
    """Strength by measures that never change; empty where the league has neither fixed opponents nor probes.

    Fields:
      curves: scores of snapshots against fixed opponents in the league's own games, by yardstick, then by player.
      probes: readings of the probes. yardsticks: which of the fixed opponents are shown.
      counts: what the games count by.
    """

    curves: tuple[YardstickCurve, ...]
    probes: tuple[ProbeCurve, ...]
    yardsticks: Extent
    counts: str


def yardsticks(state: LeagueState, *, offset: int = 0, limit: int = YARDSTICKS) -> YardstickFigures:
    """The curves against some of the fixed opponents."""
    population = state.population
    fixed = np.flatnonzero(population.kind.values == FIXED_OPPONENT).tolist()
    shown, extent = page_of(fixed, what="yardsticks", offset=offset, limit=limit, most=MAX_YARDSTICKS)
    curves = [curve for number in shown for curve in _curves(state, number)]
    return YardstickFigures(tuple(curves), probe_curves(state), extent, state.counts)


def probe_curves(state: LeagueState) -> tuple[ProbeCurve, ...]:
    """The curves of the probes, in the order in which they first came; of long ones evenly spread readings."""
    curves = []
    for series in series_of(state).values():
        chosen = [series.points[index] for index in spread(len(series.points), MAX_POINTS)]
        points = tuple(
            ProbePoint(point.snapshot, point.env_steps, point.value, point.low, point.high, point.games, point.note)
            for point in chosen
        )
        curves.append(ProbeCurve(series.probe, series.yardstick, series.scale, points))
    return tuple(curves)


def _curves(state: LeagueState, yardstick: int) -> list[YardstickCurve]:
    """Curves of the players whose snapshots have met one yardstick; of many, those whose newest one scores best."""
    payoff, names = state.payoff, state.population.names
    cells = np.flatnonzero(payoff.away == yardstick)
    scores = payoff.scores_of(cells).sum(axis=1)
    games = payoff.totals_of(cells).sum(axis=(1, 2)).astype(np.float64)
    bounds = win_rate_interval(scores, games)
    columns = (payoff.home[cells], scores, games, *bounds)
    by_player: dict[str, list[YardstickPoint]] = {}
    for home, score, count, low, high in zip(*(column.tolist() for column in columns), strict=True):
        snapshot = state.snapshots.get(names[home])
        if snapshot is not None and snapshot.player in state.players and count:
            point = YardstickPoint(names[home], snapshot.trained_steps, score / count, low, high, int(count))
            by_player.setdefault(snapshot.player, []).append(point)
    newest = {player: max(points, key=lambda point: point.trained_steps) for player, points in by_player.items()}
    best = set(sorted(newest, key=lambda player: -newest[player].score)[:MAX_PLAYERS])
    return [
        YardstickCurve(
            names[yardstick],
            player,
            state.players[player].role,
            index,
            thinned(by_player[player], MAX_POINTS),
        )
        for index, player in enumerate(state.players)
        if player in best
    ]
