"""Tells from random play whether a game of several seats ends after a number of turns that it does not show.

Positions that look the same with many rounds left and with one are then worth different things. Where numbers come
again and again, an observation that came at different times shows it. Where they hardly ever come twice, time is
predicted from them by regression.

Shape letters: K slots, R rows, D numbers of an observation, F features.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from league.envs.facts.history import seen_in, shows_picture
from league.envs.facts.past_regression import (
    MAX_REPEATED,
    has_few_numbers,
    held_out_errors,
    numbers_of,
    random_features,
)
from league.envs.protocol import EnvSpec, Turn

MIN_EPISODES, LONGEST_SHARE = 10, 0.1
"""Episodes that are needed, and the share of them that must have been as long as the longest: a limit ended them."""

MAX_OBSERVATIONS, MAX_ROWS = 20_000, 2_000
"""Observations that are compared, and that are kept for the regression."""

RECURRING_SHARE, APART = 0.05, 1.0 / 16.0
"""Share of the observations that must have come before at another time, and how far apart, in longest episodes. Some
games show the time in steps of several decisions."""

MIN_ROWS, MIN_UNEXPLAINED = 400, 0.3
"""Rows that the regression needs, and the part of the variance of time that it must leave unexplained."""

Array = NDArray[np.float64]


class HiddenTime:
    """Collects the observations of a game by the number of the seat's decision; call `decided` for every turn.

    Args:
      spec: of the game.
    """

    def __init__(self, spec: EnvSpec) -> None:
        self._looks = spec.num_seats > 1
        self._has_few_numbers = has_few_numbers(spec)
        self._first_time: dict[tuple[int, int], int] = {}
        self._seen, self._apart = 0, list[int]()
        self._last = 0
        self._rows: list[Array] = []
        self._times: list[int] = []

    def decided(self, turn: Turn, times: NDArray[np.int64]) -> None:
        """A turn. Args: times: [K], decisions that each seat has made before in this episode."""
        if not self._looks or self._seen >= MAX_OBSERVATIONS:
            return
        if shows_picture(turn):
            self._looks = False
            return
        for slot, time in enumerate(times.tolist()):
            seen = int(turn.seat[slot]), seen_in(turn, slot)
            self._apart.append(abs(self._first_time.setdefault(seen, time) - time))
        self._seen += len(times)
        self._last = max(self._last, int(times.max(initial=0)))
        if self._has_few_numbers and len(self._times) < MAX_ROWS:
            self._rows.extend(numbers_of(turn))
            self._times.extend(times.tolist())

    def is_hidden(self, turns: Sequence[int]) -> bool:
        """True if a limit ends episodes, and observations do not tell the time.

        Args:
          turns: of each episode that has ended.
        """
        if not self._looks or not self._seen or len(turns) < MIN_EPISODES:
            return False
        longest = max(turns)
        if self._last < 1 or turns.count(longest) < LONGEST_SHARE * len(turns):
            return False
        apart = np.array(self._apart)
        if (apart > APART * self._last).mean() > RECURRING_SHARE:
            return True
        is_smooth = len(self._first_time) >= (1.0 - MAX_REPEATED) * self._seen
        return is_smooth and len(self._times) >= MIN_ROWS and self._is_hardly_predicted()

    def _is_hardly_predicted(self) -> bool:
        rng = np.random.default_rng(0)
        order = rng.permutation(len(self._times))
        rows, times = np.array(self._rows)[order], np.array(self._times, np.float64)[order]
        times = (times - times.mean()) / times.std()
        errors = held_out_errors(random_features(rows, rng), times[:, None], len(times) // 2)
        return float(errors.mean()) >= MIN_UNEXPLAINED
