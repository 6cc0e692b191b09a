"""Games of stones in a line on a device: Connect Four and tic-tac-toe, as `league.envs.games.k_in_a_row`.

Shape letters: N games, C cells, O openings.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from league.agents.device_games.draws import Draws
from league.agents.device_games.game import DeviceTurn, alternating_turn, paid
from league.envs.games.k_in_a_row import StoneGame


class DeviceStones:
    """N games on bitboards of one int64 each, with a guard column so that no line wraps round.

    Args:
      source: the same game in numpy, of which each game stands at an opening.
      in_row: stones of a line, 3 or 4. drops: whether a stone falls to the lowest empty cell of its column.
    """

    def __init__(
        self, source: StoneGame, *, num_envs: int, device: torch.device, draws: Draws, in_row: int, drops: bool
    ) -> None:
        self.spec, self.num_envs = source.spec, num_envs
        _, self._rows, self._cols = source.spec.observations["board"].shape
        self._in_row, self._drops, self._draws = in_row, drops, draws
        places = (np.arange(self._rows)[:, None] * (self._cols + 1) + np.arange(self._cols)).ravel()
        self._places = torch.from_numpy(places).to(device)
        steps = [1, self._cols, self._cols + 1, self._cols + 2]
        self._steps = torch.tensor(steps, device=device).unsqueeze(1)
        saved = source.save()
        stones = np.stack([saved["own"], saved["other"]]).astype(np.int64)
        self._openings = torch.from_numpy(stones).to(device)  # [2, O]
        self._stones = torch.zeros(2, num_envs, dtype=torch.int64, device=device)  # of the seat to move, of the other

    def reset(self) -> DeviceTurn:
        self._stones.copy_(self._dealt())
        return self._turn(self._planes())

    def step(self, actions: Tensor) -> DeviceTurn:
        planes = self._planes()
        occupied = planes.sum(dim=1)  # int64 [N, C]
        cells = self._cells_of(actions, occupied)
        own = self._stones[0] | (1 << self._places[cells])
        plies = occupied.sum(dim=1) + 1
        won = self._has_line(own)
        ended = won | (plies == self._places.shape[0])
        rewards = paid(won.float(), seat=(plies - 1) & 1, ended=ended)
        after = torch.stack([self._stones[1], own])
        self._stones.copy_(torch.where(ended, self._dealt(), after))
        return self._turn(self._planes(), rewards, ended)

    def state(self) -> dict[str, Tensor]:
        return {"stones": self._stones}

    def _dealt(self) -> Tensor:
        """An opening for each game, int64 [2, N]."""
        if self._openings.shape[1] == 1:
            return self._openings.expand(2, self.num_envs)
        return self._openings[:, self._draws.below(self._openings.shape[1], self.num_envs)]

    def _cells_of(self, actions: Tensor, occupied: Tensor) -> Tensor:
        if not self._drops:
            return actions
        heights = occupied.view(-1, self._rows, self._cols).sum(dim=1).gather(1, actions.unsqueeze(1)).squeeze(1)
        return (self._rows - 1 - heights) * self._cols + actions

    def _has_line(self, stones: Tensor) -> Tensor:
        """bool [N]."""
        pairs = (stones >> self._steps) & stones  # [4, N]
        longer = pairs >> 2 * self._steps if self._in_row == 4 else stones >> 2 * self._steps
        return (pairs & longer).any(dim=0)

    def _planes(self) -> Tensor:
        """int64 [N, 2, C], 1 where the seat to move, and where the other, has a stone."""
        return (self._stones.t().unsqueeze(2) >> self._places) & 1

    def _turn(self, planes: Tensor, rewards: Tensor | None = None, ended: Tensor | None = None) -> DeviceTurn:
        board = planes.bool().view(-1, 2, self._rows, self._cols)
        taken = board[:, 0] | board[:, 1]
        legal = ~taken[:, 0] if self._drops else ~taken.flatten(1)  # a column has room while its top cell is empty
        seat = planes.sum(dim=(1, 2)) & 1
        return alternating_turn(seat, obs={"board": board}, action_mask=legal, rewards=rewards, terminated=ended)


def connect_four(source: StoneGame, *, num_envs: int, device: torch.device, draws: Draws) -> DeviceStones:
    """N games of Connect Four."""
    return DeviceStones(source, num_envs=num_envs, device=device, draws=draws, in_row=4, drops=True)


def tic_tac_toe(source: StoneGame, *, num_envs: int, device: torch.device, draws: Draws) -> DeviceStones:
    """N games of tic-tac-toe."""
    return DeviceStones(source, num_envs=num_envs, device=device, draws=draws, in_row=3, drops=False)
