"""The league table: players with the rating of their newest snapshot and its trend, or all frozen policies."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import msgspec

from league.core.metagame.ratings import RatingRow, rated_snapshots
from league.core.state.state import LeagueState, PlayerState
from league.see.page.runs.opened_run import OpenedRun

TREND = 12
"""Newest rated snapshots of a player in its trend."""
MAX_ROWS = 1_000


class TableQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The choice of rows. show: "players" or "policies". text: in their names."""

    show: str = "players"
    text: str = ""


class TableRow(msgspec.Struct, frozen=True):
    """One player or frozen policy.

    Fields:
      name, role: who; role "fixed" of a bot or imported policy. player: whose snapshot it is, else its own name.
      elo, low, high, rated_games: rating with its 95 % interval, of a player's newest rated snapshot; None before.
      trend: ratings of a player's newest rated snapshots, oldest first.
      games, steps: played by a player and trained. score: of its last games, None before the first.
      state: "learns", "paused" or "retired" of a player; "frozen", or why a frozen policy is not met.
    """

    name: str
    role: str
    player: str
    elo: float | None
    low: float | None
    high: float | None
    rated_games: int
    trend: tuple[float, ...]
    games: int
    steps: int
    snapshots: int
    resets: int
    score: float | None
    state: str


class Table(msgspec.Struct, frozen=True):
    """The table.

    Fields:
      rows: strongest first. total: how many there are; left out are the weakest.
      as_of: event behind the ratings, 0 before they are there. error: why there are none, else empty.
      counts: what the games count by.
    """

    rows: tuple[TableRow, ...]
    total: int
    as_of: int
    seq: int
    error: str
    counts: str


def read(run: OpenedRun, query: TableQuery) -> Table:
    """The table of a run."""
    state, computed = run.state, run.ratings
    ratings = {row.policy: row for row in computed.value or ()}
    if query.show == "policies":
        rows = [_policy_row(state, row) for row in ratings.values() if query.text in row.policy]
    else:
        rows = [_player_row(player, ratings) for name, player in state.players.items() if query.text in name]
        rows.sort(key=lambda row: (row.elo is None, -(row.elo or 0.0), row.name))
    return Table(tuple(rows[:MAX_ROWS]), len(rows), computed.seq, run.seq, computed.error, state.counts)


def _player_row(player: PlayerState, ratings: Mapping[str, RatingRow]) -> TableRow:
    rated = list(itertools.islice(rated_snapshots(player, ratings), TREND))
    newest = rated[0] if rated else None
    return TableRow(
        name=player.name,
        role=player.role,
        player=player.name,
        elo=None if newest is None else newest.elo,
        low=None if newest is None else newest.low,
        high=None if newest is None else newest.high,
        rated_games=0 if newest is None else newest.games,
        trend=tuple(row.elo for row in reversed(rated)),
        games=player.games,
        steps=player.trained_steps,
        snapshots=player.num_snapshots,
        resets=player.generation,
        score=player.episodes.score if player.episodes.score_games else None,
        state="retired" if player.retired else "paused" if player.paused else "learns",
    )


def _policy_row(state: LeagueState, row: RatingRow) -> TableRow:
    snapshot = state.snapshots.get(row.policy)
    number = state.population.index[row.policy]
    return TableRow(
        name=row.policy,
        role="fixed" if snapshot is None or not snapshot.player else snapshot.role,
        player="" if snapshot is None else snapshot.player,
        elo=row.elo if row.games else None,
        low=row.low if row.games else None,
        high=row.high if row.games else None,
        rated_games=row.games,
        trend=(),
        games=row.games,
        steps=0 if snapshot is None else snapshot.trained_steps,
        snapshots=0,
        resets=0,
        score=None,
        state=state.population.absent.get(number, "frozen"),
    )
