"""Ratings of every player's snapshots over its training, with their intervals."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from league.core.metagame.ratings import RatingRow
from league.core.state.records import is_from_outside
from league.core.state.state import LeagueState
from league.see.reports.figures.extent import Extent, page_of, thinned

PLAYERS, MAX_PLAYERS = 8, 40
"""Curves shown by default and at most: nobody tells more than eight colours apart."""
MAX_POINTS = 200
"""Snapshots of a curve; of more, evenly spread ones are shown."""


class RatingPoint(msgspec.Struct, frozen=True):
    """One rated policy.

    Fields:
      policy: id. trained_steps: of its player when it was frozen, 0 for a policy from outside.
      elo, low, high: its rating and 95 % interval. games: that it rests on.
    """

    policy: str
    trained_steps: int
    elo: float
    low: float
    high: float
    games: int


class RatingCurve(msgspec.Struct, frozen=True):
    """The rated snapshots of one player, oldest first. index: place of the player in the league."""

    player: str
    role: str
    index: int
    points: tuple[RatingPoint, ...]


class RatingsOverTime(msgspec.Struct, frozen=True):
    """Ratings of snapshots over trained steps.

    Fields:
      curves: of players, the one with the best snapshot first. fixed: bots and imported policies, best first.
      players: which of the players are shown. counts: what their games count by.
    """

    curves: tuple[RatingCurve, ...]
    fixed: tuple[RatingPoint, ...]
    players: Extent
    counts: str


def ratings_over_time(
    state: LeagueState, ratings: Iterable[RatingRow], *, offset: int = 0, limit: int = PLAYERS
) -> RatingsOverTime:
    """The curves of some players; policies without a rated game are left out.

    Args:
      ratings: of the frozen policies, strongest first, as `league_ratings` gives them.
    """
    fixed = []
    by_player: dict[str, list[RatingRow]] = {}
    for row in ratings:
        if not row.games:
            continue
        if is_from_outside(row.policy):
            fixed.append(_point(row, 0))
        elif (snapshot := state.snapshots.get(row.policy)) is not None and snapshot.player in state.players:
            by_player.setdefault(snapshot.player, []).append(row)
    # The rows come strongest first, so that players come in the order of their best snapshots.
    shown, extent = page_of(list(by_player), what="players", offset=offset, limit=limit, most=MAX_PLAYERS)
    index = {name: number for number, name in enumerate(state.players)}
    curves = tuple(
        RatingCurve(
            name,
            state.players[name].role,
            index[name],
            thinned([_point(row, state.snapshots[row.policy].trained_steps) for row in by_player[name]], MAX_POINTS),
        )
        for name in shown
    )
    return RatingsOverTime(curves, tuple(fixed), extent, state.counts)


def _point(row: RatingRow, trained_steps: int) -> RatingPoint:
    return RatingPoint(row.policy, trained_steps, row.elo, row.low, row.high, row.games)
