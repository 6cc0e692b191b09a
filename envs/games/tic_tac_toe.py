"""Tic-tac-toe: mark one of nine cells; three in a line win, a full board is a draw.

Observation "board": bool [2, 3, 3], plane 0 the marks of the seat to move, plane 1 the other's. Action: the cell, row
by row from the top left. Reward at the end: +1 for the winner, -1 for the loser, 0 for a draw.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.envs.games.k_in_a_row import Openings, StoneGame

SIDE = 3


class TicTacToe(StoneGame):
    """N games of tic-tac-toe."""

    def __init__(self, *, num_envs: int, opening_plies: Openings = 0) -> None:
        """opening_plies: uniformly random legal plies at each start, or the least and the most; they end no game."""
        super().__init__(
            env_id="tic_tac_toe",
            num_envs=num_envs,
            rows=SIDE,
            cols=SIDE,
            in_row=3,
            num_actions=SIDE * SIDE,
            opening_plies=opening_plies,
        )

    def _fill(self, actions: NDArray[np.int64], action_at: NDArray[np.int64]) -> NDArray[np.int64]:
        self._mask.reshape(-1)[action_at] = False
        return actions

    def _allow(self, games: NDArray[np.int64], occupied: NDArray[np.bool_]) -> None:
        self._mask[games] = ~occupied

    def plain(self, num_envs: int) -> TicTacToe:
        return TicTacToe(num_envs=num_envs)
