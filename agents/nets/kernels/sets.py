"""Attention within sets of places as one operator: on a GPU one kernel, elsewhere the plain products.

torch's attention takes a mask as a matrix of scores, and cuDNN's gradient of it runs three kernels and copies. Sets
are small: a whole one fits a multiprocessor, whose kernel reads queries, keys and values once and writes once.

Shape letters: N rows, S places of a set, W width, H heads, D = W / H.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from league.agents.nets.kernels.gpu import learns_on_gpu

MAX_PLACES = 128
HEAD_WIDTHS = (16, 32, 64)
"""Sets and widths of a head that the kernel takes."""


def prefers_kernel(features: Tensor, *, places: int, head_width: int) -> bool:
    """True where the operator is faster than torch's attention: a GPU that learns in 16-bit numbers, small sets."""
    return head_width in HEAD_WIDTHS and places <= MAX_PLACES and learns_on_gpu(features)


@torch.library.custom_op("league::attend", mutates_args=())
def attend(qkv: Tensor, present: Tensor, num_heads: int) -> tuple[Tensor, Tensor]:
    """Attend from every place to the present ones, differentiable in qkv.

    Args:
      qkv: [N, S, 3 * W] contiguous, queries, keys and values, each by heads.
      present: bool [N, S] contiguous.
    Returns:
      [N, S, W], 0 in a row of which no place is present, and at least in float32 [N, H, S]: the logarithm to base 2
      of the sum of weights of every query, which the gradient needs.
    """
    if qkv.is_cuda:
        from league.agents.nets.kernels import triton_kernels

        return triton_kernels.attend(qkv, present, num_heads)
    _, _, value, scores = _scores(qkv, present, num_heads)
    log_sums = torch.logsumexp(scores, -1)
    log_sums = torch.where(log_sums.isinf(), 0.0, log_sums)
    weights = torch.exp(scores - log_sums.unsqueeze(-1))
    gathered = weights @ value
    return gathered.transpose(1, 2).flatten(2).to(qkv.dtype), log_sums / math.log(2.0)


@torch.library.custom_op("league::attend_backward", mutates_args=())
def attend_backward(of_out: Tensor, qkv: Tensor, present: Tensor, log_sums: Tensor, num_heads: int) -> Tensor:
    """The gradient of qkv [N, S, 3 * W] from that of the output [N, S, W]; other arguments as of `attend`."""
    if qkv.is_cuda:
        from league.agents.nets.kernels import triton_kernels

        return triton_kernels.attend_backward(of_out, qkv, present, log_sums, num_heads)
    query, key, value, scores = _scores(qkv, present, num_heads)
    weights = torch.exp(scores - math.log(2.0) * log_sums.unsqueeze(-1))
    gradient = _by_head(of_out.to(scores.dtype), num_heads)
    of_weights = gradient @ value.mT
    of_scores = weights * (of_weights - (weights * of_weights).sum(-1, keepdim=True)) * query.shape[-1] ** -0.5
    parts = (of_scores @ key, of_scores.mT @ query, weights.mT @ gradient)
    return torch.cat([part.transpose(1, 2).flatten(2) for part in parts], dim=-1).to(qkv.dtype)


@attend.register_fake
def _(qkv: Tensor, present: Tensor, num_heads: int) -> tuple[Tensor, Tensor]:
    rows, places, wide = qkv.shape
    log_sums = qkv.new_empty(rows, num_heads, places, dtype=_exact(qkv))
    return qkv.new_empty(rows, places, wide // 3), log_sums


@attend_backward.register_fake
def _(of_out: Tensor, qkv: Tensor, present: Tensor, log_sums: Tensor, num_heads: int) -> Tensor:
    return torch.empty_like(qkv)


def _keep(ctx: Any, inputs: tuple[Tensor, Tensor, int], output: tuple[Tensor, Tensor]) -> None:
    qkv, present, ctx.num_heads = inputs
    ctx.save_for_backward(qkv, present, output[1])


def _backward(ctx: Any, of_out: Tensor, of_log_sums: Tensor) -> tuple[Tensor, None, None]:
    qkv, present, log_sums = ctx.saved_tensors
    return attend_backward(of_out.contiguous(), qkv, present, log_sums, ctx.num_heads), None, None


attend.register_autograd(_backward, setup_context=_keep)


def _by_head(features: Tensor, num_heads: int) -> Tensor:
    """[N, S, W] -> [N, H, S, D]."""
    return features.view(*features.shape[:2], num_heads, -1).transpose(1, 2)


def _exact(features: Tensor) -> torch.dtype:
    """The dtype of sums: float32, or the features' own if it is wider."""
    return torch.promote_types(features.dtype, torch.float32)


def _scores(qkv: Tensor, present: Tensor, num_heads: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Query, key and value [N, H, S, D], and scores [N, H, S, S], -inf of absent places."""
    exact = qkv.to(_exact(qkv))
    query, key, value = (_by_head(part, num_heads) for part in exact.chunk(3, dim=-1))
    scores = query @ key.mT * query.shape[-1] ** -0.5
    return query, key, value, scores.masked_fill(~present[:, None, None], -torch.inf)
