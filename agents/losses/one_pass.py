"""The V-trace loss of a categorical policy in one pass, with its gradient written out.

Autograd through the single terms makes three times as many calls, and on the small arrays of a loss a call costs more
than its arithmetic. T unroll length, B rows, A actions; the network's outputs are batch-major, the rest [T, B].
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.losses.policy import MAX_LOG_RATIO
from agents.losses.vtrace import Clips, Floats, on_host, vtrace, vtrace_by_numpy
from agents.nets.distributions import by_action


@dataclass(frozen=True)
class OnePassSteps:
    """The recorded decisions, batch-major [B, T]; fields as in an unroll, the discounts times gamma."""

    actions: Tensor
    log_probs: Tensor
    rewards: Tensor
    discounts: Tensor
    valid: Tensor
    learn: Tensor


@dataclass(frozen=True)
class OnePassWeights:
    """Weights of the terms, and clips.

    Fields:
      value_cost, entropy_cost: of the terms beside the policy's.
      advantage_scale: divides the advantages. advantage_limit: larger ones count as this much in the statistics.
      clip_rho, clip_c, clip_pg_rho, lambda_: of `vtrace.vtrace`.
    """

    value_cost: float
    entropy_cost: float
    advantage_scale: float
    advantage_limit: float
    clip_rho: float | None
    clip_c: float | None
    clip_pg_rho: float | None
    lambda_: float


def one_pass_loss(
    logits: Tensor, values: Tensor, steps: OnePassSteps, weights: OnePassWeights
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """The summed loss, a scalar, and its statistics by name, scalars without a gradient.

    The loss is policy + value_cost * value - entropy_cost * entropy over the decisions to learn from.

    Args:
      logits: float32 [B, T + 1, A], masked; values: float32 [B, T + 1]. Both carry the gradient.
    Source: Espeholt et al. 2018, IMPALA, section 4.2.
    """
    loss, policy, sums, squares = _OnePass.apply(logits, values, steps, weights)  # type: ignore[no-untyped-call]
    _, value, _, rho, _, advantage, target, _, _ = squares.unbind()
    _, _, entropy, total_rho, log_rho, _, total_target, clipped, count = sums.unbind()
    return loss, {
        "policy": policy,
        "value": 0.5 * value,
        "entropy": entropy,
        "steps": count,
        "rho_clipped": clipped,
        "rho": total_rho,
        "squared_rho": rho,
        "kl": total_rho - count - log_rho,
        "squared_advantage": advantage,
        "target": total_target,
        "squared_target": target,
    }


class _OnePass(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, values: Tensor, steps: OnePassSteps, weights: OnePassWeights
    ) -> tuple[Tensor, ...]:
        if on_host(logits):
            arrays = (getattr(steps, line.name).numpy() for line in fields(steps))
            computed = _by_numpy(logits.detach().numpy(), values.detach().numpy(), *arrays, weights=weights)
            policy, sums, squares, of_logits, of_values = (torch.from_numpy(array) for array in computed)
        else:
            policy, sums, squares, of_logits, of_values = _by_torch(logits, values, steps, weights)
        ctx.save_for_backward(of_logits, of_values)
        ctx.mark_non_differentiable(policy, sums, squares)
        ctx.set_materialize_grads(False)
        loss = policy.add(squares[1], alpha=0.5 * weights.value_cost).sub(sums[2], alpha=weights.entropy_cost)
        return loss, policy, sums, squares

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        of_logits, of_values = ctx.saved_tensors
        return of_logits * gradients[0], of_values * gradients[0], None, None


def _by_torch(logits: Tensor, values: Tensor, steps: OnePassSteps, weights: OnePassWeights) -> tuple[Tensor, ...]:
    """The policy's loss, sums of nine rows of terms and of their squares, and the gradients of logits and values."""
    length, num_actions = steps.valid.shape[1], logits.shape[-1]
    shape = (num_actions, *steps.valid.shape)
    log_probs = by_action(logits[:, :length]).view(shape).transpose(1, 2)  # [A, T, B]
    probs = torch.softmax(log_probs, 0)
    entropies = (probs * log_probs).sum(0).neg_()
    chosen = steps.actions.t()[None]
    taken = log_probs.gather(0, chosen)[0]
    log_rhos = taken - steps.log_probs.t()
    by_time = values.t()
    returns = vtrace(
        log_rhos,
        steps.discounts.t(),
        steps.rewards.t(),
        by_time[:length],
        by_time[length],
        clip_rho=weights.clip_rho,
        clip_c=weights.clip_c,
        clip_pg_rho=weights.clip_pg_rho,
        lambda_=weights.lambda_,
        valid=steps.valid.t(),
    )
    left_out = ~steps.learn.t()
    of_taken = (returns.advantages * (-1.0 / weights.advantage_scale)).masked_fill_(left_out, 0.0)
    limit = weights.advantage_limit
    # One row for every sum: masked, summed and squared at once.
    rows = torch.stack(
        [
            taken,
            by_time[:length] - returns.targets,
            entropies,
            log_rhos.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp_(),
            log_rhos,
            returns.advantages.clamp(-limit, limit),
            returns.targets,
            log_rhos > (math.inf if weights.clip_rho is None else math.log(weights.clip_rho)),
            torch.ones_like(taken),
        ]
    ).masked_fill_(left_out, 0.0)
    flat = rows.flatten(1)
    sums, squares = flat.sum(1), torch.linalg.vecdot(flat, flat)
    policy = torch.dot(flat[0], of_taken.flatten())
    # d log p_a / d logits = onehot(a) - p, and d entropy / d logits = -p * (log p + entropy).
    of_logits = (log_probs + entropies).mul_(-weights.entropy_cost).add_(of_taken).mul_(probs).neg_()
    of_logits.masked_fill_(left_out, 0.0).scatter_add_(0, chosen, of_taken[None])
    whole = logits.new_zeros(logits.shape)
    whole[:, :length] = of_logits.permute(2, 1, 0)
    of_values = values.new_zeros(values.shape)
    torch.mul(rows[1].t(), weights.value_cost, out=of_values[:, :length])
    return policy, sums, squares, whole, of_values


def _by_numpy(
    logits: Floats,
    values: Floats,
    actions: NDArray[np.int64],
    log_probs: Floats,
    rewards: Floats,
    discounts: Floats,
    valid: NDArray[np.bool_],
    learn: NDArray[np.bool_],
    *,
    weights: OnePassWeights,
) -> tuple[Floats, ...]:
    """As `_by_torch`. Beside large matrix products a call of torch costs 10 us, one of numpy a third of it."""
    num_rows, length = actions.shape
    every, chosen, left_out = np.arange(num_rows * length), actions.T.ravel(), ~learn.T
    limit, by_time = weights.advantage_limit, values.T
    with np.errstate(all="ignore"):  # garbage in invalid steps
        table = np.ascontiguousarray(logits[:, :length].transpose(2, 1, 0))  # [A, T, B]
        flat = table.reshape(len(table), -1)
        table -= table.max(0)
        probs = np.exp(table)
        totals = probs.sum(0)
        probs /= totals
        table -= np.log(totals)
        entropies = -(probs * table).sum(0)
        taken = flat[chosen, every].reshape(length, num_rows)
        log_rhos = taken - log_probs.T
        targets, advantages = vtrace_by_numpy(
            log_rhos,
            discounts.T,
            rewards.T,
            by_time[:length],
            by_time[length],
            clips=Clips(weights.clip_rho, weights.clip_c, weights.clip_pg_rho),
            lambda_=weights.lambda_,
            valid=valid.T,
        )
        of_taken = advantages * (-1.0 / weights.advantage_scale)
        np.copyto(of_taken, 0.0, where=left_out)
        rows = np.empty((9, length, num_rows), taken.dtype)
        rows[0], rows[2], rows[4], rows[6], rows[8] = taken, entropies, log_rhos, targets, 1.0
        np.subtract(by_time[:length], targets, out=rows[1])
        np.exp(np.clip(log_rhos, -MAX_LOG_RATIO, MAX_LOG_RATIO), out=rows[3])
        np.clip(advantages, -limit, limit, out=rows[5])
        rows[7] = log_rhos > (math.inf if weights.clip_rho is None else math.log(weights.clip_rho))
        np.copyto(rows, 0.0, where=left_out)
        table += entropies
        table *= -weights.entropy_cost
        table += of_taken
        table *= probs
        np.negative(table, out=table)
        np.copyto(table, 0.0, where=left_out)
        flat[chosen, every] += of_taken.ravel()
    of_logits, of_values = np.zeros_like(logits), np.zeros_like(values)
    of_logits[:, :length] = table.transpose(2, 1, 0)
    np.multiply(rows[1].T, weights.value_cost, out=of_values[:, :length])
    policy = np.asarray(np.vdot(rows[0], of_taken), taken.dtype)
    return policy, rows.sum((1, 2)), np.einsum("ktb,ktb->k", rows, rows), of_logits, of_values
