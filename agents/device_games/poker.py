"""Two-seat poker on a device: N games step through the tables of `league.envs.games.poker`.

Shape letters: N games, H betting situations, D deals, A actions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from league.agents.device_games.draws import Draws
from league.agents.device_games.game import DeviceTurn, alternating_turn, paid
from league.envs.games.poker import FIELD, PokerGame


class DevicePoker:
    """N games over one betting tree. Args: source: the same game in numpy."""

    def __init__(self, source: PokerGame, *, num_envs: int, device: torch.device, draws: Draws) -> None:
        self.spec, self.num_envs, self._draws = source.spec, num_envs, draws
        tree = source.tree
        self._num_deals, self._num_actions = tree.observed.shape[1], tree.child.shape[1]
        self._child = torch.from_numpy(tree.child.reshape(-1)).to(device)
        self._payoffs = torch.from_numpy(tree.payoffs.reshape(-1)).to(device)
        self._observed = torch.from_numpy(tree.observed.reshape(-1, tree.observed.shape[2])).to(device)
        self._legal = torch.from_numpy(tree.legal).to(device)
        self._seat = torch.from_numpy(tree.seat).to(device)
        self._situation = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self._deal = torch.zeros(num_envs, dtype=torch.int64, device=device)

    def reset(self) -> DeviceTurn:
        self._situation.zero_()
        self._deal.copy_(self._draws.below(self._num_deals, self.num_envs))
        return self._turn()

    def step(self, actions: Tensor) -> DeviceTurn:
        after = self._child[self._situation * self._num_actions + actions]
        ended = after < 0
        ending = (-1 - after).clamp(min=0)
        chips = self._payoffs[ending * self._num_deals + self._deal]
        self._situation.copy_(torch.where(ended, 0, after))
        self._deal.copy_(torch.where(ended, self._draws.below(self._num_deals, self.num_envs), self._deal))
        return self._turn(paid(chips, seat=torch.zeros_like(after), ended=ended), ended)

    def state(self) -> dict[str, Tensor]:
        return {"situation": self._situation, "deal": self._deal}

    def _turn(self, rewards: Tensor | None = None, ended: Tensor | None = None) -> DeviceTurn:
        return alternating_turn(
            self._seat[self._situation],
            obs={FIELD: self._observed[self._situation * self._num_deals + self._deal]},
            action_mask=self._legal[self._situation],
            rewards=rewards,
            terminated=ended,
        )
