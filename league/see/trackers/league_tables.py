"""The tables of a league that trackers show: ratings, payoff, gates and matchmaking, as plain columns and rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from league.core.metagame.ratings import RatingRow
from league.core.state.records import is_from_outside
from league.core.state.state import LeagueState
from league.see.trackers.chronicle import GateDecision, Met

MAX_ROWS = 500
"""Rows of a table; the newest, or those with the most games."""
MAX_MEMBERS = 24
"""Members whose win rates against one another are drawn."""

Cell = str | float | int | None


@dataclass(frozen=True)
class TrackedTable:
    """A table. columns: names; rows: one cell for each column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class WinRates:
    """Win rates of the members of a league against one another.

    Fields:
      members: [N] players, then their newest rated snapshots. rates: [N][N] of the row against the column, draws 1/2;
        None where they have not met.
    """

    members: tuple[str, ...]
    rates: tuple[tuple[float | None, ...], ...]


def ratings_table(state: LeagueState, ratings: Iterable[RatingRow]) -> TrackedTable:
    """The newest snapshots with where they come from and their ratings, the last one first."""
    rated = {row.policy: row for row in ratings if row.games}
    rows = []
    for name, known in reversed(list(state.snapshots.items())[-MAX_ROWS:]):
        row = rated.get(name)
        numbers = (None, None, None, 0) if row is None else (row.elo, row.low, row.high, row.games)
        tags = " ".join(sorted(tag for tag, tagged in state.tags.items() if tagged == name))
        parent = known.parent or ""
        rows.append((name, known.player, known.role, parent, known.reason, known.trained_steps, *numbers, tags))
    columns = ("snapshot", "player", "role", "parent", "reason", "trained_steps", "elo", "low", "high", "games", "tags")
    return TrackedTable(columns, tuple(rows))


def payoff_table(state: LeagueState) -> TrackedTable:
    """Each learning player against everyone that it has met, most games first."""
    rows: list[tuple[Cell, ...]] = []
    for home in state.players.values():
        known = state.posterior(home.policy)
        lower = known.lower
        for away in np.flatnonzero(known.games > 0.0).tolist():
            pair = (home.name, state.population.names[away])
            rows.append((*pair, float(known.mean[away]), float(lower[away]), float(known.games[away])))
    rows.sort(key=lambda row: (-float(row[4] or 0.0), str(row[0]), str(row[1])))
    return TrackedTable(("home", "away", "win_rate", "lower", "effective_games"), tuple(rows[:MAX_ROWS]))


def win_rates(state: LeagueState, ratings: Iterable[RatingRow]) -> WinRates:
    """Win rates between the players and the newest rated snapshots."""
    rated = {row.policy for row in ratings if row.games}
    players = list(state.players)[: MAX_MEMBERS // 2]
    snapshots = [name for name in state.snapshots if name in rated][-(MAX_MEMBERS - len(players)) :]
    members = (*players, *snapshots)
    places = np.array([state.population.index[name] for name in members], dtype=np.int64)
    rates = []
    for place in places.tolist():
        known = state.posterior(place)
        means, games = known.mean[places], known.games[places]
        rates.append(tuple(float(mean) if met > 0.0 else None for mean, met in zip(means, games, strict=True)))
    return WinRates(members, tuple(rates))


def gates_table(decisions: Iterable[GateDecision]) -> TrackedTable:
    """A row for each opponent that a gate looked at, the newest decision first."""
    rows: list[tuple[Cell, ...]] = []
    for found in reversed(list(decisions)):
        head = (found.event, found.env_steps, found.player, found.kind, found.reason)
        for evidence in found.evidence:
            seen = (evidence.opponent, evidence.games, evidence.mean, evidence.lower, evidence.unbeaten)
            rows.append((*head, found.opponents, *seen))
    columns = ("event", "env_steps", "player", "decision", "reason", "opponents")
    return TrackedTable((*columns, "opponent", "games", "win_rate", "lower", "unbeaten"), tuple(rows[:MAX_ROWS]))


def matchmaking_table(met: Mapping[tuple[str, str], Met]) -> TrackedTable:
    """Each player's opponents since the last table, most games first."""
    totals: dict[str, int] = {}
    for (player, _), games in met.items():
        totals[player] = totals.get(player, 0) + games.games
    rows = [
        (player, opponent, games.games, games.games / totals[player], games.score / games.games)
        for (player, opponent), games in sorted(met.items(), key=lambda item: (item[0][0], -item[1].games, item[0][1]))
    ]
    return TrackedTable(("player", "opponent", "games", "share", "score"), tuple(rows[:MAX_ROWS]))


def matchmaking_shares(state: LeagueState, met: Mapping[tuple[str, str], Met]) -> dict[str, dict[str, float]]:
    """Player -> kind of opponent -> its fraction of the player's games since the last table."""
    games: dict[str, dict[str, int]] = {}
    for (player, opponent), found in met.items():
        own = games.setdefault(player, dict.fromkeys(("self", "players", "own_past", "others_past", "outside"), 0))
        own[_kind_of(state, player, opponent)] += found.games
    return {player: {kind: count / sum(own.values()) for kind, count in own.items()} for player, own in games.items()}


def _kind_of(state: LeagueState, player: str, opponent: str) -> str:
    if opponent == player:
        return "self"
    if opponent in state.players:
        return "players"
    known = state.snapshots.get(opponent)
    if known is None or is_from_outside(opponent):
        return "outside"
    return "own_past" if known.player == player else "others_past"
