"""V-trace: value targets and advantages for unrolls of an older policy. T unroll length, B batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from league.agents.losses.policy import MAX_LOG_RATIO
from league.agents.losses.shapes import check_bootstrap, check_time_major

Floats = NDArray[Any]
"""float32 or float64."""

MAX_RATIO = math.exp(MAX_LOG_RATIO)
ROUNDING = math.sqrt(float(np.finfo(np.float32).eps))
"""Relative difference of two float32 ratios that may be one."""


@dataclass(frozen=True)
class VTraceReturns:
    """The results of V-trace, both without gradient.

    Fields:
      targets: float [T, B], regression targets of the values.
      advantages: float [T, B], weights of the log-probability of each step's action.
    """

    targets: Tensor
    advantages: Tensor


@torch.no_grad()
def vtrace(
    log_rhos: Tensor,
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
    """Value targets and policy-gradient advantages for data from an older policy.

    Args:
      log_rhos: float [T, B], log pi(a_t|x_t) - log mu(a_t|x_t); pi is trained, mu acted.
      discounts: float [T, B], gamma for an ordinary step, 0 where the episode terminated, so that no credit crosses the
        boundary. A truncated step keeps gamma and is followed by an invalid step that holds its final observation.
      rewards: float [T, B], the reward for the action of each step.
      values: float [T, B], V of each step's observation; finite in every step, invalid ones too.
      bootstrap_value: float [B], V of the observation after the last step.
      clip_rho: upper bound of the ratio in the temporal difference; it decides which policy's value is learned.
      clip_c: upper bound of the ratio in the trace; it decides how far corrections travel.
      clip_pg_rho: upper bound of the ratio in the advantages.
      lambda_: decay of the trace in [0, 1].
      valid: bool [T, B], False for padding and for the marker after a truncated step. The target of such a step is its
        value, so that the step before bootstraps from it; its advantage is 0, its reward and ratio are ignored.
        None means that every step is valid.

    A clip of None does not bound the ratio.

    Raises:
      ValueError: shapes disagree (the message names both).
    Source: Espeholt et al. 2018, IMPALA, section 4.1; lambda as in its remark 2.
    """
    check_time_major(values, log_rhos=log_rhos, discounts=discounts, rewards=rewards, valid=valid)
    check_bootstrap(values, bootstrap_value)
    clips = Clips(clip_rho, clip_c, clip_pg_rho)
    given = (log_rhos, discounts, rewards, values, bootstrap_value)
    if not on_host(values):
        return vtrace_by_torch(*given, clips=clips, lambda_=lambda_, valid=valid)
    targets, advantages = vtrace_by_numpy(
        *(tensor.detach().numpy() for tensor in given),
        clips=clips,
        lambda_=lambda_,
        valid=None if valid is None else valid.numpy(),
    )
    return VTraceReturns(targets=torch.from_numpy(targets), advantages=torch.from_numpy(advantages))


def on_host(tensor: Tensor) -> bool:
    """True if numpy reads the tensor without a copy."""
    return tensor.device.type == "cpu"


class Clips(NamedTuple):
    """Upper bounds of the ratios in the temporal difference, in the trace and in the advantages; None for none."""

    rho: float | None
    c: float | None
    pg_rho: float | None


def vtrace_by_torch(
    log_rhos: Tensor,
    discounts: Tensor,
    rewards: Tensor,
    values: Tensor,
    bootstrap_value: Tensor,
    *,
    clips: Clips,
    lambda_: float,
    valid: Tensor | None,
) -> VTraceReturns:
    """`vtrace` on the device of its arguments."""
    rhos = log_rhos.exp()
    corrections = _one_step_returns(discounts, rewards, values, bootstrap_value).sub_(values)
    corrections.mul_(clip_ratios(rhos, clips.rho))
    traces = clip_ratios(rhos, clips.c).mul_(discounts).mul_(lambda_)
    invalid = None if valid is None else valid.logical_not()
    if invalid is not None:
        corrections.masked_fill_(invalid, 0.0)
        traces.masked_fill_(invalid, 0.0)
    scan_backward(corrections, traces)
    targets = corrections.add_(values)
    advantages = _one_step_returns(discounts, rewards, targets, bootstrap_value).sub_(values)
    advantages.mul_(clip_ratios(rhos, clips.pg_rho))
    if invalid is not None:
        advantages.masked_fill_(invalid, 0.0)
    return VTraceReturns(targets=targets, advantages=advantages)


def _one_step_returns(discounts: Tensor, rewards: Tensor, values: Tensor, bootstrap_value: Tensor) -> Tensor:
    """reward + discount * value of the next step, float [T, B]."""
    return torch.addcmul(rewards, discounts, torch.cat([values[1:], bootstrap_value[None]]))


def vtrace_by_numpy(
    log_rhos: Floats,
    discounts: Floats,
    rewards: Floats,
    values: Floats,
    bootstrap_value: Floats,
    *,
    clips: Clips,
    lambda_: float,
    valid: NDArray[np.bool_] | None,
) -> tuple[Floats, Floats]:
    """`vtrace` on a CPU: targets and advantages. A call of numpy on a small array costs a fourth of one of torch."""
    rewards, values, discounts = (np.ascontiguousarray(array) for array in (rewards, values, discounts))
    invalid = None if valid is None else np.ascontiguousarray(~valid)
    with np.errstate(over="ignore", invalid="ignore"):  # garbage in invalid steps
        rhos = np.exp(np.ascontiguousarray(log_rhos))
        clipped = {bound: np.minimum(rhos, MAX_RATIO if bound is None else bound) for bound in set(clips)}
        c = clipped[clips.c] * discounts
        c *= lambda_
        sums = np.concatenate([values[1:], bootstrap_value[None]])
        sums *= discounts
        sums += rewards
        sums -= values
        sums *= clipped[clips.rho]
        if invalid is not None:
            np.putmask(sums, invalid, 0.0)
            np.putmask(c, invalid, 0.0)
        product, rows, factors = np.empty_like(sums[0]), list(sums), list(c)
        for step in range(len(rows) - 2, -1, -1):
            np.multiply(factors[step], rows[step + 1], out=product)
            rows[step] += product
        targets = sums
        targets += values
        advantages = np.concatenate([targets[1:], bootstrap_value[None]])
        advantages *= discounts
        advantages += rewards
        advantages -= values
        advantages *= clipped[clips.pg_rho]
        if invalid is not None:
            np.putmask(advantages, invalid, 0.0)
    return targets, advantages


def scan_backward(terms: Tensor, decays: Tensor) -> None:
    """Replace terms[t] by terms[t] + decays[t] * terms[t + 1] in place, from the last step to the first.

    Args:
      terms: float [T, ...], overwritten by the sums. Rows are updated in place because T small allocations cost more
        than the arithmetic.
      decays: float [T, ...]; the last row is not used, because no step follows it.
    """
    sums, factors = terms.unbind(), decays.unbind()
    for step in range(len(sums) - 2, -1, -1):
        sums[step].addcmul_(factors[step], sums[step + 1])


def log_of_clip(bound: float | None) -> float:
    """Logarithm above which a ratio counts as clipped, infinity without a clip.

    A ratio of two float32 probabilities that are equal but for the order of their sums differs from 1 by rounding. It
    stays within the root of the spacing of float32, which a ratio that was clipped for a reason exceeds.
    """
    return math.inf if bound is None else math.log(bound) + ROUNDING


def clip_ratios(ratios: Tensor, bound: float | None) -> Tensor:
    """Clip ratios at `bound`; without one at exp(20), so that an overflow to infinity cannot become 0 * inf = NaN."""
    return ratios.clamp(max=MAX_RATIO if bound is None else bound)
