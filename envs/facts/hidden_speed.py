"""Tells from random play whether numbers keep on moving as they did before, at a speed that is not seen.

A ball that bounces or is served again jumps. A few jumps hide from a regression what most of its steps show, so the
largest steps of each number are left out.

Shape letters: R rows, D numbers of an observation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

USUAL_SHARE = 0.8
"""Share of the steps of a number that are usual; larger ones are jumps."""

MIN_USUAL_ROWS = 300
"""Rows whose steps, now and before, are usual, that a number needs."""

MIN_CORRELATION, MAX_CANDIDATES = 0.3, 3
"""Of the steps of a number now and before, from which a closer look pays, and the most numbers that are looked at."""

ROUNDING = 1e-9

Array = NDArray[np.float64]


def moving_numbers(steps: Array, steps_before: Array) -> list[tuple[int, NDArray[np.bool_]]]:
    """The numbers whose steps most look like those before, with the rows in which both were usual.

    Args:
      steps, steps_before: [R, D], from here and to here.
    """
    found = []
    for number in range(steps.shape[1]):
        now, before = steps[:, number], steps_before[:, number]
        rows = _usual(now) & _usual(before)
        if rows.sum() < MIN_USUAL_ROWS or min(np.ptp(now[rows]), np.ptp(before[rows])) <= ROUNDING:
            continue
        likeness = abs(float(np.corrcoef(now[rows], before[rows])[0, 1]))
        if likeness >= MIN_CORRELATION:
            found.append((likeness, number, rows))
    return [(number, rows) for _, number, rows in sorted(found, key=lambda one: -one[0])[:MAX_CANDIDATES]]


def _usual(steps: Array) -> NDArray[np.bool_]:
    """bool [R], True where a number [R] made a usual step."""
    sizes = np.abs(steps)
    return np.asarray(sizes <= np.quantile(sizes, USUAL_SHARE) + ROUNDING)
