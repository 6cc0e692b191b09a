"""Warns where observations leave the Box that their game declared, once for each field.

Shape letters: K slots.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.envs.padding import corner
from league.envs.text.number_text import number_text

logger = logging.getLogger(__name__)

Bounds = tuple[NDArray[np.generic], NDArray[np.generic]]
"""Least and greatest numbers of a field, in its own shape and dtype."""

_TOLD: set[tuple[str, str]] = set()
"""Env id and field of the warnings of this process, which may make the same games many times."""


@dataclass(frozen=True)
class _Range:
    """The bounds of a field for some seats (None: all), whose rows they are in, and the narrowest interval of them."""

    seats: tuple[int, ...] | None
    bounds: Bounds
    low: float
    high: float


class DeclaredRanges:
    """Looks at the fields of every turn.

    Args:
      bounds: [S] of each seat: name -> bounds of the fields that are bounded.
    """

    def __init__(self, env_id: str, bounds: Sequence[Mapping[str, Bounds]]) -> None:
        self._env_id = env_id
        self._ranges: dict[str, list[_Range]] = {}
        for name in dict.fromkeys(name for own in bounds for name in own):
            if (env_id, name) not in _TOLD:
                self._ranges[name] = _ranges([own.get(name) for own in bounds])

    def look(self, fields: Mapping[str, NDArray[np.generic]], seat: NDArray[np.int64]) -> None:
        """Warn of numbers that are out of bounds. fields: name -> [K, ...]; seat: int64 [K]."""
        for name in list(self._ranges):
            values = fields.get(name)
            if values is None or not values.size:
                continue
            for one in self._ranges[name]:
                text = _outside(values, one, seat)
                if text:
                    _TOLD.add((self._env_id, name))
                    self._ranges.pop(name)
                    logger.warning("%s: observation %r %s; correct the space", self._env_id, name, text)
                    break


def _ranges(bounds: Sequence[Bounds | None]) -> list[_Range]:
    """The ranges of a field, seats with equal ones together."""
    found: list[tuple[Bounds, list[int]]] = []
    for seat, own in enumerate(bounds):
        if own is None:
            continue
        equal = [seats for (low, high), seats in found if _equal(low, own[0]) and _equal(high, own[1])]
        if equal:
            equal[0].append(seat)
        else:
            found.append((own, [seat]))
    return [
        _Range(None if len(seats) == len(bounds) else tuple(seats), own, float(own[0].max()), float(own[1].min()))
        for own, seats in found
    ]


def _equal(one: NDArray[np.generic], two: NDArray[np.generic]) -> bool:
    return one.shape == two.shape and np.array_equal(one, two)


def _outside(values: NDArray[np.generic], declared: _Range, seat: NDArray[np.int64]) -> str:
    """Text on numbers out of bounds; empty where there are none."""
    low, high = declared.bounds
    if declared.seats is not None:
        values = values[np.isin(seat, declared.seats)]
    if values.shape[1:] != low.shape:
        inner: tuple[slice, ...] = (slice(None), *corner(low.shape))
        values = values[inner]
    if not values.size or (values.min() >= declared.low and values.max() <= declared.high):
        return ""
    bad = np.argwhere((values < low) | (values > high))  # type: ignore[operator]
    if not bad.size:
        return ""
    place, own, at = tuple(int(number) for number in bad[0][1:]), values, ""
    if len(np.unique(low)) + len(np.unique(high)) > 2:
        own, at = values.reshape(len(values), -1)[:, np.ravel_multi_index(place, low.shape)], f" at {list(place)}"
    seen = f"{number_text(float(own.min()), 6)} to {number_text(float(own.max()), 6)}"
    return f"goes from {seen}{at}, its space says {low[place]:g} to {high[place]:g}"
