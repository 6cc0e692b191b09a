"""A perfect player for late positions of Connect Four: negamax on bitboards with a table, won, drawn or lost.

Source: Pons 2015, Solving Connect 4 (the layout of the bits, and the order of columns).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ROWS, COLS = 6, 7
ORDER = (3, 2, 4, 1, 5, 0, 6)
BOTTOM = sum(1 << (column * (ROWS + 1)) for column in range(COLS))
COLUMN = [((1 << ROWS) - 1) << (column * (ROWS + 1)) for column in range(COLS)]


class Solver:
    """Results, remembered by position."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], int] = {}

    def value(self, own: int, taken: int) -> int:
        """1 where the seat to move wins, 0 for a draw, -1 where it loses; nobody has four in a row yet."""
        return self._search(own, taken, -1, 1)

    def moves(self, own: int, taken: int) -> list[int | None]:
        """[A], the value of each column for the seat to move, None where it is full."""
        return [self._move(own, taken, column, -1, 1) for column in range(COLS)]

    def _move(self, own: int, taken: int, column: int, low: int, high: int) -> int | None:
        free = (taken + (BOTTOM & COLUMN[column])) & COLUMN[column]
        if not free:
            return None
        if has_four(own | free):
            return 1
        if (taken | free).bit_count() == ROWS * COLS:
            return 0
        return -self._search((taken | free) ^ (own | free), taken | free, -high, -low)

    def _search(self, own: int, taken: int, low: int, high: int) -> int:
        known = self._known.get((own, taken))
        if known is not None:
            return known
        free = [(taken + (BOTTOM & COLUMN[column])) & COLUMN[column] for column in ORDER]
        if any(place and has_four(own | place) for place in free):
            return 1
        other = own ^ taken
        threats = [place for place in free if place and has_four(other | place)]
        if len(threats) > 1:
            return -1
        best, start = -1, low
        for column, place in zip(ORDER, free, strict=True):
            if not place or (threats and place != threats[0]):
                continue
            value = self._move(own, taken, column, low, high)
            assert value is not None
            best, low = max(best, value), max(low, value)
            if low >= high:
                break
        if start < best < high or best == 1 or (start == -1 and best == -1):
            self._known[(own, taken)] = best
        return best


def has_four(stones: int) -> bool:
    """True if the stones hold a line."""
    for shift in (1, ROWS, ROWS + 1, ROWS + 2):
        pairs = stones & (stones >> shift)
        if pairs & (pairs >> (2 * shift)):
            return True
    return False


def bits_of(board: NDArray[np.bool_]) -> tuple[int, int]:
    """Own and all stones of an observation [2, 6, 7] whose first row is the top one."""
    planes = [
        sum(1 << (int(column) * (ROWS + 1) + ROWS - 1 - int(row)) for row, column in np.argwhere(plane))
        for plane in board
    ]
    return planes[0], planes[0] | planes[1]
