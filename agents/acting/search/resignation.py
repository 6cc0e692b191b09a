"""Resignation: seats give up lost games, and a fraction of the games is played on to tell how often that was wrong.

Games of a batch cannot be ended early. A seat that resigns leaves the rest of the game to the policy without search, so
that its result is still played for; what is decided there has no search policy to learn from.
Sources: Silver et al. 2017, AlphaGo Zero, methods (the tenth that is played on); Wu 2019, KataGo (cheap moves once a
game is decided).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import Turn

NOBODY = -1
MAX_FALSE_POSITIVES = 0.05
REPORT_GAMES = 1_000
"""Games between two reports."""

logger = logging.getLogger(__name__)


@dataclass
class ResignationCounts:
    """Fields: games: ended; resigned: of these, those in which a seat gave up; played_on: those searched to the end in
    which a seat would have given up; mistaken: of these, those that this seat did not lose."""

    games: int = 0
    resigned: int = 0
    played_on: int = 0
    mistaken: int = 0

    @property
    def false_positives(self) -> float:
        """Fraction of the games that were played on in which giving up would have been wrong; 0 while there is none."""
        return self.mistaken / max(self.played_on, 1)

    def report(self) -> None:
        """Log the counts; a warning where more than one in twenty was wrong (published bound)."""
        is_wrong = self.false_positives > MAX_FALSE_POSITIVES
        hint = "; lower resign_below of actors.acting" if is_wrong else ""
        logger.log(
            logging.WARNING if is_wrong else logging.INFO,
            "of %d games %d were resigned and %d played on, of which %d (%.1f %%) were not lost%s",
            *(self.games, self.resigned, self.played_on, self.mistaken, 100 * self.false_positives, hint),
        )


class Resignation:
    """The seats that have given up in N games.

    Args:
      below: value at which a seat gives up. played_on: fraction of games that are searched to their end.
    """

    def __init__(self, num_games: int, *, below: float, played_on: float, rng: np.random.Generator) -> None:
        self._below, self._fraction, self._rng = below, played_on, rng
        self._seat = np.full(num_games, NOBODY)
        self._plays_on = rng.random(num_games) < played_on

    def end(self, turn: Turn, *, loss: float, counts: ResignationCounts) -> None:
        """Count the games that ended before this turn. loss: the return of a seat that lost."""
        ended = np.flatnonzero(turn.ended)
        if not ended.size:
            return
        gave_up = self._seat[ended] != NOBODY
        played = gave_up & self._plays_on[ended]
        lost = turn.returns[ended, np.maximum(self._seat[ended], 0)] <= loss
        due = counts.games // REPORT_GAMES < (counts.games + len(ended)) // REPORT_GAMES
        counts.games += len(ended)
        counts.resigned += int((gave_up & ~played).sum())
        counts.played_on += int(played.sum())
        counts.mistaken += int((played & ~lost).sum())
        if due:
            counts.report()
        self._seat[ended] = NOBODY
        self._plays_on[ended] = self._rng.random(len(ended)) < self._fraction

    def is_over(self, games: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool [len(games)], True where no move is searched any more."""
        over: NDArray[np.bool_] = (self._seat[games] != NOBODY) & ~self._plays_on[games]
        return over

    def note(self, games: NDArray[np.int64], seats: NDArray[np.int64], values: NDArray[np.float32]) -> None:
        """Let the seats that moved give up where their values, in [-1, 1], are too low."""
        gives_up = (values <= self._below) & (self._seat[games] == NOBODY)
        self._seat[games[gives_up]] = seats[gives_up]
