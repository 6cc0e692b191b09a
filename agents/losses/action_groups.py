"""Losses of sub-actions: ratios are clipped per group of sub-actions instead of over their product.

H heads (sub-actions of one action), G groups, T unroll length, B batch. The ratio of a whole structured action is a
product of many factors, and one clip over it would cut nearly every trace. An undivided action is one group.
"""

from __future__ import annotations

import torch
from torch import Tensor

from league.agents.losses.policy import policy_gradient_loss
from league.agents.losses.returns import UpgoReturns, upgo
from league.agents.losses.vtrace import VTraceReturns, clip_ratios, vtrace


def group_sums(log_terms: Tensor, groups: tuple[tuple[int, ...], ...], *, used: Tensor | None = None) -> Tensor:
    """Sum log-probabilities or log-ratios over each group's heads, float [G, T, B].

    Args:
      log_terms: float [H, T, B] of each head's sub-action.
      groups: the heads of each group; every head in exactly one.
      used: bool [H, T, B], True if the sub-action was used; None if all were.
    Raises:
      ValueError: a head is in no group or in several.
    Source: Vinyals et al. 2019, AlphaStar, supplementary pseudocode (action type, delay, all other arguments).
    """
    num_heads = log_terms.shape[0]
    if sorted(head for group in groups for head in group) != list(range(num_heads)):
        raise ValueError(f"groups {groups} must hold each of the {num_heads} heads exactly once")
    if used is not None:
        log_terms = torch.where(used, log_terms, 0.0)
    return torch.stack([log_terms[list(group)].sum(0) for group in groups])


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
        return tensor if num_groups == 1 else tensor.repeat(*[1] * (tensor.dim() - 1), num_groups)

    def apart(tensor: Tensor) -> Tensor:
        return tensor[None] if num_groups == 1 else tensor.view(num_steps, num_groups, num_rows).transpose(0, 1)

    one_group = num_groups == 1
    returns = vtrace(
        grouped_log_rhos[0] if one_group else grouped_log_rhos.transpose(0, 1).reshape(num_steps, -1),
        side_by_side(discounts),
        side_by_side(rewards),
        side_by_side(values),
        side_by_side(bootstrap_value),
        clip_rho=clip_rho,
        clip_c=clip_c,
        clip_pg_rho=clip_pg_rho,
        lambda_=lambda_,
        valid=None if valid is None else side_by_side(valid),
    )
    return VTraceReturns(targets=apart(returns.targets), advantages=apart(returns.advantages))


@torch.no_grad()
def grouped_upgo(
    grouped_log_rhos: Tensor,
    discounts: Tensor,
    rewards: Tensor,
    values: Tensor,
    bootstrap_value: Tensor,
    *,
    clip_pg_rho: float | None = 1.0,
    valid: Tensor | None = None,
) -> UpgoReturns:
    """UPGO with a clipped ratio per group; arguments as in `upgo`, the log-ratios and the advantages [G, T, B].

    The upgoing returns [T, B] contain no ratio, so that all groups have the same ones.
    """
    plain = upgo(
        torch.zeros_like(values), discounts, rewards, values, bootstrap_value, clip_pg_rho=clip_pg_rho, valid=valid
    )
    ratios = clip_ratios(grouped_log_rhos.exp(), clip_pg_rho)
    if valid is not None:
        ratios.masked_fill_(~valid, 0.0)
    return UpgoReturns(returns=plain.returns, advantages=ratios.mul_(plain.advantages))


def grouped_policy_gradient_loss(
    grouped_log_probs: Tensor, advantages: Tensor, *, valid: Tensor | None = None
) -> Tensor:
    """-sum over groups of log-probability times advantage, a scalar; all groups have equal weight.

    Args:
      grouped_log_probs: float [G, T, B] under the trained policy; carries the gradient.
      advantages: float [G, T, B], importance weight of the group included; taken as constants.
      valid: bool [T, B], None when every step is valid.
    """
    if len(grouped_log_probs) == 1:
        return policy_gradient_loss(grouped_log_probs[0], advantages[0], valid=valid)
    pairs = zip(grouped_log_probs, advantages, strict=True)
    return torch.stack([policy_gradient_loss(*pair, valid=valid) for pair in pairs]).sum()
