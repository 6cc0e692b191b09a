"""Mean and spread of each observed number under random play, which tell the small ones, and those far from 0.

Seats of different groups have numbers of their own under the same names, see `EnvSpec.seat_groups`.

Shape letters: K slots, R rows, D numbers in the last axis of a field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.envs.padding import corner
from league.envs.protocol import MASK_ENDING, SEAT_GROUP, ArraySpec, EnvSpec, Turn, field_label

MAX_RANK, MAX_NUMBERS = 2, 256
"""Axes, and numbers in the last one, of fields that are looked at: vectors and sets of them, not pictures."""

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
    """Collects the numbers of a game's fields, flags and pictures left out.

    Args:
      spec: of the game.
    """

    def __init__(self, spec: EnvSpec) -> None:
        everyone = [(None, "", spec.observations)]
        groups = [(index, group.name, group.observations) for index, group in enumerate(spec.seat_groups)]
        self._fields = [
            (index, name, field.shape, field_label(name, group=group), _Moments(field))
            for index, group, fields in groups or everyone
            for name, field in fields.items()
            if name != SEAT_GROUP and field.dtype != "bool" and len(field.shape) <= MAX_RANK
            if 0 < _last_axis(field) <= MAX_NUMBERS
        ]

    def note(self, turn: Turn) -> None:
        """One turn; absent members of a set, and rows with numbers that are not finite, are left out."""
        for group, name, shape, _, moments in self._fields:
            numbers, present = turn.obs[name], turn.obs.get(name + MASK_ENDING)
            if group is not None:
                own = turn.obs[SEAT_GROUP][:, group].astype(np.bool_)
                numbers = numbers[own][(slice(None), *corner(shape))]
                present = None if present is None else present[own][(slice(None), *corner(shape[:-1]))]
            moments.add(numbers, present)

    def sizes(self) -> Mapping[str, tuple[NumberSize, ...]]:
        """Label of a field, see `field_label` -> [D] for the places of its last axis."""
        return {label: moments.sizes() for *_, label, moments in self._fields if moments.count}


class _Moments:
    """Running sums over the rows of one field."""

    def __init__(self, field: ArraySpec) -> None:
        size = _last_axis(field)
        self.count = 0
        self._first = np.zeros(size)
        self._sum, self._squares = np.zeros(size), np.zeros(size)
        self._low, self._high = np.full(size, np.inf), np.full(size, -np.inf)
        self._whole = np.ones(size, np.bool_)

    def add(self, numbers: NDArray[np.generic], present: NDArray[np.generic] | None) -> None:
        """The field of some slots, and a flag for each member of a set."""
        rows: Array = np.asarray(numbers, np.float64).reshape(-1, len(self._sum))
        if present is not None and present.size == len(rows):
            rows = rows[present.reshape(-1).astype(np.bool_)]
        rows = rows[np.isfinite(rows).all(axis=1)]
        if not len(rows):
            return
        if not self.count:
            self._first = rows[0].copy()
        self.count += len(rows)
        shifted = rows - self._first  # squares of the numbers themselves would lose small spreads beside large means
        self._sum += shifted.sum(axis=0)
        self._squares += np.square(shifted).sum(axis=0)
        self._low, self._high = np.minimum(self._low, rows.min(axis=0)), np.maximum(self._high, rows.max(axis=0))
        self._whole &= (rows == np.round(rows)).all(axis=0)

    def sizes(self) -> tuple[NumberSize, ...]:
        """[D], of at least one row."""
        mean = self._sum / self.count
        deviation = np.sqrt(np.maximum(self._squares / self.count - np.square(mean), 0.0))
        columns = np.stack([mean + self._first, deviation, self._low, self._high], axis=1).tolist()
        return tuple(
            NumberSize(mean, deviation, low, high, whole=bool(whole))
            for (mean, deviation, low, high), whole in zip(columns, self._whole, strict=True)
        )


def _last_axis(field: ArraySpec) -> int:
    return field.shape[-1] if field.shape else 1
