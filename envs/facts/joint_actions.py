"""Measures whether seats that act at once must guess each other: the interaction of their actions in the reward.

The rewards of a seat are split as in an analysis of variance with two factors, its own action and another seat's. In
rock-paper-scissors the interaction is all that there is. In a pursuit, where rewards depend on where everybody stands,
it is nearly nothing.

Shape letters: G games with all seats acting, S seats.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import EnvSpec, Turn

MAX_TURNS = 20_000
"""Turns of single games that are looked at."""

MAX_SEATS, MAX_PAIRS = 4, 12
"""Seats whose rewards are looked at, and pairs of them with opponents."""

NOISE = 0.015
"""Largest standard deviation of the share under chance alone for which it counts as known."""


class JointActions:
    """Collects numbered actions that all seats of a game choose at once, and the rewards that follow.

    Args:
      spec: of the game.
    """

    def __init__(self, spec: EnvSpec) -> None:
        self._spec = spec
        owners, others = range(min(spec.num_seats, MAX_SEATS)), range(spec.num_seats)
        pairs = [(own, other) for other, own in product(others, owners) if spec.teams[own] != spec.teams[other]]
        self._pairs = pairs[:MAX_PAIRS]
        self._seats = sorted({seat for pair in self._pairs for seat in pair})
        self._actions: list[NDArray[np.int64]] = []
        self._rewards: list[NDArray[np.float64]] = []
        self._turns = 0
        self._games = np.zeros(0, np.int64)

    def decided(self, turn: Turn, actions: NDArray[np.generic], *, num_envs: int) -> None:
        """A turn and the actions that answer it; only games in which every seat acts are kept."""
        self._games = np.zeros(0, np.int64)
        if self._spec.actions.kind != "categorical" or not self._pairs or self._turns >= MAX_TURNS:
            return
        seats = self._spec.num_seats
        complete = np.bincount(turn.env_index, minlength=num_envs) == seats
        self._games = np.flatnonzero(complete)
        if self._games.size:
            chosen = np.zeros((num_envs, seats), np.int64)
            chosen[turn.env_index, turn.seat] = actions
            self._actions.append(chosen[self._games[:, None], self._seats])
            self._turns += self._games.size

    def stepped(self, turn: Turn) -> None:
        """The turn that the actions led to."""
        if self._games.size:
            self._rewards.append(turn.rewards[self._games[:, None], self._seats].astype(np.float64))

    def interaction(self) -> float | None:
        """Share of the variance of a seat's rewards that its and another seat's action explain only together.

        The largest over pairs of seats that play against each other. None where too few turns were seen to tell.
        """
        if not self._rewards:
            return None
        actions, rewards = np.concatenate(self._actions[: len(self._rewards)]), np.concatenate(self._rewards)
        columns = [(self._seats.index(own), self._seats.index(other)) for own, other in self._pairs]
        shares = [
            interaction_share(actions[:, own], actions[:, other], rewards[:, own])
            for own, other in columns
            if np.ptp(rewards[:, own]) > 0
        ]
        known = [share for share in shares if share is not None]
        return max(known) if known and len(known) == len(shares) else None


def interaction_share(own: NDArray[np.int64], other: NDArray[np.int64], rewards: NDArray[np.float64]) -> float | None:
    """Part of the variance of rewards that the interaction of two actions explains; None where noise would hide it.

    Args:
      own, other: int64 [G], the actions. rewards: float64 [G], not all the same.
    """
    _, own = np.unique(own, return_inverse=True)
    _, other = np.unique(other, return_inverse=True)
    num_other = int(other.max()) + 1
    cells = (int(own.max()) + 1) * num_other
    if math.sqrt(2 * cells) / rewards.size > NOISE:
        return None
    centred = rewards - rewards.mean()
    together = _explained(own * num_other + other, centred)
    alone = _explained(own, centred) + _explained(other, centred)
    return float(max(together - alone, 0.0) / centred.var())


def _explained(groups: NDArray[np.int64], values: NDArray[np.float64]) -> float:
    """Variance of the means of groups, without the part that chance brings: products of different values alone.

    Args:
      groups: int64 [G], each value's group. values: float64 [G] with mean 0.
    """
    counts = np.bincount(groups)
    sums, squares = np.bincount(groups, values), np.bincount(groups, values**2)
    several = counts > 1
    return float(((sums**2 - squares)[several] / (counts[several] - 1)).sum()) / values.size
