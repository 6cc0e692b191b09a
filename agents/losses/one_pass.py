"""The V-trace loss of a categorical policy in one pass, with its gradient written out.

Autograd through the single terms makes three times as many calls, and on the small arrays of a loss a call costs more
than its arithmetic. T unroll length, B rows, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from league.agents.losses.policy import MAX_LOG_RATIO
from league.agents.losses.vtrace import Clips, Floats, log_of_clip, on_host, vtrace, vtrace_by_numpy
from league.agents.nets.kernels.distributions import by_action


@dataclass(frozen=True)
class OnePassSteps:
    """The recorded decisions, batch-major [B, T]; fields as in an unroll."""

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
      gamma: multiplies the recorded discounts.
      value_cost, entropy_cost: of the terms beside the policy's.
      advantage_scale: divides the advantages. advantage_limit: larger ones count as this much in the statistics.
      clip_rho, clip_c, clip_pg_rho, lambda_: of `vtrace.vtrace`.
      corrects: False to take every ratio as 1 there; the statistics hold the real ones.
    """

    gamma: float
    value_cost: float
    entropy_cost: float
    advantage_scale: float
    advantage_limit: float
    clip_rho: float | None
    clip_c: float | None
    clip_pg_rho: float | None
    lambda_: float
    corrects: bool = True


def one_pass_loss(
    logits: Tensor, values: Tensor, steps: OnePassSteps, weights: OnePassWeights
) -> tuple[Tensor, Mapping[str, Tensor | float]]:
    """The summed loss, a scalar, and its statistics by name, scalars without a gradient; numbers on a CPU.

    The loss is policy + value_cost * value - entropy_cost * entropy over the decisions to learn from.

    Args:
      logits: float32 [B, T + 1, A], masked; values: float32 [B, T + 1]. Both carry the gradient.
    Source: Espeholt et al. 2018, IMPALA, section 4.2.
    """
    with torch.no_grad():
        sums, *gradients = (_by_numpy if on_host(logits) else _by_torch)(logits, values, steps, weights)
    loss = sums.policy + 0.5 * weights.value_cost * sums.squared_error - weights.entropy_cost * sums.entropy
    differentiable: Tensor = _WithGradient.apply(logits, values, loss, *gradients)  # type: ignore[no-untyped-call]
    return differentiable, {
        "policy": sums.policy,
        "value": 0.5 * sums.squared_error,
        "entropy": sums.entropy,
        "steps": sums.steps,
        "rho_clipped": sums.rho_clipped,
        "rho": sums.rho,
        "squared_rho": sums.squared_rho,
        "kl": sums.rho - sums.steps - sums.log_rho,
        "squared_advantage": sums.squared_advantage,
        "target": sums.target,
        "squared_target": sums.squared_target,
    }


class _Sums(NamedTuple):
    """Sums over the decisions to learn from, scalars; `squared_error` is of the values."""

    policy: Any
    squared_error: Any
    entropy: Any
    steps: Any
    rho_clipped: Any
    rho: Any
    squared_rho: Any
    log_rho: Any
    squared_advantage: Any
    target: Any
    squared_target: Any


class _WithGradient(torch.autograd.Function):
    """A scalar whose gradients are known already."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, values: Tensor, total: Tensor | float, of_logits: Tensor, of_values: Tensor
    ) -> Tensor:
        ctx.save_for_backward(of_logits, of_values)
        return torch.as_tensor(total, dtype=logits.dtype, device=logits.device).clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        of_logits, of_values = ctx.saved_tensors
        return of_logits * gradients[0], of_values * gradients[0], None, None, None


def _by_torch(
    logits: Tensor, values: Tensor, steps: OnePassSteps, weights: OnePassWeights
) -> tuple[_Sums, Tensor, Tensor]:
    """The sums, and the gradients of logits and values."""
    length, num_actions = steps.valid.shape[1], logits.shape[-1]
    shape = (num_actions, *steps.valid.shape)
    log_probs = by_action(logits[:, :length]).view(shape).transpose(1, 2)  # [A, T, B]
    probs = torch.softmax(log_probs, 0)
    entropies = (probs * log_probs).sum(0).neg_()
    chosen = steps.actions.t()[None]
    taken = log_probs.gather(0, chosen)[0]
    log_rhos = taken - steps.log_probs.t()
    corrections = log_rhos if weights.corrects else torch.zeros_like(log_rhos)
    by_time = values.t()
    returns = vtrace(
        corrections,
        steps.discounts.t() * weights.gamma,
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
            corrections > log_of_clip(weights.clip_rho),
            torch.ones_like(taken),
        ]
    ).masked_fill_(left_out, 0.0)
    # d log p_a / d logits = onehot(a) - p, and d entropy / d logits = -p * (log p + entropy).
    of_logits = (log_probs + entropies).mul_(-weights.entropy_cost).add_(of_taken).mul_(probs).neg_()
    of_logits.masked_fill_(left_out, 0.0).scatter_add_(0, chosen, of_taken[None])
    whole = logits.new_zeros(logits.shape)
    whole[:, :length] = of_logits.permute(2, 1, 0)
    of_values = values.new_zeros(values.shape)
    torch.mul(rows[1].t(), weights.value_cost, out=of_values[:, :length])
    return _sums_of(rows.flatten(1), of_taken.flatten()), whole, of_values


def _sums_of(rows: Tensor, of_taken: Tensor) -> _Sums:
    """Sums of the nine rows of `_by_torch`, float32 [9, T * B]."""
    squares = torch.linalg.vecdot(rows, rows).unbind()
    _, _, entropy, rho, log_rho, _, target, clipped, count = rows.sum(1).unbind()
    return _Sums(
        policy=torch.dot(rows[0], of_taken),
        squared_error=squares[1],
        entropy=entropy,
        steps=count,
        rho_clipped=clipped,
        rho=rho,
        squared_rho=squares[3],
        log_rho=log_rho,
        squared_advantage=squares[5],
        target=target,
        squared_target=squares[6],
    )


def _by_numpy(
    logits: Tensor, values: Tensor, steps: OnePassSteps, weights: OnePassWeights
) -> tuple[_Sums, Tensor, Tensor]:
    """As `_by_torch`. Beside large matrix products a call of torch costs 10 us, one of numpy a third of it.

    Arrays are batch-major, in the network's order, and tables [A, B * (T + 1)]; only V-trace works along T.
    """
    num_rows, length = steps.actions.shape
    shape = num_rows, length + 1
    by_row, learn = values.numpy(), steps.learn.numpy()
    with np.errstate(all="ignore"):  # garbage in invalid steps
        log_table, probs = _softmax(logits.numpy())
        places = steps.actions.numpy() * log_table.shape[1]  # of the chosen actions in the table
        places += np.arange(log_table.shape[1]).reshape(shape)[:, :length]
        taken = log_table.take(places)
        log_rhos = taken - steps.log_probs.numpy()
        corrections = log_rhos if weights.corrects else np.zeros_like(log_rhos)
        targets, advantages = vtrace_by_numpy(
            corrections.T,
            (steps.discounts.numpy() * weights.gamma).T,
            steps.rewards.numpy().T,
            by_row[:, :length].T,
            by_row[:, length],
            clips=Clips(weights.clip_rho, weights.clip_c, weights.clip_pg_rho),
            lambda_=weights.lambda_,
            valid=steps.valid.numpy().T,
        )
        entropies = (probs * log_table).sum(0)
        np.negative(entropies, out=entropies)
        rows = np.empty((8, num_rows, length), taken.dtype)  # named where they are summed
        rows[0], rows[1], rows[2] = taken, entropies.reshape(shape)[:, :length], log_rhos
        rows[3], rows[5] = targets.T, advantages.T
        np.multiply(rows[5], -1.0 / weights.advantage_scale, out=rows[7])
        _limit(rows[5], weights.advantage_limit)
        np.subtract(by_row[:, :length], rows[3], out=rows[4])
        rows[6] = log_rhos
        np.exp(_limit(rows[6], MAX_LOG_RATIO), out=rows[6])
        clipped = (corrections > log_of_clip(weights.clip_rho)) & learn
        _keep(rows, learn)
        sums = _sums_of_arrays(rows, num_clipped=int(clipped.sum()), num_steps=int(learn.sum()))
        # The gradient of the logits as in `_by_torch`, in the memory of the log-probabilities.
        log_table += entropies
        log_table *= weights.entropy_cost
        of_taken = rows[7]
        log_table -= _with_last(of_taken, 0.0).ravel()
        log_table *= probs
        _keep(log_table, _with_last(learn, False).ravel())
        log_table.reshape(-1)[places] += of_taken
    of_logits = np.ascontiguousarray(log_table.T).reshape(logits.shape)
    of_values = _with_last(rows[4] * weights.value_cost, 0.0)
    return sums, torch.from_numpy(of_logits), torch.from_numpy(of_values)


def _sums_of_arrays(rows: Floats, *, num_clipped: int, num_steps: int) -> _Sums:
    """Sums of the rows of `_by_numpy`, float32 [8, B, T]."""
    taken, _, _, target, error, advantage, rho, of_taken = rows
    _, entropy, log_rho, target_sum, _, _, rho_sum, _ = rows.reshape(8, -1).sum(1).tolist()
    return _Sums(
        policy=_dot(taken, of_taken),
        squared_error=_dot(error, error),
        entropy=entropy,
        steps=float(num_steps),
        rho_clipped=float(num_clipped),
        rho=rho_sum,
        squared_rho=_dot(rho, rho),
        log_rho=log_rho,
        squared_advantage=_dot(advantage, advantage),
        target=target_sum,
        squared_target=_dot(target, target),
    )


def _softmax(logits: Floats) -> tuple[Floats, Floats]:
    """Log-probabilities and probabilities [A, B * (T + 1)] of logits [B, T + 1, A]."""
    table = np.ascontiguousarray(logits.reshape(-1, logits.shape[-1]).T)
    table -= table.max(0)
    probs = np.exp(table)
    totals = probs.sum(0)
    probs /= totals
    table -= np.log(totals, out=totals)
    return table, probs


def _with_last(array: NDArray[Any], last: float) -> NDArray[Any]:
    """[B, T + 1] of [B, T], with `last` for the step to bootstrap from."""
    rows = np.empty((array.shape[0], array.shape[1] + 1), array.dtype)
    rows[:, :-1], rows[:, -1] = array, last
    return rows


def _limit(array: Floats, bound: float) -> Floats:
    """The array, clipped to [-bound, bound] in place; `np.clip` takes longer over its arguments."""
    return np.maximum(np.minimum(array, bound, out=array), -bound, out=array)


def _keep(table: Floats, where: NDArray[np.bool_]) -> None:
    """Replace the rest by 0, NaN too: on the bits, which takes a tenth of a masked copy."""
    bits = table.view(f"i{table.itemsize}")
    bits &= np.negative(where, dtype=bits.dtype)


def _dot(left: Floats, right: Floats) -> float:
    return float(np.vdot(left, right))
