"""Targets and errors of Q-learning over unrolls.

Shape letters: B rows, T unroll length, A actions.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

RESCALE_EPSILON = 1e-3


class NStep(NamedTuple):
    """The n steps after each decision.

    Fields:
      rewards: float32 [B, T], their discounted sum.
      discounts: float32 [B, T], of the value that follows them; 0 where the episode terminated before.
      ends: int64 [B, T], index in [1, T] of the observation whose value follows.
    """

    rewards: Tensor
    discounts: Tensor
    ends: Tensor


def n_step(rewards: Tensor, discounts: Tensor, *, valid: Tensor, steps: int) -> NStep:
    """Sum up to `steps` rewards after each decision.

    The sum ends early at the row's end, after a termination, and before the marker of a truncation, whose observation
    is the one to bootstrap from.

    Args:
      rewards: float32 [B, T]. discounts: float32 [B, T], gamma applied, 0 where the episode terminated.
      valid: bool [B, T], False for markers. At a marker itself the result means nothing.
    Source: Mnih et al. 2016, Asynchronous methods, section 4; Horgan et al. 2018, section 3.
    """
    length = rewards.shape[1]
    totals, scale = torch.zeros_like(rewards), torch.ones_like(rewards)
    going, count = torch.ones_like(valid), torch.zeros_like(rewards, dtype=torch.int64)
    for ahead in range(min(steps, length)):
        here = slice(0, length - ahead)
        going = going[:, here] & valid[:, ahead:]
        if ahead:
            going = going & (scale[:, here] != 0)
        totals[:, here] += torch.where(going, scale[:, here] * rewards[:, ahead:], 0.0)
        scale[:, here] = torch.where(going, scale[:, here] * discounts[:, ahead:], scale[:, here])
        count[:, here] += going
    places = torch.arange(length, device=rewards.device)
    return NStep(totals, scale, (places + count).clamp(min=1))


def bootstrapped(steps: NStep, values: Tensor) -> Tensor:
    """Targets float32 [B, T]. values: float32 [B, T], of the observations 1 to T."""
    following = values.gather(1, steps.ends - 1)
    return steps.rewards + torch.where(steps.discounts != 0, steps.discounts * following, 0.0)


def rescale(values: Tensor) -> Tensor:
    """h(x) = sign(x) (sqrt(|x| + 1) - 1) + eps x. Source: Pohlen et al. 2018, Observe and look further, section 3.2."""
    return values.sign() * ((values.abs() + 1.0).sqrt() - 1.0) + RESCALE_EPSILON * values


def unscale(values: Tensor) -> Tensor:
    """The inverse of `rescale`. Source: as there, proposition A.2."""
    root = (1.0 + 4.0 * RESCALE_EPSILON * (values.abs() + 1.0 + RESCALE_EPSILON)).sqrt()
    return values.sign() * (((root - 1.0) / (2.0 * RESCALE_EPSILON)).square() - 1.0)


def row_errors(errors: Tensor, learn: Tensor, *, max_share: float) -> Tensor:
    """Priority float32 [B] of each row: max_share times its largest absolute error plus the rest times their mean.

    Args:
      errors: float32 [B, T]. learn: bool [B, T], the decisions that count; a row without any has priority 0.
    Source: Kapturowski et al. 2019, Recurrent experience replay, section 2.3.
    """
    sizes = torch.where(learn, errors.detach().abs(), 0.0)
    mean = sizes.sum(1) / learn.sum(1).clamp(min=1)
    return max_share * sizes.amax(1) + (1.0 - max_share) * mean
