"""The sequence form of a small game: payoffs of realisation plans, and best replies by one pass over the endings.

A seat's plan gives each of its sequences (a decision and all before it) the probability that its own decisions get
there. The plan of a mixture is the mean of its members' plans, which makes the search among mixtures a convex one.

Shape letters: I information states, A actions, S seats, Z endings, M members, Q = 1 + I * A sequences. Sequence 0 is
that before any decision; information state i with action a is 1 + i * A + a.
Source: von Stengel 1996, Efficient computation of behavior strategies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from league.envs.decision_tree import Endings, InformationStates

Array = NDArray[np.float64]
START = 0
"""The sequence before a seat's first decision."""


class SequenceForm:
    """Payoffs and best replies of a game in which nobody forgets what it did or saw.

    Args:
      states: of all seats. endings: of the game.
    """

    def __init__(self, states: InformationStates, endings: Endings) -> None:
        num_states, num_actions = states.legal.shape
        self.num_seats = endings.returns.shape[1]
        self._num_actions = num_actions
        self._num_sequences = 1 + num_states * num_actions
        self._legal = states.legal
        self._parent = _sequence(states.parent, states.parent_action, num_actions)
        self._last = _sequence(endings.info_state, endings.action, num_actions)
        self._worth = endings.chance[:, None] * endings.returns
        self._levels = levels_of(states)
        self._levels += [[]] * (self.num_seats - len(self._levels))  # of seats that never act

    @property
    def is_zero_sum(self) -> bool:
        """True if what the seats earn together is the same at every ending, apart from rounding."""
        together = self._worth.sum(axis=1)
        return bool(np.abs(together).max(initial=0.0) <= 1e-9 * max(np.abs(self._worth).max(initial=0.0), 1e-300))

    def plans(self, tables: Array) -> Array:
        """Plans [M, Q] of behaviours [M, I, A]; every seat's sequences stand in one row."""
        plans = np.zeros((len(tables), self._num_sequences))
        plans[:, START] = 1.0
        rows = plans[:, 1:].reshape(tables.shape)
        for level in self._levels:
            for states in level:
                rows[:, states] = plans[:, self._parent[states], None] * tables[:, states]
        return plans

    def values(self, plan: Array) -> Array:
        """[S], what each seat earns when all play `plan`, [Q]."""
        earned: Array = self._worth.T @ plan[self._last].prod(axis=1)
        return earned

    def best_reply(self, plan: Array, seat: int) -> tuple[float, Array]:
        """The best reply of `seat` where the others play `plan`.

        Args:
          plan: [Q].
        Returns:
          what the reply earns, and its plan [Q], 0 for other seats.
        """
        reached = self._worth[:, seat].copy()
        for other in range(self.num_seats):
            if other != seat:
                reached *= plan[self._last[:, other]]
        worth = np.bincount(self._last[:, seat], weights=reached, minlength=self._num_sequences)
        choices: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        for states in reversed(self._levels[seat]):
            after = worth[1:].reshape(-1, self._num_actions)[states]
            best = np.where(self._legal[states], after, -np.inf).argmax(axis=1)
            np.add.at(worth, self._parent[states], after[np.arange(len(states)), best])
            choices.append((states, best))
        reply = np.zeros(self._num_sequences)
        reply[START] = 1.0
        for states, best in reversed(choices):
            reply[1 + states * self._num_actions + best] = reply[self._parent[states]]
        return float(worth[START]), reply

    def against_each(self, reply: Array, seat: int, plans: Array) -> Array:
        """[M], what `seat` earns with `reply`, [Q], while all other seats play one member's plan of [M, Q]."""
        own = np.flatnonzero(reply[self._last[:, seat]])
        weights = self._worth[own, seat] * reply[self._last[own, seat]]
        others = [other for other in range(self.num_seats) if other != seat]
        earned = [float(weights @ plan[self._last[own][:, others]].prod(axis=1)) for plan in plans]
        return np.array(earned)

    def pairwise_values(self, plans: Array) -> Array:
        """[M, M], what each plan of [M, Q] earns against each other in a game of two seats, as the mean of both."""
        first, second = (plans[:, self._last[:, seat]] for seat in (0, 1))
        as_first, as_second = ((first * self._worth[:, seat]) @ second.T for seat in (0, 1))
        values: Array = 0.5 * (as_first + as_second.T)
        return values

    def nash_conv(self, plan: Array) -> float:
        """Sum over the seats of the gain by a best reply, when all play `plan`, [Q]."""
        best = sum(self.best_reply(plan, seat)[0] for seat in range(self.num_seats))
        return float(best - self.values(plan).sum())


def _sequence(states: NDArray[np.int64], actions: NDArray[np.int64], num_actions: int) -> NDArray[np.int64]:
    return np.where(states < 0, START, 1 + states * num_actions + actions)


def levels_of(states: InformationStates) -> list[list[NDArray[np.int64]]]:
    """For each seat, its information states by the number of its decisions before."""
    depth = np.zeros(len(states.seat), np.int64)
    for index in np.flatnonzero(states.parent >= 0).tolist():  # a parent comes before its children
        depth[index] = depth[states.parent[index]] + 1
    seats: Sequence[int] = range(int(states.seat.max(initial=-1)) + 1)
    return [
        [np.flatnonzero((states.seat == seat) & (depth == level)) for level in range(int(depth.max(initial=-1)) + 1)]
        for seat in seats
    ]
