"""The V-trace loss of a categorical policy in one pass, with its gradient written out.

Autograd through the single terms makes three times as many calls, and on the small arrays of a loss a call costs more
than its arithmetic. T unroll length, B rows, A actions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch
from torch import Tensor

from league.agents.losses.policy import MAX_LOG_RATIO
from league.agents.losses.vtrace import MAX_RATIO, log_of_clip, vtrace
from league.agents.nets.kernels.compiled import library
from league.agents.nets.kernels.distributions import by_action

OUT_OF_RANGE = 2
"""Answer of the kernel where an action is none of the game's."""


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
        kernel = _kernel_for(logits, values, steps)
        if kernel is None:
            sums, *gradients = _by_torch(logits, values, steps, weights)
        else:
            sums, *gradients = _by_kernel(kernel, logits, values, steps, weights)
    loss = sums.policy + 0.5 * weights.value_cost * sums.squared_error - weights.entropy_cost * sums.entropy
    differentiable: Tensor = _WithGradient.apply(logits, values, loss, *gradients)  # type: ignore[no-untyped-call]
    return differentiable, sums.statistics()


class OnePassSums(NamedTuple):
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

    def statistics(self) -> dict[str, Any]:
        """By the names of `loss_stats.LossStats`."""
        return {
            "policy": self.policy,
            "value": 0.5 * self.squared_error,
            "entropy": self.entropy,
            "steps": self.steps,
            "rho_clipped": self.rho_clipped,
            "rho": self.rho,
            "squared_rho": self.squared_rho,
            "kl": self.rho - self.steps - self.log_rho,
            "squared_advantage": self.squared_advantage,
            "target": self.target,
            "squared_target": self.squared_target,
        }


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
) -> tuple[OnePassSums, Tensor, Tensor]:
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


def _sums_of(rows: Tensor, of_taken: Tensor) -> OnePassSums:
    """Sums of the nine rows of `_by_torch`, float32 [9, T * B]."""
    squares = torch.linalg.vecdot(rows, rows).unbind()
    _, _, entropy, rho, log_rho, _, target, clipped, count = rows.sum(1).unbind()
    return OnePassSums(
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


class CWeights(ctypes.Structure):
    """`struct settings` of vtrace_loss.c."""

    _fields_ = [
        *((field.name, ctypes.c_float) for field in fields(OnePassWeights) if field.name != "corrects"),
        *((name, ctypes.c_float) for name in ("log_of_clip", "max_log_ratio")),
        ("corrects", ctypes.c_int),
    ]

    @classmethod
    def of(cls, weights: OnePassWeights) -> CWeights:
        """The same weights; a clip of None is so large that it clips no sensible ratio."""
        clips = (weights.clip_rho, weights.clip_c, weights.clip_pg_rho)
        return cls(
            *(weights.gamma, weights.value_cost, weights.entropy_cost),
            *(weights.advantage_scale, weights.advantage_limit),
            *(MAX_RATIO if clip is None else clip for clip in clips),
            *(weights.lambda_, log_of_clip(weights.clip_rho), MAX_LOG_RATIO, weights.corrects),
        )


class CSums(ctypes.Structure):
    """`struct sums` of vtrace_loss.c."""

    _fields_ = [(name, ctypes.c_double) for name in OnePassSums._fields]

    @property
    def sums(self) -> OnePassSums:
        """The same numbers."""
        return OnePassSums(*(getattr(self, name) for name in OnePassSums._fields))


def check_shapes(steps: OnePassSteps) -> None:
    """Refuse decisions of different shapes: the kernels read memory by one of them. Raises ValueError."""
    shapes = {tuple(tensor.shape) for tensor in vars(steps).values()}
    if len(shapes) > 1:
        raise ValueError(f"fields of the decisions have the shapes {sorted(shapes)}")


def raise_for(failed: int, *, num_actions: int) -> None:
    """Raise for the answer of a kernel that is not 0: a MemoryError, or a ValueError where an action is none of A."""
    if failed == OUT_OF_RANGE:
        raise ValueError(f"an action is not one of {num_actions}")
    if failed:
        raise MemoryError("the V-trace loss")


def _by_kernel(
    kernel: ctypes.CDLL, logits: Tensor, values: Tensor, steps: OnePassSteps, weights: OnePassWeights
) -> tuple[OnePassSums, Tensor, Tensor]:
    """As `_by_torch`, compiled: it takes a tenth of the time, without Python's lock.

    Raises:
      ValueError: shapes disagree, or an action is none of the game's.
    """
    check_shapes(steps)
    rows, length = steps.valid.shape
    if values.shape != (rows, length + 1) or logits.shape[:-1] != values.shape:
        raise ValueError(f"{rows} rows of {length} decisions, values {values.shape}, logits {logits.shape}")
    given = [logits, values, steps.actions, steps.log_probs, steps.rewards, steps.discounts, steps.valid, steps.learn]
    given = [tensor.contiguous() for tensor in given]
    sums, of_logits, of_values = CSums(), torch.empty_like(given[0]), torch.empty_like(given[1])
    failed = kernel.league_vtrace_loss(
        *(ctypes.c_void_p(tensor.data_ptr()) for tensor in given),
        *(ctypes.c_long(size) for size in (rows, length, logits.shape[-1])),
        *(ctypes.byref(CWeights.of(weights)), ctypes.byref(sums)),
        *(ctypes.c_void_p(tensor.data_ptr()) for tensor in (of_logits, of_values)),
    )
    raise_for(failed, num_actions=logits.shape[-1])
    return sums.sums, of_logits, of_values


def _kernel_for(logits: Tensor, values: Tensor, steps: OnePassSteps) -> ctypes.CDLL | None:
    """The compiled loss where it takes these tensors: on the CPU and of the usual types."""
    numbers = (logits, values, steps.log_probs, steps.rewards, steps.discounts)
    fits = logits.device.type == "cpu" and all(tensor.dtype == torch.float32 for tensor in numbers)
    return library("vtrace_loss") if fits and steps.actions.dtype == torch.int64 else None
