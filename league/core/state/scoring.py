"""Scoring: the value of a game for payoff, gates, ratings and mixtures, by wins or by margin.

A score is a number in [0, 1] for each game and ordered pair of sides; the scores of the two sides sum to 1. Counting
games won is right where a game is won, drawn or lost and nothing else. Where it is lost by little or by much, such as
in poker, whoever wins more games may still lose. Then only returns say who is better.

Shape letter: S seats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from league.core.state.records import AssignmentOutcome
from league.envs.text.number_text import number_text

Score = Literal["wins", "returns"]


@dataclass(frozen=True)
class Scoring:
    """The scoring rule of a league; decided once, when the league is created.

    Fields:
      score: "wins", 1 for the side of the higher return, 1/2 each where they are equal; or "returns", a half and half
        of the margin by which the side's return is higher, as a fraction of `return_scale`.
      return_scale: margin that counts as a certain win, in the game's rewards; of no meaning for "wins".
    """

    score: Score = "wins"
    return_scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.return_scale < math.inf:
            raise ValueError(f"return_scale must be positive and finite, not {self.return_scale}")

    @property
    def text(self) -> str:
        """Describes the scoring rule for people."""
        if self.score == "wins":
            return "games won, a draw is half a win"
        return f"returns, a margin of {number_text(self.return_scale)} counts as a certain win"


BY_WINS = Scoring()


def score_sum(scoring: Scoring, outcome: AssignmentOutcome, *, teams: Sequence[int], seat: int, opponent: int) -> float:
    """Scores of the side of `seat` against the side of `opponent`, summed over the games of an outcome.

    By returns, the margin of a game is the mean return of the one side's seats less the other's, so that sides of
    different sizes compare. In a game of more than two sides each pair of them has its own. Only sums over the outcome
    are known: where `return_scale` is less than the largest margin, the sum is cut to what as many games can score, not
    each game by itself.

    Args:
      teams: [S] team of each seat.
      seat, opponent: seats of two different teams.
    Returns:
      A number in [0, games]; with `seat` and `opponent` exchanged, the rest of the games.
    """
    if scoring.score == "wins":
        return outcome.wins[seat][opponent] + 0.5 * outcome.draws[seat][opponent]
    margin = _mean_return(outcome, teams, teams[seat]) - _mean_return(outcome, teams, teams[opponent])
    half = 0.5 * outcome.games
    return half + min(max(0.5 * margin / scoring.return_scale, -half), half)


def _mean_return(outcome: AssignmentOutcome, teams: Sequence[int], team: int) -> float:
    """Sum over the games of an outcome of the mean return of a team's seats."""
    earned = [total for total, other in zip(outcome.return_sums, teams, strict=True) if other == team]
    return sum(earned) / len(earned)
