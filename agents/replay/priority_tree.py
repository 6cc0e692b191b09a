"""Weights of many slots in levels of sums, and draws in proportion to them, all rows of a batch at once.

Shape letters: C slots, B rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TOP_NODES = 4096
"""Sums of the uppermost level, whose running sum is searched: cheaper than twelve levels of two children."""
BLOCK = 64
"""Slots under one minimum."""


class PriorityTree:
    """C weights, at first 0. A slot of weight 0 is never drawn.

    Each sum is made again from its two children, so that errors of rounding do not add up.

    Args:
      tracks_lowest: whether `lowest` will be asked.
    """

    def __init__(self, capacity: int, *, tracks_lowest: bool = False) -> None:
        size = BLOCK
        while size < capacity:
            size *= 2
        self._levels = [np.zeros(size)]
        while self._levels[-1].size > TOP_NODES:
            self._levels.append(np.zeros(self._levels[-1].size // 2))
        self._minima = np.full(size // BLOCK, np.inf) if tracks_lowest else None

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self._levels[-1].cumsum()[-1])

    def weights(self, slots: NDArray[np.int64]) -> NDArray[np.float64]:
        """float64 [B], of these slots."""
        return self._levels[0].take(slots)

    def set(self, slots: NDArray[np.int64], weights: NDArray[np.float64] | float) -> None:
        """Set the weights of slots; of a slot that comes twice, the last one holds."""
        self._levels[0][slots] = weights
        nodes = slots
        for below, level in zip(self._levels, self._levels[1:], strict=False):
            nodes = nodes >> 1
            left = nodes << 1
            level[nodes] = below.take(left) + below.take(left + 1)
        if self._minima is not None:
            blocks = np.unique(slots // BLOCK)
            self._minima[blocks] = _without_zeros(self._levels[0].reshape(-1, BLOCK)[blocks]).min(axis=1)

    def draw(self, points: NDArray[np.float64]) -> NDArray[np.int64]:
        """The slots at which the running sum of all weights first exceeds `points` times the total.

        Args:
          points: float64 [B] in [0, 1).
        Returns: int64 [B]; each has a weight above 0. The total must be above 0.
        """
        sums = self._levels[-1].cumsum()
        values = np.minimum(points * sums[-1], np.nextafter(sums[-1], 0.0))
        nodes: NDArray[np.int64] = sums.searchsorted(values, side="right")
        values -= np.where(nodes > 0, sums[nodes - 1], 0.0)
        for level in self._levels[-2::-1]:
            nodes = nodes << 1
            left = level.take(nodes)
            # rounding must not lead to a child without a weight
            is_right = (values >= left) & (level.take(nodes + 1) > 0.0)
            values -= left * is_right
            nodes += is_right
        return nodes

    def lowest(self, count: int) -> NDArray[np.int64]:
        """The `count` slots of the lowest weights above 0, in no order; there must be as many.

        They lie in the `count` blocks of the lowest minima, so that only these are looked at.
        """
        assert self._minima is not None, "not tracked"
        blocks = _lowest(self._minima, count)
        slots = (blocks[:, None] * BLOCK + np.arange(BLOCK)).reshape(-1)
        return slots[_lowest(_without_zeros(self._levels[0].take(slots)), count)]


def _without_zeros(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(weights > 0.0, weights, np.inf)


def _lowest(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The places of the `count` lowest values, of all where there are no more."""
    return np.arange(values.size) if values.size <= count else np.argpartition(values, count - 1)[:count]
