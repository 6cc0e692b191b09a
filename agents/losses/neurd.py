"""NeuRD: a policy gradient that bypasses the softmax, so that rare actions can come back.

T unroll length, B batch, A actions. Sums over valid steps.
"""

from __future__ import annotations

import torch
from torch import Tensor

from league.agents.losses.policy import zero_invalid
from league.agents.nets.kernels.distributions import ILLEGAL_LOGIT, log_softmax, probabilities


def neurd_loss(
    logits: Tensor,
    actions: Tensor,
    advantages: Tensor,
    *,
    min_prob: float = 0.05,
    max_logit: float | None = None,
    valid: Tensor | None = None,
) -> Tensor:
    """-sum of the chosen action's centred logit times advantage / max(pi, min_prob), a scalar.

    A softmax gradient carries a factor pi and vanishes for actions that have become rare. Here the sampling
    probability pi and the weight 1 / pi cancel instead.

    Args:
      logits: float [T, B, A], illegal actions masked; carries the gradient. Centred over the legal actions.
      actions: int64 [T, B], the actions played.
      advantages: float [T, B], importance weight included (as V-trace returns them); taken as constants.
      min_prob: floor of the probability in the weight: bounds the step at advantage / min_prob.
      max_logit: a centred logit beyond +-max_logit that would move further out gets no gradient.
        None for no bound.
      valid: bool [T, B], None when every step is valid.
    Source: Hennes et al. 2020, Neural replicator dynamics: multiagent learning via hedging policy gradients.
    """
    index = actions.unsqueeze(-1)
    centred = _centre(logits).gather(-1, index).squeeze(-1)
    with torch.no_grad():
        probs = log_softmax(logits).gather(-1, index).squeeze(-1).exp()
        weights = advantages / probs.clamp(min=min_prob)
        if max_logit is not None:
            outward = (centred.abs() > max_logit) & (centred * weights > 0)
            weights = weights.masked_fill(outward, 0.0)
    return -zero_invalid(centred * weights, valid).sum()


def neurd_entropy_loss(logits: Tensor, *, valid: Tensor | None = None) -> Tensor:
    """Entropy in the same geometry, a scalar to be minimised: each legal logit is pushed by -(log pi + entropy).

    Args:
      logits: float [T, B, A], illegal actions masked; carries the gradient.
      valid: bool [T, B], None when every step is valid.
    """
    with torch.no_grad():
        log_probs = log_softmax(logits)
        entropies = -(probabilities(log_probs) * log_probs).sum(-1, keepdim=True)
        pushes = (log_probs + entropies).masked_fill(_illegal(logits), 0.0)
    return zero_invalid((_centre(logits) * pushes).sum(-1), valid).sum()


def _illegal(logits: Tensor) -> Tensor:
    return logits.detach() < 0.5 * ILLEGAL_LOGIT


def _centre(logits: Tensor) -> Tensor:
    """Logits [..., A] minus their mean over legal actions; 0 at illegal ones."""
    illegal = _illegal(logits)
    legal_logits = logits.masked_fill(illegal, 0.0)
    num_legal = (~illegal).sum(-1, keepdim=True).to(logits.dtype)
    return (legal_logits - legal_logits.sum(-1, keepdim=True) / num_legal).masked_fill(illegal, 0.0)
