"""Returns and advantages without off-policy value correction: GAE, UPGO. T unroll length, B batch.

`discounts`, `rewards`, `values`, `bootstrap_value` and `valid` mean the same in every function as in `vtrace.vtrace`:
discounts are 0 where the episode terminated. A truncated step keeps its discount; the invalid step after it holds its
final observation, with its own value as target and 0 as advantage. No result has a gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from league.agents.losses.shapes import check_bootstrap, check_time_major
from league.agents.losses.vtrace import clip_ratios, scan_backward


@torch.no_grad()
def gae(
    discounts: Tensor,
    rewards: Tensor,
    values: Tensor,
    bootstrap_value: Tensor,
    *,
    lambda_: float,
    valid: Tensor | None = None,
) -> Tensor:
    """Generalised advantage estimates float [T, B]; advantages + values are the TD(lambda) targets.

    Args:
      lambda_: decay of the sum of temporal differences in [0, 1]; 0 is the one-step difference, 1 the whole return.
    Raises:
      ValueError: shapes disagree (the message names both).
    Source: Schulman et al. 2016, High-dimensional continuous control using generalised advantage estimation, eq. 16.
    """
    check_time_major(values, discounts=discounts, rewards=rewards, valid=valid)
    check_bootstrap(values, bootstrap_value)
    next_values = torch.cat([values[1:], bootstrap_value[None]])
    advantages = (discounts * next_values).add_(rewards).sub_(values)
    decays = discounts * lambda_
    if valid is not None:
        invalid = valid.logical_not()
        advantages.masked_fill_(invalid, 0.0)
        decays.masked_fill_(invalid, 0.0)
    scan_backward(advantages, decays)
    return advantages


@dataclass(frozen=True)
class UpgoReturns:
    """The results of UPGO, both without gradient.

    Fields:
      returns: float [T, B].
      advantages: float [T, B], returns minus values, times the clipped ratio.
    """

    returns: Tensor
    advantages: Tensor


@torch.no_grad()
def upgo(
    log_rhos: Tensor,
    discounts: Tensor,
    rewards: Tensor,
    values: Tensor,
    bootstrap_value: Tensor,
    *,
    clip_pg_rho: float | None = 1.0,
    valid: Tensor | None = None,
) -> UpgoReturns:
    """Upgoing returns: the actual return while it exceeds the expectation, else the value.

    G_t = r_t + discount_t * (G_{t+1} if r_{t+1} + discount_{t+1} * V_{t+2} >= V_{t+1} else V_{t+1}), with
    G_{T-1} = r_{T-1} + discount_{T-1} * bootstrap_value.

    Args:
      log_rhos: float [T, B], log pi(a_t|x_t) - log mu(a_t|x_t).
      clip_pg_rho: upper bound of the ratio in the advantages; None for no bound.
    Raises:
      ValueError: shapes disagree (the message names both).
    Source: Vinyals et al. 2019, AlphaStar, methods, "UPGO".
    """
    check_time_major(values, log_rhos=log_rhos, discounts=discounts, rewards=rewards, valid=valid)
    check_bootstrap(values, bootstrap_value)
    next_values = torch.cat([values[1:], bootstrap_value[None]])
    gains = (discounts * next_values).add_(rewards).sub_(values)
    # G_t - V_t = gain_t + discount_t * (gain_{t+1} >= 0) * (G_{t+1} - V_{t+1}): the same scan as GAE's.
    decays = discounts.clone()
    decays[:-1].mul_(gains[1:] >= 0)
    ratios = clip_ratios(log_rhos.exp(), clip_pg_rho)
    if valid is not None:
        invalid = valid.logical_not()
        for terms in (gains, decays, ratios):
            terms.masked_fill_(invalid, 0.0)
    scan_backward(gains, decays)
    return UpgoReturns(returns=gains + values, advantages=ratios.mul_(gains))
