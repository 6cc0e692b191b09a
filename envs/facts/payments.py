"""Rewards before the end of an episode: whether there are any, and those of turns in which all seats act.

Shape letters: N games at once, R rewards that are kept, S seats.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import Turn

MAX_REWARDS = 500
"""Rewards of turns that are kept until enough episodes have ended."""


class Payments:
    """Follows N games.

    Attributes:
      are_early: whether somebody was paid before the end of an episode.
      gaps: [R] turns since the game last paid.
    """

    def __init__(self, *, num_envs: int) -> None:
        self.are_early = False
        self.gaps: list[int] = []
        self._rewards: list[NDArray[np.float64]] = []
        self.restart(num_envs=num_envs)

    def restart(self, *, num_envs: int) -> None:
        """Begin with other games; what was seen stays."""
        self._unpaid = np.zeros(num_envs, np.int64)

    def rewards(self, num_seats: int) -> NDArray[np.float64]:
        """float64 [R, S]."""
        return np.array(self._rewards).reshape(-1, num_seats)

    def stepped(self, turn: Turn, *, keep: bool) -> None:
        """The turn that the actions led to. keep: its rewards, while there is room."""
        going = ~turn.ended[turn.env_index]
        rows = turn.env_index[going], turn.seat[going]
        self.are_early = self.are_early or bool(np.any(turn.rewards[rows] != 0.0))
        self._unpaid += 1
        paid = np.flatnonzero(turn.rewards.any(axis=1))
        if keep and len(self._rewards) < MAX_REWARDS:
            self._rewards.extend(turn.rewards[paid].astype(np.float64))
            self.gaps.extend(self._unpaid[paid].tolist())
        self._unpaid[paid] = 0
        self._unpaid[turn.ended] = 0
