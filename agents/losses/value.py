"""Value losses: squared error, and PPO's clipped form. T unroll length, B batch. Sums over valid steps."""

from __future__ import annotations

import torch
from torch import Tensor

from league.agents.losses.policy import zero_invalid
from league.agents.losses.shapes import check_time_major


def value_loss(values: Tensor, targets: Tensor, *, valid: Tensor | None = None) -> Tensor:
    """Half the summed squared error, a scalar; the gradient goes through the values alone.

    Args:
      values: float [T, B]; carries the gradient.
      targets: float [T, B]; taken as constants.
      valid: bool [T, B], None when every step is valid.
    Raises:
      ValueError: shapes disagree.
    """
    check_time_major(values, targets=targets, valid=valid)
    return 0.5 * zero_invalid(values - targets.detach(), valid).square().sum()


def clipped_value_loss(
    values: Tensor, old_values: Tensor, targets: Tensor, *, clip: float, valid: Tensor | None = None
) -> Tensor:
    """Half the sum of the larger of two squared errors: of the value, and of the value clipped around its old one.

    Args:
      values: float [T, B]; carries the gradient.
      old_values: float [T, B], before the first pass over this batch; taken as constants.
      targets: float [T, B]; taken as constants.
      clip: largest distance of a value from its old one, in units of the return.
      valid: bool [T, B], None when every step is valid.
    Raises:
      ValueError: shapes disagree.
    Source: Huang et al. 2022, The 37 implementation details of proximal policy optimisation, detail 9.
    """
    check_time_major(values, old_values=old_values, targets=targets, valid=valid)
    old_values, targets = old_values.detach(), targets.detach()
    held = old_values + (values - old_values).clamp(-clip, clip)
    free_errors, held_errors = zero_invalid(values - targets, valid), zero_invalid(held - targets, valid)
    return 0.5 * torch.maximum(free_errors.square(), held_errors.square()).sum()
