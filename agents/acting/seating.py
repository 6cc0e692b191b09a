"""The policies in the seats of an arena's games: tables of assignments, and the one that each game is played under.

Shape letters: N games, S seats, K slots that act in one turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.outcome_counter import OutcomeCounter
from league.agents.acting.policy import Policy
from league.agents.acting.turn_policies import TurnPolicies
from league.envs.protocol import Turn


class AssignmentLike(Protocol):
    """One way to fill the seats: [S] policy ids, [S] flags of recorded seats, probability among new episodes."""

    @property
    def policies(self) -> tuple[str, ...]: ...
    @property
    def records(self) -> tuple[bool, ...]: ...
    @property
    def probability(self) -> float: ...


class SeatTable:
    """The policies of every seat. Games in flight keep their assignment and its policies when the next table comes.

    Args:
      one_seat: record one seat of each game: where an assignment records several, each in turn over the games.

    Attributes:
      policies: everybody who may act, in the order of `holders`.
      assignment_of: int64 [N], index into `assignments`; -1 before the first episode.
    """

    def __init__(self, num_envs: int, num_seats: int, counter: OutcomeCounter, *, one_seat: bool = False) -> None:
        self._one_seat = one_seat
        self._counter = counter
        self._everyone = np.arange(num_envs)
        self.assignments: tuple[AssignmentLike, ...] = ()
        self.assignment_of = np.full(num_envs, -1, np.int64)
        self.policies = TurnPolicies([])
        self._by_id: dict[str, Policy] = {}
        self._policy_of = np.zeros((num_envs, num_seats), np.int64)
        self._records = np.zeros((num_envs, num_seats), np.bool_)
        # of every assignment: its policies, its recorded seats, and its place in the counter
        self._policy_table = np.zeros((0, num_seats), np.int64)
        self._record_table = np.zeros((0, num_seats), np.bool_)
        self._counter_of = np.zeros(0, np.int64)
        self._first, self._cumulated = 0, np.zeros(0)  # the newest table begins here

    def take_table(self, table: Sequence[AssignmentLike], policies: Mapping[str, Policy]) -> None:
        """Draw from this table from now on; assignments that no game in flight holds are dropped."""
        live, inverse = np.unique(self.assignment_of, return_inverse=True)
        kept = [int(index) for index in live if index >= 0]
        if kept:
            self.assignment_of = inverse.astype(np.int64)
        held = tuple(self.assignments[index] for index in kept)
        self.assignments, self._first = (*held, *table), len(held)
        self._cumulated = np.cumsum([assignment.probability for assignment in table])
        names = dict.fromkeys(policy for assignment in self.assignments for policy in assignment.policies)
        by_id = {**self._by_id, **policies}
        self._by_id = {name: by_id[name] for name in names}
        self.policies = TurnPolicies(list(self._by_id.values()))
        index_of = {name: index for index, name in enumerate(self._by_id)}
        self._policy_table = np.array([[index_of[p] for p in row.policies] for row in self.assignments], np.int64)
        self._record_table = np.array([row.records for row in self.assignments], np.bool_)
        self._counter_of = np.array([self._counter.index_of(row.policies) for row in self.assignments], np.int64)
        if kept:
            self._seat(self._everyone, self.assignment_of)

    def draw(self, envs: NDArray[np.int64], rng: np.random.Generator) -> None:
        """Assign starting episodes by the newest table."""
        drawn = np.searchsorted(self._cumulated, rng.random(len(envs)) * self._cumulated[-1], side="right")
        self._seat(envs, self._first + np.minimum(drawn, len(self._cumulated) - 1))

    def load(self, assignment_of: NDArray[np.int64]) -> None:
        """Seat every game as saved, under the table that was just taken."""
        self._seat(self._everyone, assignment_of)

    def holders(self, turn: Turn) -> NDArray[np.int64]:
        """int64 [K], index of the policy of each slot."""
        return self._policy_of[turn.env_index, turn.seat]

    def recorded_slots(self, turn: Turn) -> NDArray[np.int64]:
        """Positions in the turn of the slots that are recorded."""
        return np.flatnonzero(self._records[turn.env_index, turn.seat])

    def recorded_seats(self) -> NDArray[np.int64]:
        """int64 [N], the first recorded seat of each game."""
        seats: NDArray[np.int64] = self._records.argmax(axis=1)
        return seats

    def recorded(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those rows (game * S + seat) that are recorded."""
        return rows[self._records.reshape(-1)[rows]]

    def counter_index(self, envs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Index in the counter of the games' assignments."""
        return self._counter_of[self.assignment_of[envs]]

    def _seat(self, envs: NDArray[np.int64], assignment_of: NDArray[np.int64]) -> None:
        self.assignment_of[envs] = assignment_of
        self._policy_of[envs] = self._policy_table[assignment_of]
        self._records[envs] = self._record_table[assignment_of]
        if self._one_seat:
            recorded = self._records[envs]
            turn_of = envs % np.maximum(recorded.sum(axis=1), 1)
            self._records[envs] = recorded & (recorded.cumsum(axis=1) - 1 == turn_of[:, None])
