"""Mean and spread of each observed number under random play, which tell the small ones, and those far from 0.

Shape letters: K slots, R rows, D numbers in the last axis of a field.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from envs.protocol import ArraySpec, Turn

MAX_RANK, MAX_NUMBERS = 2, 256
"""Axes, and numbers in the last one, of fields that are looked at: vectors and sets of them, not pictures."""

MASK_ENDING = "_mask"
"""Of the name of a field that marks the present members of a set."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NumberSize:
    """Statistics of one observed number.

    whole: True if it was never anything but a whole number, as flags and counts are.
    """

    mean: float
    deviation: float
    low: float
    high: float
    whole: bool


class NumberSizes:
    """Collects the numbers of one field.

    Args:
      spec: of the field.
    """

    def __init__(self, spec: ArraySpec) -> None:
        self._size = spec.shape[-1] if spec.shape else 1
        self._looks = spec.dtype != "bool" and len(spec.shape) <= MAX_RANK and 0 < self._size <= MAX_NUMBERS
        self._count = 0
        self._first = np.zeros(self._size)
        self._sum, self._squares = np.zeros(self._size), np.zeros(self._size)
        self._low, self._high = np.full(self._size, np.inf), np.full(self._size, -np.inf)
        self._whole = np.ones(self._size, np.bool_)

    def note(self, name: str, turn: Turn) -> None:
        """The field of this name in one turn, without absent members of a set and rows that are not finite."""
        if not self._looks:
            return
        rows: Array = np.asarray(turn.obs[name], np.float64).reshape(-1, self._size)
        present = turn.obs.get(name + MASK_ENDING)
        if present is not None and present.size == len(rows):
            rows = rows[present.reshape(-1).astype(np.bool_)]
        rows = rows[np.isfinite(rows).all(axis=1)]
        if not len(rows):
            return
        if not self._count:
            self._first = rows[0].copy()
        self._count += len(rows)
        shifted = rows - self._first  # squares of the numbers themselves would lose small spreads beside large means
        self._sum += shifted.sum(axis=0)
        self._squares += np.square(shifted).sum(axis=0)
        self._low, self._high = np.minimum(self._low, rows.min(axis=0)), np.maximum(self._high, rows.max(axis=0))
        self._whole &= (rows == np.round(rows)).all(axis=0)

    def sizes(self) -> tuple[NumberSize, ...]:
        """[D]; empty where nothing was looked at."""
        if not self._count:
            return ()
        mean = self._sum / self._count
        deviation = np.sqrt(np.maximum(self._squares / self._count - np.square(mean), 0.0))
        columns = np.stack([mean + self._first, deviation, self._low, self._high], axis=1).tolist()
        return tuple(
            NumberSize(mean, deviation, low, high, whole=bool(whole))
            for (mean, deviation, low, high), whole in zip(columns, self._whole, strict=True)
        )
