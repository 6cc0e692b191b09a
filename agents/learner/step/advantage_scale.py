"""The running root mean square of the advantages, by which policy losses divide them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

DECAY = 0.99
"""Decay per update of the running mean square."""

MIN_SCALE = 1e-3
"""Smallest scale: smaller advantages are not scaled up further."""

MAX_GROWTH = 100.0
"""Largest factor by which a batch's mean square may exceed the running one; the excess is ignored.

One such batch moves a settled scale by a factor of at most 1.41, half of which is forgotten after 80 updates.
The scale still follows real growth: it reaches half of a thousandfold growth after 42 updates instead of 29.
"""


MAX_DEVIATION = 30.0
"""Largest advantage, in scales, that counts in full; the excess of larger ones is ignored.

One decision in a batch of 2,048 then moves a settled scale by at most 0.2 %, whatever its reward was. Advantages that
are rarer than one in 900 decisions count less than they are.
"""


class AdvantageScale:
    """Bias-corrected exponential mean of the mean squared advantages; 1 before the first batch."""

    def __init__(self) -> None:
        self._mean_square = 0.0
        self._weight = 0.0

    @property
    def value(self) -> float:
        """The scale, at least `MIN_SCALE`."""
        if self._weight == 0.0:
            return 1.0
        return max(math.sqrt(self._mean_square / self._weight), MIN_SCALE)

    @property
    def limit(self) -> float:
        """The advantage that the mean square of the next batch may count at most; infinite before a measurement."""
        return MAX_DEVIATION * self.value if self._weight and self.value > MIN_SCALE else math.inf

    def update(self, mean_square: float) -> None:
        """Add the mean squared advantage of a batch, limited by `limit`; one that is not finite is ignored."""
        if not math.isfinite(mean_square):
            return
        # At the smallest scale there is no measurement yet: the first batch with advantages sets the scale.
        if self._weight and self.value > MIN_SCALE:
            mean_square = min(mean_square, MAX_GROWTH * self._mean_square / self._weight)
        self._mean_square = DECAY * self._mean_square + (1.0 - DECAY) * mean_square
        self._weight = DECAY * self._weight + (1.0 - DECAY)

    def save(self) -> NDArray[np.float64]:
        """float64 [2]: the weighted mean square, and the sum of the weights."""
        return np.array([self._mean_square, self._weight], np.float64)

    def load(self, saved: NDArray[np.generic]) -> None:
        """Continue from the numbers of `save`; start over if they are not finite."""
        numbers = np.asarray(saved, np.float64)
        if not np.isfinite(numbers).all():
            numbers = np.zeros(2)
        self._mean_square, self._weight = (float(number) for number in numbers)
