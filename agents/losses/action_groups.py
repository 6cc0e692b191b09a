"""Actions made of several parts: ratios clipped per group of parts instead of over their product.

H heads (parts of one action), G groups, T unroll length, B batch. The ratio of a whole structured action is a product
of many factors, and one clip over it would cut nearly every trace.
"""

from __future__ import annotations

import torch
from torch import Tensor

from agents.losses.policy import policy_gradient_loss
from agents.losses.vtrace import VTraceReturns, vtrace


def group_log_rhos(log_rhos: Tensor, groups: tuple[tuple[int, ...], ...], *, used: Tensor | None = None) -> Tensor:
    """Log-ratios float [G, T, B]: the sum over each group's heads.

    Args:
      log_rhos: float [H, T, B], log pi - log mu of each head's part.
      groups: the heads of each group; every head in exactly one.
      used: bool [H, T, B], whether the head took part in the action; None when all did.
    Raises:
      ValueError: a head is in no group or in several.
    Source: Vinyals et al. 2019, AlphaStar, supplementary pseudocode (action type, delay, all other arguments).
    """
    num_heads = log_rhos.shape[0]
    if sorted(head for group in groups for head in group) != list(range(num_heads)):
        raise ValueError(f"groups {groups} must hold each of the {num_heads} heads exactly once")
    if used is not None:
        log_rhos = torch.where(used, log_rhos, 0.0)
    return torch.stack([log_rhos[list(group)].sum(0) for group in groups])


def grouped_vtrace(
    grouped_log_rhos: Tensor,
    discounts: Tensor,
    rewards: Tensor,
    values: Tensor,
    bootstrap_value: Tensor,
    *,
    clip_rho: float | None = 1.0,
    clip_c: float | None = 1.0,
    clip_pg_rho: float | None = 1.0,
    lambda_: float = 1.0,
    valid: Tensor | None = None,
) -> VTraceReturns:
    """V-trace once per group; arguments as in `vtrace`, the log-ratios and both results [G, T, B]."""
    num_groups, num_steps, num_rows = grouped_log_rhos.shape

    def side_by_side(tensor: Tensor) -> Tensor:
        return tensor.repeat(1, num_groups)

    def apart(tensor: Tensor) -> Tensor:
        return tensor.view(num_steps, num_groups, num_rows).transpose(0, 1)

    returns = vtrace(
        grouped_log_rhos.transpose(0, 1).reshape(num_steps, -1),
        side_by_side(discounts),
        side_by_side(rewards),
        side_by_side(values),
        bootstrap_value.repeat(num_groups),
        clip_rho=clip_rho,
        clip_c=clip_c,
        clip_pg_rho=clip_pg_rho,
        lambda_=lambda_,
        valid=None if valid is None else side_by_side(valid),
    )
    return VTraceReturns(targets=apart(returns.targets), advantages=apart(returns.advantages))


def grouped_policy_gradient_loss(
    log_probs: Tensor,
    advantages: Tensor,
    groups: tuple[tuple[int, ...], ...],
    *,
    used: Tensor | None = None,
    valid: Tensor | None = None,
) -> Tensor:
    """-sum over heads of log-probability times the advantage of the head's group, a scalar; groups weigh equally.

    Args:
      log_probs: float [H, T, B] of each head's part under the trained policy; carries the gradient.
      advantages: float [G, T, B], importance weight of the group included; taken as constants.
      groups: as in `group_log_rhos`.
      used: bool [H, T, B], None when all heads took part in every action.
      valid: bool [T, B], None when every step is valid.
    """
    if used is not None:
        log_probs = torch.where(used, log_probs, 0.0)
    losses = [
        policy_gradient_loss(log_probs[list(group)].sum(0), advantages[index], valid=valid)
        for index, group in enumerate(groups)
    ]
    return torch.stack(losses).sum()
