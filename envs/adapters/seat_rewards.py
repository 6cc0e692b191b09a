"""Rewards of games whose seats wait between their turns: since the last turn of each, and in the episode so far.

Shape letters: N games, S seats, K slots.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class SeatRewards:
    """float64 [N, S] twice. waiting: since the seat's last turn. total: in this episode."""

    waiting: NDArray[np.float64]
    total: NDArray[np.float64]

    @classmethod
    def nothing(cls, num_envs: int, num_seats: int) -> SeatRewards:
        """Those of games that have just begun."""
        return cls(np.zeros((num_envs, num_seats)), np.zeros((num_envs, num_seats)))

    def begin_turn(
        self, env: NDArray[np.int64], seat: NDArray[np.int64], *, ended: NDArray[np.bool_] | list[int]
    ) -> None:
        """Forget what was shown to the slots that have acted, and all of the episodes that ended.

        Only now: the turn that reported an end still had to show its rewards.
        """
        self.waiting[env, seat] = 0
        self.forget(ended)

    def forget(self, games: NDArray[np.bool_] | list[int] | int) -> None:
        """Begin the episodes of games."""
        self.waiting[games] = self.total[games] = 0

    def of(self, games: NDArray[np.int64], *, ended: NDArray[np.bool_] | list[int]) -> SeatRewards:
        """A copy of some games; those that ended have earned nothing yet."""
        over = np.zeros((len(self.total), 1), np.bool_)
        over[ended] = True
        return SeatRewards(np.where(over, 0.0, self.waiting)[games], np.where(over, 0.0, self.total)[games])
