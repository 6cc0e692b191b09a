"""Statistics of a player's recent episodes: return by seat, length, and score against the others.

Shape letter: S seats of the game.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from league.core.state.assignments import counted_pairs
from league.core.state.records import AssignmentOutcome
from league.core.state.scoring import Scoring, score_sum

RECENT_GAMES = 1000.0
"""Games over which the means are taken; older ones fade."""


@dataclass
class Episodes:
    """Fading means over the games of a player's own leases since its last reset.

    Fields:
      games: those that the means rest on, at most `RECENT_GAMES`. decisions: of one, all seats together.
      seat_games, seat_returns: [S] the same of the games in which the player held that seat, with its undiscounted
        return there; empty before the first game.
      score_games, score: pairings with other policies, and the mean score in [0, 1] against them.
    """

    games: float = 0.0
    decisions: float = 0.0
    seat_games: tuple[float, ...] = ()
    seat_returns: tuple[float, ...] = ()
    score_games: float = 0.0
    score: float = 0.0

    @property
    def mean_return(self) -> float | None:
        """Mean over the seats, each weighing what it was held; None before the first game."""
        held = sum(self.seat_games)
        if not held:
            return None
        return sum(mean * games / held for mean, games in zip(self.seat_returns, self.seat_games, strict=True))

    def record(self, player: str, outcome: AssignmentOutcome, *, teams: Sequence[int], scoring: Scoring) -> None:
        """Count the games of one outcome, in which `player` holds a seat at least; nothing where no game ended."""
        if not outcome.games:
            return
        games = float(outcome.games)
        self.games, self.decisions = _faded(self.games, self.decisions, games, outcome.decisions / games)
        counts = list(self.seat_games or (0.0,) * len(teams))
        means = list(self.seat_returns or (0.0,) * len(teams))
        for seat, policy in enumerate(outcome.policies):
            if policy == player:
                mean = outcome.return_sums[seat] / games
                counts[seat], means[seat] = _faded(counts[seat], means[seat], games, mean)
        self.seat_games, self.seat_returns = tuple(counts), tuple(means)
        for i, j in counted_pairs(outcome.policies, tuple(teams)):
            if outcome.policies[i] == player != outcome.policies[j]:
                mean = score_sum(scoring, outcome, teams=teams, seat=i, opponent=j) / games
                self.score_games, self.score = _faded(self.score_games, self.score, games, mean)


def _faded(known: float, mean: float, games: float, new: float) -> tuple[float, float]:
    """(games, mean) after `games` more with the mean `new`."""
    part = games / (known + games)
    return min(known + games, RECENT_GAMES), mean * (1.0 - part) + new * part
