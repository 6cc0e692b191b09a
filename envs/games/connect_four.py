"""Connect Four: drop a stone into one of seven columns; four in a line win, a full board is a draw.

Observation "board": bool [2, 6, 7], plane 0 for the seat to move, plane 1 for the other seat; row 0 is the top row.
Action: the column. Reward at the end: +1 for the winner, -1 for the loser, 0 for a draw.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.envs.games.k_in_a_row import Openings, StoneGame

ROWS, COLS = 6, 7


class ConnectFour(StoneGame):
    """N games of Connect Four."""

    def __init__(self, *, num_envs: int, opening_plies: Openings = 0) -> None:
        """opening_plies: uniformly random legal plies at each start, or the least and the most; they end no game."""
        super().__init__(
            env_id="connect_four",
            num_envs=num_envs,
            rows=ROWS,
            cols=COLS,
            in_row=4,
            num_actions=COLS,
            opening_plies=opening_plies,
        )
        self._heights = np.zeros((num_envs, COLS), np.int64)

    def _fill(self, actions: NDArray[np.int64], action_at: NDArray[np.int64]) -> NDArray[np.int64]:
        heights = self._heights.reshape(-1)
        height = heights.take(action_at)
        heights[action_at] = height + 1
        self._mask.reshape(-1)[action_at] = height < ROWS - 1
        return (ROWS - 1 - height) * COLS + actions

    def _keep(self, games: NDArray[np.int64]) -> None:
        super()._keep(games)
        self._heights = self._heights[games]

    def _allow(self, games: NDArray[np.int64], occupied: NDArray[np.bool_]) -> None:
        heights = occupied.view(np.int8).reshape(games.size, ROWS, COLS).sum(axis=1, dtype=np.int64)
        self._heights[games] = heights
        self._mask[games] = heights < ROWS

    def _allow_all(self, games: NDArray[np.int64]) -> None:
        super()._allow_all(games)
        self._heights[games] = 0

    def plain(self, num_envs: int) -> ConnectFour:
        return ConnectFour(num_envs=num_envs)
