"""Counts ended episodes per assignment: wins and draws between seats, returns, and placements of teams.

Shape letters: G episodes recorded at a time, S seats, K teams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.envs.placements import Placements, comparable, has_placements, ranks_of

INITIAL_RANKINGS = 256
"""Rows of the table of rankings at the start."""

MAX_UNCOUNTED = 64
"""Records of ended episodes that are counted together."""

GAMES, DECISIONS, TRUNCATED, ABORTED = range(4)
"""Rows of the table of counts."""


@dataclass(frozen=True)
class AssignmentTotals:
    """Totals over the episodes of one assignment since the last report.

    Fields:
      policies: [S] policy ids.
      games: episodes ended; decisions: in them, summed over seats; truncated: episodes ended by a time limit.
      wins: int64 [S, S], wins[i, j] = games in which seat i's team had a higher return than seat j's; draws likewise.
      return_sums: float64 [S].
      placements: count of each ranking of the teams, sorted; empty in games of two seats or of one team, whose
        rankings `wins` and `draws` already give.
      aborted: episodes thrown away because their env failed; in no other count.
    """

    policies: tuple[str, ...]
    games: int
    decisions: int
    truncated: int
    wins: NDArray[np.int64]
    draws: NDArray[np.int64]
    return_sums: NDArray[np.float64]
    placements: Placements
    aborted: int = 0


class OutcomeCounter:
    """Counts ended episodes per assignment; records G episodes at a time, of any assignments."""

    def __init__(self, teams: Sequence[int]) -> None:
        seats = len(teams)
        order = list(dict.fromkeys(teams))
        self._team_of = np.array([order.index(team) for team in teams], np.int64)
        self._is_member = (self._team_of[:, None] == np.arange(len(order))).astype(np.float64)
        self._index: dict[tuple[str, ...], int] = {}
        self._counts = np.zeros((ABORTED + 1, 0), np.int64)
        # Of assignments with an ended episode alone: a crowd of seats has many assignments, and large tables.
        self._place = np.zeros(0, np.int64)  # index -> row of `_wins` and `_draws`, -1 without one
        self._wins = np.zeros((0, len(order), len(order)), np.int64)  # between teams: seats of one share their result
        self._draws = np.zeros((0, len(order), len(order)), np.int64)
        self._returns = np.zeros((0, seats), np.float64)
        self._has_placements = has_placements(teams)
        self._rankings = np.zeros((INITIAL_RANKINGS, 1 + len(order)), np.int64)
        self._num_rankings = 0
        self._ended: list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64], NDArray[np.bool_]]] = []

    def index_of(self, policies: tuple[str, ...]) -> int:
        """The index for episodes of an assignment, valid until the next `take`."""
        index = self._index.setdefault(policies, len(self._index))
        if index == len(self._place):
            self._counts = np.pad(self._counts, ((0, 0), (0, 1)))
            self._place = np.append(self._place, -1)
            self._returns = np.pad(self._returns, ((0, 1), (0, 0)))
        return index

    def add(
        self,
        indices: NDArray[np.int64],
        *,
        returns: NDArray[np.float32],
        decisions: NDArray[np.int64],
        truncated: NDArray[np.bool_],
    ) -> None:
        """Record ended episodes.

        Args:
          indices: int64 [G], assignments by `index_of`.
          returns: float32 [G, S]. decisions: int64 [G] in each. truncated: bool [G], ended by a time limit.
            Each is kept until it is counted, and must not change.
        """
        self._ended.append((indices, returns, decisions, truncated))
        if len(self._ended) == MAX_UNCOUNTED:
            self._count()

    def _count(self) -> None:
        """Count what was recorded: a call of each function of numpy for many steps, since a step ends few episodes."""
        if not self._ended:
            return
        parts, self._ended = zip(*self._ended, strict=True), []
        indices, returns, decisions, truncated = (np.concatenate(part) for part in parts)
        size, places = len(self._place), self._places(indices)
        self._counts[GAMES] += np.bincount(indices, minlength=size)
        self._counts[DECISIONS] += np.bincount(indices, decisions, minlength=size).astype(np.int64)
        self._counts[TRUNCATED] += np.bincount(indices[truncated], minlength=size)
        team_returns = comparable(returns.astype(np.float64) @ self._is_member, scale=np.abs(returns).max(axis=1))
        margins = team_returns[:, :, None] - team_returns[:, None, :]
        np.add.at(self._wins, places, margins > 0)
        np.add.at(self._draws, places, (margins == 0) & ~np.eye(self._is_member.shape[1], dtype=np.bool_))
        np.add.at(self._returns, indices, returns)
        if self._has_placements:
            self._record_rankings(indices, team_returns)

    def add_aborted(self, indices: NDArray[np.int64]) -> None:
        """Record episodes thrown away. indices: int64 [G], assignments by `index_of`."""
        self._counts[ABORTED] += np.bincount(indices, minlength=len(self._place))

    def take(self) -> tuple[AssignmentTotals, ...]:
        """The totals since the last call, sorted by policies; resets the counts and the indices."""
        self._count()
        placements, between_seats = self._placements(), np.ix_(self._team_of, self._team_of)
        totals = tuple(
            AssignmentTotals(
                policies=policies,
                games=int(self._counts[GAMES, index]),
                decisions=int(self._counts[DECISIONS, index]),
                truncated=int(self._counts[TRUNCATED, index]),
                wins=self._between(self._wins, index)[between_seats],
                draws=self._between(self._draws, index)[between_seats],
                return_sums=self._returns[index],
                placements=tuple(placements.get(index, ())),
                aborted=int(self._counts[ABORTED, index]),
            )
            for policies, index in sorted(self._index.items())
            if self._counts[GAMES, index] or self._counts[ABORTED, index]
        )
        self._index = {}
        self._counts, self._place, self._returns = self._counts[:, :0], self._place[:0], self._returns[:0]
        self._wins, self._draws = self._wins[:0], self._draws[:0]
        self._num_rankings = 0
        return totals

    def _places(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64 [G], the rows of the tables between teams; they grow by those that had none."""
        new = np.unique(indices[self._place[indices] < 0])
        if new.size:
            self._place[new] = len(self._wins) + np.arange(new.size)
            grown = ((0, new.size), (0, 0), (0, 0))
            self._wins, self._draws = np.pad(self._wins, grown), np.pad(self._draws, grown)
        return self._place[indices]

    def _between(self, table: NDArray[np.int64], index: int) -> NDArray[np.int64]:
        """int64 [K, K], the row of an assignment; zeros where none of its episodes ended."""
        place = self._place[index]
        return table[place] if place >= 0 else np.zeros(table.shape[1:], np.int64)

    def _record_rankings(self, indices: NDArray[np.int64], team_returns: NDArray[np.float64]) -> None:
        """Append assignments [G] and ranks [G, K], from the returns [G, K], to a table that doubles when full."""
        start, end = self._num_rankings, self._num_rankings + len(indices)
        while end > len(self._rankings):
            self._rankings = np.concatenate([self._rankings, np.zeros_like(self._rankings)])
        self._rankings[start:end, 0] = indices
        self._rankings[start:end, 1:] = ranks_of(team_returns)
        self._num_rankings = end

    def _placements(self) -> dict[int, list[tuple[tuple[int, ...], int]]]:
        """Assignment -> its rankings and their counts, sorted."""
        rows, games = np.unique(self._rankings[: self._num_rankings], axis=0, return_counts=True)
        placements: dict[int, list[tuple[tuple[int, ...], int]]] = {}
        for (index, *ranks), times in zip(rows.tolist(), games.tolist(), strict=True):
            placements.setdefault(index, []).append((tuple(ranks), times))
        return placements
