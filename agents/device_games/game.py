"""The contract of a game on a device: the games of `league.envs.protocol` as tensors whose shapes never change.

Shape letters: N games, S seats, K slots that act in each turn, A actions. Row of a slot = game * S + seat.

Nothing here waits for the device, and no shape depends on a number in its memory, so that a GPU can replay a whole step
as one graph. So K is a constant of the game, and an action is taken as legal without a look at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from league.envs.protocol import EnvSpec


@dataclass(frozen=True)
class DeviceTurn:
    """The slots that must act now and the results of the last step; see `league.envs.protocol.Turn`.

    Fields:
      rows: int64 [K], sorted.
      obs: name -> [K, ...] of the dtype in the spec.
      action_mask: bool [K, A]; None if the game has no mask.
      rewards: float32 [N, S], earned by each seat since its own last turn.
      terminated: bool [N], the episode ended in this step; these games have no time limits.
      returns: float32 [N, S], of the episode that ended in this step, else 0.
    """

    rows: Tensor
    obs: Mapping[str, Tensor]
    action_mask: Tensor | None
    rewards: Tensor
    terminated: Tensor
    returns: Tensor

    def tensors(self) -> list[Tensor]:
        """Every tensor, in an order that is the same for all turns of a game."""
        mask = [] if self.action_mask is None else [self.action_mask]
        return [self.rows, *self.obs.values(), *mask, self.rewards, self.terminated, self.returns]


class DeviceGame(Protocol):
    """N games stepped together; an ended game restarts in the same step."""

    spec: EnvSpec
    num_envs: int

    def reset(self) -> DeviceTurn:
        """Restart every game."""
        ...

    def step(self, actions: Tensor) -> DeviceTurn:
        """Apply a legal action, int64 [K], to each slot of the last turn."""
        ...

    def state(self) -> dict[str, Tensor]:
        """All that the games hold, as the tensors that `step` changes in place."""
        ...


def alternating_turn(
    seat: Tensor,
    *,
    obs: Mapping[str, Tensor],
    action_mask: Tensor,
    rewards: Tensor | None = None,
    terminated: Tensor | None = None,
) -> DeviceTurn:
    """The turn of games of two seats of which one acts and which pay at their end alone.

    Args:
      seat: int64 [N], that acts. rewards, terminated: of the last step; None if there was none.
    """
    count = seat.shape[0]
    if rewards is None or terminated is None:
        rewards = torch.zeros(count, 2, device=seat.device)
        terminated = torch.zeros(count, dtype=torch.bool, device=seat.device)
    rows = torch.arange(count, device=seat.device) * 2 + seat
    return DeviceTurn(rows, obs, action_mask, rewards, terminated, rewards)


def paid(gain: Tensor, *, seat: Tensor, ended: Tensor) -> Tensor:
    """Rewards float32 [N, 2] of games that ended, bool [N]: `seat`, int64 [N], gains `gain` [N], the other loses it.

    The loss of nothing is -0.0 in float32, as in numpy.
    """
    gain, loss = torch.where(ended, gain, 0), torch.where(ended, -gain, 0)
    is_first = seat == 0
    return torch.stack([torch.where(is_first, gain, loss), torch.where(is_first, loss, gain)], dim=1).float()
