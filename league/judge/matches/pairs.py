"""One match as a row of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from league.judge.matches.match_result import Interval, MatchResult

EVEN = 0.5
"""Score of a policy against one that is as strong."""


@dataclass(frozen=True)
class PairRow:
    """One match, from the side of `home`.

    Fields:
      home, away: names of the contenders.
      games, wins, draws, losses: counts; in a game of several opponents against each other they are of home against the
        first opponent, while the score is over all.
      score: of home, with its interval.
      by_team: [T] score of home while it held team 0, 1, ...
      returns_by_team: [T] mean return of its team then, summed over the seats.
      away_returns_by_team: [T] the same of away.
      mean_steps: mean length of a game.
      margin: mean return of a seat of home less that of the others' seats; None in reports of earlier versions.
    """

    home: str
    away: str
    games: int
    wins: int
    draws: int
    losses: int
    score: Interval
    by_team: tuple[float, ...]
    mean_steps: float
    returns_by_team: tuple[float, ...] = ()
    away_returns_by_team: tuple[float, ...] = ()
    margin: Interval | None = None

    def edge(self, counts: str) -> tuple[Interval, float]:
        """The figure that the run goes by, "wins" or "returns", and what it is between policies that are as strong."""
        return (self.margin, 0.0) if counts == "returns" and self.margin is not None else (self.score, EVEN)


def pair_row(home: str, away: str, result: MatchResult, *, sizes: Sequence[int]) -> PairRow:
    """The row of a match between contenders 0 and 1. Args: sizes: [T] seats of each team."""
    wins, draws, losses = result.counts()
    return PairRow(
        home,
        away,
        result.games,
        wins,
        draws,
        losses,
        result.score(),
        result.by_team(),
        result.mean_steps,
        result.returns_by_team(0),
        result.returns_by_team(1),
        result.margin(sizes),
    )
