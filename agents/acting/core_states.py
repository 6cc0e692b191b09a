"""The core states of an arena's seats.

Shape letters: R rows, one for each game and seat; K slots of one turn, C core state size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.policy import CoreRows


class CoreStates:
    """Core states by row. Args: table: see `CoreRows`.

    Attributes:
      states: float32 [R, C], 0 at the start of an episode.
    """

    def __init__(self, num_rows: int, size: int, *, table: int) -> None:
        self.states = np.zeros((num_rows, size), np.float32)
        self._given = np.ones(num_rows, np.bool_)
        self._table = table

    def places(
        self, rows: NDArray[np.int64], wanted: Callable[[NDArray[np.int64]], NDArray[np.bool_]]
    ) -> CoreRows | None:
        """Where rows keep their states, for policies that keep them themselves; None without any state.

        wanted: rows -> bool [K], see `CoreRows.wanted`.
        """
        if not self.states.shape[1]:
            return None
        return CoreRows(self._table, rows, self._given[rows], wanted(rows))

    def put(self, rows: NDArray[np.int64], after: NDArray[np.float32]) -> None:
        """Take states [K, C'] after the rows' decisions, C' at most C."""
        if self.states.shape[1]:
            self.states[rows, : after.shape[1]] = after
            self._given[rows] = False

    def clear(self, rows: NDArray[np.int64]) -> None:
        """Forget: another episode begins for these rows."""
        self.states[rows], self._given[rows] = 0.0, True

    def load(self, states: NDArray[np.generic]) -> None:
        """Take the states of all rows."""
        self.states[...] = states
        self._given[:] = True
