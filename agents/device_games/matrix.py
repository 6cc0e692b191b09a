"""Matrix games on a device, as `league.envs.games.matrix` and `league.envs.games.normal_form`.

Shape letters: N games, S seats, K = N S slots, A actions.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from league.agents.device_games.draws import Draws
from league.agents.device_games.game import DeviceTurn
from league.envs.games.matrix import MatrixGame
from league.envs.games.normal_form import NormalFormGame


class DeviceTable:
    """N games in which all seats choose at once, for one or several rounds.

    Args:
      source: the same game in numpy.
      shown: float32 [rounds, S, ...], what a seat sees in each round beside the last choices.
      choices_at: entry of the observation at which the last choices begin, one-hot; None if they are not shown.
    """

    def __init__(
        self,
        source: MatrixGame | NormalFormGame,
        *,
        num_envs: int,
        device: torch.device,
        shown: Tensor,
        choices_at: int | None,
        action_mask: Tensor | None,
    ) -> None:
        self.spec, self.num_envs = source.spec, num_envs
        self._seats, self._rounds = source.spec.num_seats, source.rounds
        # A sum that begins with -0.0 keeps the sign of a payoff of -0.0, as one-shot games in numpy do.
        self._nothing = -0.0 if isinstance(source, NormalFormGame) else 0.0
        table = torch.from_numpy(source.payoffs)
        self._sizes = table.shape[:-1]
        self._payoffs = table.reshape(-1, self._seats).to(device)
        (self._field,) = source.spec.observations
        self._shown, self._choices_at = shown.to(device), choices_at
        self._mask = None if action_mask is None else action_mask.to(device).repeat(num_envs, 1)
        self._rows = torch.arange(num_envs * self._seats, device=device)
        self._round = torch.zeros(1, dtype=torch.int64, device=device)  # all games are in the same round
        self._last = torch.zeros(num_envs, self._seats, dtype=torch.int64, device=device)
        self._earned = torch.zeros(num_envs, self._seats, device=device)

    def reset(self) -> DeviceTurn:
        self._round.zero_()
        self._earned.fill_(self._nothing)
        return self._turn(torch.zeros_like(self._earned), self._round > 0)

    def step(self, actions: Tensor) -> DeviceTurn:
        chosen = actions.view(self.num_envs, self._seats)
        entry = chosen[:, 0]
        for seat in range(1, self._seats):
            entry = entry * self._sizes[seat] + chosen[:, seat]
        rewards = self._payoffs[entry]
        self._last.copy_(chosen)
        self._earned.add_(rewards)
        self._round.copy_((self._round + 1) % self._rounds)
        turn = self._turn(rewards, self._round == 0)
        self._earned.copy_(torch.where(self._round == 0, self._nothing, self._earned))
        return turn

    def state(self) -> dict[str, Tensor]:
        return {"round": self._round, "last": self._last, "earned": self._earned}

    def _turn(self, rewards: Tensor, ended: Tensor) -> DeviceTurn:
        """The turn. Args: ended: bool [1], whether every game has."""
        return DeviceTurn(
            rows=self._rows,
            obs={self._field: self._observed()},
            action_mask=self._mask,
            rewards=rewards,
            terminated=ended.expand(self.num_envs),
            returns=torch.where(ended, self._earned, 0.0),
        )

    def _observed(self) -> Tensor:
        """float32 [K, ...]."""
        seen = self._shown[self._round].expand(self.num_envs, -1, -1).flatten(0, 1)
        if self._choices_at is None:
            return seen
        both = torch.stack([self._last, self._last.flip(1)], dim=2).flatten(0, 1)  # int64 [K, 2], its own comes first
        places = torch.arange(self.spec.actions.num_actions, device=both.device)
        choices = (both.unsqueeze(2) == places).flatten(1) & (self._round > 0)
        start = self._choices_at
        return torch.cat([seen[:, :start], choices.float(), seen[:, start + choices.shape[1] :]], dim=1)


def matrix_game(source: MatrixGame, *, num_envs: int, device: torch.device, draws: Draws) -> DeviceTable:
    """N games of two seats; nothing in them is random."""
    del draws
    rounds, width = source.rounds, source.spec.observations["state"].shape[0]
    shown = np.zeros((rounds, 2, width), np.float32)
    shown[:, :, 0] = 1.0 if rounds == 1 else (np.arange(rounds) / rounds)[:, None]
    num_actions = source.spec.actions.num_actions
    if width > (1 if rounds == 1 else 1 + 2 * num_actions):  # the seats differ, and see who they are
        shown[:, [0, 1], [width - 2, width - 1]] = 1.0
    counts = np.array(source.payoffs.shape[:2])
    legal = torch.from_numpy(np.arange(num_actions) < counts[:, None]) if source.spec.has_mask else None
    return DeviceTable(
        source,
        num_envs=num_envs,
        device=device,
        shown=torch.from_numpy(shown),
        choices_at=None if rounds == 1 else 1,
        action_mask=legal,
    )


def normal_form(source: NormalFormGame, *, num_envs: int, device: torch.device, draws: Draws) -> DeviceTable:
    """N one-shot games of any number of seats; nothing in them is random."""
    del draws
    shown = torch.eye(source.spec.num_seats).unsqueeze(0)
    return DeviceTable(source, num_envs=num_envs, device=device, shown=shown, choices_at=None, action_mask=None)
