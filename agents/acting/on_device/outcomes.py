"""Counts ended episodes per assignment on a device, as `league.agents.acting.outcome_counter` does on the host.

Shape letters: N games, S seats, K teams, A assignments, O = K^K orders of the teams.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from league.agents.acting.outcome_counter import AssignmentTotals
from league.envs.placements import ROUNDING, has_placements, sides_of
from league.envs.protocol import EnvError

MAX_TEAMS = 4
"""An order of the teams is a number below K^K."""


class DeviceOutcomes:
    """Tables of counts with a row for each assignment. Args: teams: [S] team of each seat.

    Raises:
      EnvError: the game has more teams than an order is counted for.
    """

    def __init__(self, teams: Sequence[int], *, device: torch.device) -> None:
        order = sides_of(teams)
        if len(order) > MAX_TEAMS:
            raise EnvError(f"{len(order)} teams: games on a device count orders of at most {MAX_TEAMS}")
        self._teams, self._device = tuple(teams), device
        self._team_of = np.array([order.index(team) for team in teams], np.int64)
        members = (self._team_of[:, None] == np.arange(len(order))).astype(np.float64)
        self._is_member = torch.from_numpy(members).to(device)
        self._powers = torch.tensor([len(order) ** place for place in range(len(order))], device=device)
        self._num_orders = len(order) ** len(order)
        self.resize(0)

    def resize(self, num_assignments: int) -> None:
        """Begin with empty tables of so many assignments; the tensors are new ones."""
        self._orders = torch.zeros(num_assignments * self._num_orders, dtype=torch.int64, device=self._device)
        self._decisions = torch.zeros(num_assignments, dtype=torch.int64, device=self._device)
        self._returns = torch.zeros(num_assignments, len(self._teams), dtype=torch.float64, device=self._device)

    def add(self, assignment_of: Tensor, *, ended: Tensor, returns: Tensor, decisions: Tensor) -> None:
        """Count the episodes that ended, bool [N], with returns float32 [N, S] and decisions int64 [N].

        assignment_of: int64 [N].
        """
        own = returns.double()
        scale = own.abs().amax(dim=1)
        step = torch.where(scale > 0, scale * ROUNDING, 1.0)
        scores = (own @ self._is_member / step.unsqueeze(1)).round()  # sums that differ by rounding alone are equal
        ranks = (scores.unsqueeze(1) > scores.unsqueeze(2)).sum(dim=2)  # int64 [N, K], teams with a higher score
        number = (ranks * self._powers).sum(dim=1)
        self._orders.index_add_(0, assignment_of * self._num_orders + number, ended.long())
        self._decisions.index_add_(0, assignment_of, torch.where(ended, decisions, 0))
        self._returns.index_add_(0, assignment_of, torch.where(ended.unsqueeze(1), own, 0.0))

    def take(self, policies: Sequence[tuple[str, ...]]) -> tuple[AssignmentTotals, ...]:
        """Totals since the last call, sorted by policies; those of equal policies are one. The host waits for them.

        policies: [A], [S] policies of each assignment.
        """
        orders = self._orders.view(-1, self._num_orders).cpu().numpy().copy()
        decisions, returns = self._decisions.cpu().numpy().copy(), self._returns.cpu().numpy().copy()
        for table in (self._orders, self._decisions, self._returns):
            table.zero_()
        rows: dict[tuple[str, ...], list[int]] = {}
        for row, names in enumerate(policies):
            rows.setdefault(names, []).append(row)
        return tuple(
            self._totals(names, orders[own].sum(axis=0), int(decisions[own].sum()), returns[own].sum(axis=0))
            for names, own in sorted(rows.items())
            if orders[own].any()
        )

    def state(self) -> dict[str, Tensor]:
        """All that it holds, as the tensors that it changes in place."""
        return {"orders": self._orders, "decisions": self._decisions, "returns": self._returns}

    def _totals(
        self, policies: tuple[str, ...], orders: NDArray[np.int64], decisions: int, returns: NDArray[np.float64]
    ) -> AssignmentTotals:
        """Args: orders: int64 [O], games of each. returns: float64 [S], sums."""
        num_teams = len(self._powers)
        ranked = [  # the first team's rank varies fastest in the number of an order
            (ranks[::-1], int(games))
            for ranks, games in zip(itertools.product(range(num_teams), repeat=num_teams), orders, strict=True)
            if games
        ]
        wins, draws = np.zeros((num_teams, num_teams), np.int64), np.zeros((num_teams, num_teams), np.int64)
        for ranks, games in ranked:
            place = np.array(ranks)
            wins += games * (place[:, None] < place[None, :])
            draws += games * ((place[:, None] == place[None, :]) & ~np.eye(num_teams, dtype=np.bool_))
        between_seats = np.ix_(self._team_of, self._team_of)
        return AssignmentTotals(
            policies=policies,
            games=int(orders.sum()),
            decisions=decisions,
            truncated=0,
            wins=wins[between_seats],
            draws=draws[between_seats],
            return_sums=returns,
            placements=tuple(sorted(ranked)) if has_placements(self._teams) else (),
        )
