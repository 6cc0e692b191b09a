"""Policy losses: IMPALA's policy gradient, PPO's clipped surrogate, APPO's surrogate with a target network.

T unroll length, B batch. A loss is a SUM over valid steps; the caller divides by the global count of valid steps, so
that microbatches, stages and replicas add up to the same gradient. Minimising a loss improves the policy.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from league.agents.losses.shapes import check_time_major

MAX_LOG_RATIO = 20.0
"""Bound of a log-ratio before it is exponentiated: beyond every clip and far below 88, where float32's exp overflows.
Without it the branch that a clip discards would send 0 * inf = NaN back."""


def zero_invalid(terms: Tensor, valid: Tensor | None) -> Tensor:
    """Set terms [T, B] to 0 in invalid steps, so that their values have neither influence nor gradient.

    Apply it before anything non-linear: a gradient of 0 times the infinite slope of garbage would be NaN.

    Args:
      terms: float [T, B].
      valid: bool [T, B], None when every step is valid.
    """
    return terms if valid is None else torch.where(valid, terms, 0.0)


def bounded_ratio(log_ratio: Tensor) -> Tensor:
    """exp of log-ratios clamped to +-`MAX_LOG_RATIO`; gradients pass the clamp unchanged."""
    bounded = log_ratio.detach().clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    return torch.exp(bounded + (log_ratio - log_ratio.detach()))


def policy_gradient_loss(log_probs: Tensor, advantages: Tensor, *, valid: Tensor | None = None) -> Tensor:
    """IMPALA's policy gradient: -sum of log-probability times advantage, a scalar.

    Args:
      log_probs: float [T, B] of the actions under the trained policy; carries the gradient.
      advantages: float [T, B], importance weight included (as V-trace and UPGO return them); taken as constants.
      valid: bool [T, B], None when every step is valid.
    Raises:
      ValueError: shapes disagree.
    Source: Espeholt et al. 2018, IMPALA, section 4.2.
    """
    check_time_major(log_probs, advantages=advantages, valid=valid)
    return -(zero_invalid(log_probs, valid) * zero_invalid(advantages.detach(), valid)).sum()


@torch.no_grad()
def normalise_advantages(
    advantages: Tensor, *, valid: Tensor, total: Callable[[Tensor], Tensor], floor: float = 0.0, epsilon: float = 1e-8
) -> Tensor:
    """Advantages with mean 0 and standard deviation 1 over the valid steps of all replicas, 0 in invalid ones.

    Call it on the whole batch before microbatches are cut: statistics of a piece would change the gradient.

    Args:
      advantages: float32 [T, B]; valid: bool [T, B].
      total: adds a tensor up over replicas.
      floor: least standard deviation to divide by, so that noise around 0 is not scaled up.
      epsilon: added to the standard deviation.
    """
    chosen = zero_invalid(advantages, valid).double()
    count, first = total(torch.stack([valid.sum().double(), chosen.sum()]))
    mean = first / count.clamp(min=1.0)
    squares = total(zero_invalid((chosen - mean).square(), valid).sum()[None])[0]
    deviation = (squares / (count - 1.0).clamp(min=1.0)).sqrt().clamp(min=floor) + epsilon
    return zero_invalid((chosen - mean) / deviation, valid).to(advantages.dtype)


def ppo_loss(
    log_probs: Tensor,
    behaviour_log_probs: Tensor,
    advantages: Tensor,
    *,
    clip: float = 0.2,
    valid: Tensor | None = None,
) -> Tensor:
    """PPO's clipped surrogate: -sum of min(ratio * A, clip(ratio, 1 - clip, 1 + clip) * A), a scalar.

    Args:
      log_probs: float [T, B] under the trained policy; carries the gradient.
      behaviour_log_probs: float [T, B] under the policy that acted.
      advantages: float [T, B] without importance weight; taken as constants.
      clip: largest distance of the ratio from 1 before its gradient stops.
      valid: bool [T, B], None when every step is valid.
    Raises:
      ValueError: shapes disagree.
    Source: Schulman et al. 2017, Proximal policy optimisation algorithms, eq. 7.
    """
    check_time_major(log_probs, behaviour_log_probs=behaviour_log_probs, advantages=advantages, valid=valid)
    ratios = bounded_ratio(zero_invalid(log_probs - behaviour_log_probs.detach(), valid))
    return -_clipped_surrogate(ratios, zero_invalid(advantages.detach(), valid), clip).sum()


def appo_loss(
    log_probs: Tensor,
    behaviour_log_probs: Tensor,
    target_log_probs: Tensor,
    advantages: Tensor,
    *,
    clip: float = 0.4,
    clip_target: float = 2.0,
    valid: Tensor | None = None,
) -> Tensor:
    """IMPACT's surrogate: PPO's clip around a slowly moving target policy instead of the one that acted, a scalar.

    The ratio is min(mu / pi_target, clip_target) * pi / mu: pi / pi_target while the bound is inactive.

    Args:
      log_probs: float [T, B] under the trained policy; carries the gradient.
      behaviour_log_probs: float [T, B] under mu, the policy that acted.
      target_log_probs: float [T, B] under the target network.
      advantages: float [T, B], V-trace's with the target network's ratios; taken as constants.
      clip: largest distance of the ratio from 1 before its gradient stops.
      clip_target: upper bound of mu / pi_target.
      valid: bool [T, B], None when every step is valid.
    Raises:
      ValueError: shapes disagree.
    Source: Luo et al. 2020, IMPACT: importance weighted asynchronous architectures with clipped target networks.
    """
    check_time_major(
        log_probs,
        behaviour_log_probs=behaviour_log_probs,
        target_log_probs=target_log_probs,
        advantages=advantages,
        valid=valid,
    )
    behaviour = behaviour_log_probs.detach()
    correction = bounded_ratio(zero_invalid(behaviour - target_log_probs.detach(), valid)).clamp(max=clip_target)
    ratios = correction * bounded_ratio(zero_invalid(log_probs - behaviour, valid))
    return -_clipped_surrogate(ratios, zero_invalid(advantages.detach(), valid), clip).sum()


def _clipped_surrogate(ratios: Tensor, advantages: Tensor, clip: float) -> Tensor:
    return torch.minimum(ratios * advantages, ratios.clamp(1.0 - clip, 1.0 + clip) * advantages)
