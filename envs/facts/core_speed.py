"""The speed of a core at this moment, found by a fixed piece of work, and costs of calls told at a core's usual speed.

A machine that others share is slower by half for seconds at a time, and kinds of machines differ by as much. The cost
of a call beside that of a fixed piece of work at the same moment varies by some percent only.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

WORK_S = 7.2e-5
"""Processor time of the work on a core of 2024 at rest, as are all nominal costs."""

SPACING = 20.0
"""Cost of the calls between two pieces of work, as a multiple of theirs."""

STRETCHES = 8
"""Parts of a series of calls whose costs are compared."""

NUMBERS = np.arange(576).reshape(64, 9)

Pace = Callable[[], float]
"""Seconds of the work at this moment."""


def work_s() -> float:
    """Processor time of the work: calls of numpy on small arrays, and Python's own objects, as games are made of."""
    began = time.process_time()
    for turn in range(12):
        column = NUMBERS[:, turn % 9]
        np.where(column > 100, column, 0).cumsum()
        sum({str(number): number for number in range(20)}.values())
    return time.process_time() - began


class CallCosts:
    """Costs of a series of calls.

    Args:
      pace: seconds of the work now.
    """

    def __init__(self, pace: Pace = work_s) -> None:
        self._pace = pace
        self._calls, self._seconds = 0, 0.0
        self._entries: list[tuple[int, float, float]] = []  # calls, their seconds, seconds of the work after them
        self.total_s = 0.0
        pace()  # warms it up

    def add(self, seconds: float) -> None:
        """One more call took so many seconds of the processor."""
        self._calls += 1
        self._seconds += seconds
        self.total_s += seconds
        if self._seconds >= SPACING * WORK_S:
            self._look()

    def usual(self) -> float:
        """Seconds of a call at a core's usual speed: the middle one of the means of equal parts of the series.

        First calls are dear, and a moment's delay is no property of a game; what recurs in most parts is, such as a
        reset now and then.

        Raises:
          ValueError: there was no call.
        """
        if self._calls:
            self._look()
        if not self._entries:
            raise ValueError("no call was added")
        parts = np.array_split(np.array(self._entries), min(STRETCHES, len(self._entries)))
        return WORK_S * float(np.median([_beside_the_work(part) for part in parts]))

    def _look(self) -> None:
        self._entries.append((self._calls, self._seconds, self._pace()))
        self._calls, self._seconds = 0, 0.0


def _beside_the_work(entries: NDArray[np.float64]) -> float:
    """Mean cost of the calls of some entries, as a multiple of that of the work."""
    calls, seconds, work = entries.T
    return float(seconds.sum() / calls.sum() / np.median(work))
