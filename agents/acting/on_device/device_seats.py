"""Seats of games on a device: the policies on them, and the table from which starting episodes draw.

Shape letters: N games, S seats, A rows of the tables, one for each assignment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from league.agents.acting.policy import Policy
from league.agents.acting.seating import AssignmentLike

MIN_ASSIGNMENTS = 8
"""Rows of the tables at the start; they double when there are more assignments."""


class DeviceSeats:
    """Seats of N games. The tensors stay the same ones until `size` changes, so that a graph may hold them.

    Attributes:
      assignments: all that a game in flight holds or a starting episode may draw; policies: that they name.
      assignment_of: int64 [N], index in `assignments`.
      policy_of: int64 [N, S], index in `policies`. records: bool [N, S], seats that are recorded.
    """

    def __init__(self, num_envs: int, num_seats: int, *, device: torch.device) -> None:
        self._device = device
        self.assignments: list[AssignmentLike] = []
        self.policies: dict[str, Policy] = {}
        self.assignment_of = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self._shape = num_envs, num_seats
        self._resize(MIN_ASSIGNMENTS)

    @property
    def size(self) -> int:
        """A."""
        return len(self._bounds)

    def take_table(self, assignments: Sequence[AssignmentLike], policies: Mapping[str, Policy]) -> bool:
        """Append a table, after dropping assignments that no game in flight holds; returns whether games are."""
        live, inverse = np.unique(self.assignment_of.cpu().numpy(), return_inverse=True)
        kept = [self.assignments[index] for index in live] if self.assignments else []
        by_id = {**self.policies, **policies}
        self.assignments = [*kept, *assignments]
        names = dict.fromkeys(policy for assignment in self.assignments for policy in assignment.policies)
        if len(self.assignments) > self.size:
            self._resize(1 << (len(self.assignments) - 1).bit_length())
        self.policies = {name: by_id[name] for name in names}
        self._fill(first=len(kept))
        if kept:
            self.assignment_of.copy_(torch.from_numpy(inverse.astype(np.int64)))
            self._seat_policies()
        return bool(kept)

    def draw(self, starting: Tensor, uniforms: Tensor) -> None:
        """Assign starting episodes, bool [N], by the table of the present lease. uniforms: float32 [N]."""
        drawn = torch.searchsorted(self._bounds, uniforms, right=True)
        self.assignment_of.copy_(torch.where(starting, drawn, self.assignment_of))
        self._seat_policies()

    def _resize(self, size: int) -> None:
        seats = self._shape[1]
        self._policy_table = torch.zeros(size, seats, dtype=torch.int64, device=self._device)
        self._record_table = torch.zeros(size, seats, dtype=torch.bool, device=self._device)
        self._bounds = torch.zeros(size, device=self._device)
        self.policy_of = torch.zeros(self._shape, dtype=torch.int64, device=self._device)
        self.records = torch.zeros(self._shape, dtype=torch.bool, device=self._device)

    def _fill(self, *, first: int) -> None:
        """Write the tables. first: of the assignments from which new episodes draw; a number falls below its bound."""
        index_of = {policy: index for index, policy in enumerate(self.policies)}
        size = len(self.assignments)
        seated = [[index_of[policy] for policy in assignment.policies] for assignment in self.assignments]
        self._policy_table[:size] = torch.tensor(seated, dtype=torch.int64).to(self._device)
        records = [list(assignment.records) for assignment in self.assignments]
        self._record_table[:size] = torch.tensor(records, dtype=torch.bool).to(self._device)
        summed = np.cumsum([assignment.probability for assignment in self.assignments[first:]])
        bounds = np.full(self.size, np.inf, np.float32)
        bounds[:first], bounds[first : size - 1] = 0.0, summed[:-1] / summed[-1]
        self._bounds.copy_(torch.from_numpy(bounds))

    def _seat_policies(self) -> None:
        self.policy_of.copy_(self._policy_table[self.assignment_of])
        self.records.copy_(self._record_table[self.assignment_of])
