"""Log-probabilities, entropies and samples of the distributions of policies, always in float32.

Shape letters: ... any leading axes, A actions, D dimensions of a box action.
Noise is uniform in [0, 1) for every distribution, so that sampling needs only one kind of generator.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

ILLEGAL_LOGIT = -1e9
"""Logit of an illegal action: its exp() is exactly 0 in float32 and, unlike -inf, makes no NaN in a gradient."""

_FEW_ACTIONS, _FEWER_ACTIONS = 64, 16
"""Actions up to which a softmax, and the search for a sample, are faster across rows than along them."""


def mask_logits(logits: Tensor, action_mask: Tensor | None) -> Tensor:
    """Float32 logits in which illegal actions cannot be drawn.

    Args:
      logits: floating [..., A].
      action_mask: bool [..., A], True where legal, at least one True per row; None if everything is legal.
    """
    logits = logits.float()
    return logits if action_mask is None else torch.where(action_mask, logits, ILLEGAL_LOGIT)


def mix_uniform(logits: Tensor, share: float) -> Tensor:
    """Logits of the policy (1 - share) * softmax(logits) + share / (number of legal actions), float32 [..., A].

    Args:
      logits: masked float [..., A]; carries the gradient. Illegal actions stay illegal, also where all are.
      share: in [0, 1).
    Source: Hafner et al. 2023, Mastering diverse domains through world models, "unimix categoricals".
    """
    if share == 0.0:
        return logits
    legal = logits.detach() > ILLEGAL_LOGIT / 2
    count = legal.sum(-1, keepdim=True).clamp(min=1)
    kept = log_softmax(logits) + math.log1p(-share)
    mixed = torch.logaddexp(kept, (share / count).log())
    return torch.where(legal, mixed, ILLEGAL_LOGIT)


def log_softmax(logits: Tensor) -> Tensor:
    """Log-probabilities float32 [..., A] of masked logits [..., A]."""
    return by_action(logits).t().view(logits.shape)


def probabilities(logits: Tensor) -> Tensor:
    """Probabilities float32 [..., A] of masked logits or log-probabilities [..., A].

    The exponential of a log-probability of an illegal action takes sixty times as long as that of another number.
    """
    rows = logits.float().reshape(-1, logits.shape[-1])
    if _has_many(rows):
        return torch.softmax(rows, dim=-1).view(logits.shape)
    return torch.softmax(rows.t(), dim=0).t().view(logits.shape)


def by_action(logits: Tensor) -> Tensor:
    """Log-probabilities float32 [A, N] of masked logits [..., A], N = all leading axes."""
    rows = logits.float().reshape(-1, logits.shape[-1])
    if _has_many(rows):
        return torch.log_softmax(rows, dim=-1).t()
    # Over the first axis of a transposed view the kernel is vectorised across rows: 14 times faster for 7 actions.
    return torch.log_softmax(rows.t(), dim=0)


def _has_many(rows: Tensor) -> bool:
    """True if a softmax of rows [N, A] is faster along them than across them."""
    return rows.shape[1] > _FEW_ACTIONS or rows.device.type != "cpu"


def categorical_log_prob(logits: Tensor, actions: Tensor) -> Tensor:
    """Log-probability float32 [...] of the actions int64 [...] under masked logits [..., A]."""
    return log_softmax(logits).gather(-1, actions.unsqueeze(-1)).squeeze(-1)


def categorical_entropy(logits: Tensor) -> Tensor:
    """Entropy float32 [...] in nats of masked logits [..., A]; illegal actions add exactly 0."""
    log_probs = log_softmax(logits)
    return -(probabilities(log_probs) * log_probs).sum(-1)


def categorical_log_prob_and_entropy(logits: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
    """`categorical_log_prob` and `categorical_entropy` of the same logits, from one softmax with its gradient."""
    log_probs, entropies = _LogProbAndEntropy.apply(logits, actions)  # type: ignore[no-untyped-call]
    return log_probs, entropies


class _LogProbAndEntropy(torch.autograd.Function):
    """With p = softmax(logits): d log p_a = onehot(a) - p, and d entropy = -p * (log p + entropy)."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        log_probs = by_action(logits)
        probs, index = torch.softmax(log_probs, 0), actions.reshape(1, -1)
        entropies = (probs * log_probs).sum(0, keepdim=True).neg_()
        ctx.save_for_backward(log_probs, probs, entropies, index)
        return log_probs.gather(0, index).view(actions.shape), entropies.view(actions.shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        log_probs, probs, entropies, index = ctx.saved_tensors
        shape = gradients[0].shape
        of_log_prob, of_entropy = (gradient.reshape(1, -1) for gradient in gradients)
        of_logits = torch.addcmul(of_log_prob, of_entropy, log_probs + entropies).mul_(probs).neg_()
        of_logits.scatter_add_(0, index, of_log_prob)
        return of_logits.t().reshape(*shape, -1), None


def sample_categorical(logits: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Draw one action per row by inverting its distribution function.

    Args:
      logits: masked float [..., A].
      uniforms: float32 [...] in [0, 1); equal uniforms give equal actions.
    Returns:
      Actions int64 [...] and their log-probabilities float32 [...]. An illegal action is never drawn: the distribution
      function does not rise at it. Of a row with NaN the log-probability is NaN.
    """
    log_probs = by_action(logits)
    if len(log_probs) > _FEWER_ACTIONS:
        rising = torch.softmax(log_probs.t(), 1).cumsum_(1)
        actions = torch.searchsorted(rising, uniforms.reshape(-1, 1) * rising[:, -1:], right=True).t()
        actions.clamp_(max=len(log_probs) - 1)  # of a row with NaN it is one more than there are
    else:
        rising = torch.softmax(log_probs, 0).cumsum_(0)
        actions = (rising <= uniforms.reshape(-1) * rising[-1]).sum(0, keepdim=True)
    return actions.view(uniforms.shape), log_probs.gather(0, actions).view(uniforms.shape)


def gaussian_log_densities(mean: Tensor, log_std: Tensor, actions: Tensor) -> Tensor:
    """Log-densities float32 [..., D] of actions [..., D], each under the normal with its `mean` and `log_std`."""
    mean, log_std = mean.float(), log_std.float()
    scaled = (actions.float() - mean) * torch.exp(-log_std)
    return -(0.5 * scaled.square() + log_std + 0.5 * math.log(2.0 * math.pi))


def gaussian_log_prob(mean: Tensor, log_std: Tensor, actions: Tensor) -> Tensor:
    """Log-density float32 [...] of actions [..., D] under independent normals with `mean` and `log_std` [..., D]."""
    return gaussian_log_densities(mean, log_std, actions).sum(-1)


def gaussian_entropy(log_std: Tensor) -> Tensor:
    """Differential entropy float32 [...] in nats of independent normals with `log_std` [..., D]."""
    return (log_std.float() + 0.5 * math.log(2.0 * math.pi * math.e)).sum(-1)


def sample_gaussian(mean: Tensor, log_std: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Draw from independent normals by inverting their distribution functions.

    Args:
      mean, log_std: float [..., D].
      uniforms: float32 [..., D] in [0, 1).
    Returns:
      Actions float32 [..., D] and their log-densities float32 [...].
    """
    mean, log_std = mean.float(), log_std.float()
    limit = 1.0 - torch.finfo(torch.float32).eps  # a uniform of exactly 0 would map to minus infinity
    normals = math.sqrt(2.0) * torch.erfinv((2.0 * uniforms - 1.0).clamp(-limit, limit))
    actions = torch.addcmul(mean, normals, log_std.exp())
    return actions, gaussian_log_prob(mean, log_std, actions)
