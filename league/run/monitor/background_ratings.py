"""Ratings for what a run shows of itself, made beside the daemon's loop and not in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from league.core.metagame.ratings import RatingInputs, RatingRow, rate, rating_inputs
from league.core.state.state import LeagueState

MAX_SHARE = 0.05
"""Fraction of the time that refreshing may take: a refresh that took a second is followed by twenty without one."""

Job = Callable[[], None]


def in_thread(job: Job) -> None:
    """Run a job beside; nothing waits for it, not even the end of the process."""
    threading.Thread(target=job, name="ratings", daemon=True).start()


class BackgroundRatings:
    """The newest ratings that are ready; they are made from a copy of the games, so that the league may continue.

    Args:
      every_s: least time between two refreshes.
      start: runs a job beside; a test may run it at once.
      monotonic: seconds that never go back.
    """

    def __init__(
        self,
        *,
        every_s: float,
        start: Callable[[Job], None] = in_thread,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._every_s = every_s
        self._start = start
        self._monotonic = monotonic
        self._rows: dict[str, RatingRow] = {}
        self._rated: tuple[int, ...] | None = None
        self._due = -float("inf")
        self._is_busy = False

    @property
    def rows(self) -> dict[str, RatingRow]:
        """By policy, of the games when the newest refresh began; empty before the first is ready."""
        return self._rows

    def refresh(self, state: LeagueState) -> None:
        """Begin a refresh where one is due and the games or policies are others than at the last; returns at once."""
        if self._is_busy or self._monotonic() < self._due:
            return
        # Where more than two sides play, training games have pairs of frozen policies among them too.
        games = state.totals.games if len(set(state.teams)) > 2 else state.totals.rating_games
        known = (games, len(state.population), len(state.population.absent))
        if known == self._rated:
            self._due = self._monotonic() + self._every_s
            return
        inputs = rating_inputs(state)
        self._rated, self._is_busy = known, True
        self._start(lambda: self._make(inputs))

    def _make(self, inputs: RatingInputs | None) -> None:
        began = self._monotonic()
        try:
            self._rows = {row.policy: row for row in rate(inputs)} if inputs is not None else {}
        finally:
            took = self._monotonic() - began
            self._due = began + max(self._every_s, took / MAX_SHARE)
            self._is_busy = False
