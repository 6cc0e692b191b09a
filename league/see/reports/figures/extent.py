"""Parts of long lists that a reader can see: which entries of how many a figure shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec
import numpy as np

T = TypeVar("T")


class OverTraining(Protocol):
    """A point of a curve over training."""

    @property
    def trained_steps(self) -> int: ...


P = TypeVar("P", bound=OverTraining)


class Extent(msgspec.Struct, frozen=True):
    """The entries that a figure shows.

    Fields:
      what: plural of what is counted. total: how many there are.
      offset: number of the first one shown, from 0. shown: how many are shown.
    """

    what: str
    total: int
    offset: int
    shown: int


def page_of(items: Sequence[T], *, what: str, offset: int, limit: int, most: int) -> tuple[Sequence[T], Extent]:
    """Some of the items, in order.

    Args:
      offset: first one; a number out of range is moved into it. limit: how many, from 1 to `most`.
    """
    first = min(max(offset, 0), max(len(items) - 1, 0))
    shown = items[first : first + min(max(limit, 1), most)]
    return shown, Extent(what, len(items), first, len(shown))


def thinned(points: Sequence[P], most: int) -> tuple[P, ...]:
    """The points over trained steps; of more than `most` evenly spread ones, the first and the last among them."""
    ordered = sorted(points, key=lambda point: point.trained_steps)
    return tuple(ordered[index] for index in spread(len(ordered), most))


def spread(count: int, most: int) -> list[int]:
    """Indices of at most `most` of `count` entries, evenly spread, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return [int(index) for index in np.unique(np.linspace(0, count - 1, most).round())]
