"""KL divergences between two policies, per step. A actions, D dimensions of a box action."""

from __future__ import annotations

from torch import Tensor

from league.agents.nets.kernels.distributions import log_softmax, probabilities


def categorical_kl(logits: Tensor, other_logits: Tensor) -> Tensor:
    """KL(p || q), float32 [...] in nats, of masked logits [..., A]; p is the first argument, q the second.

    Actions that are illegal in both add exactly 0.
    """
    log_probs, other_log_probs = log_softmax(logits), log_softmax(other_logits)
    return (probabilities(log_probs) * (log_probs - other_log_probs)).sum(-1)


def gaussian_kl(dist_params: Tensor, other_dist_params: Tensor) -> Tensor:
    """KL(p || q), float32 [...] in nats, of independent normals; p is the first argument, q the second.

    Each argument is [..., 2 D]: means, then log standard deviations.
    """
    mean, log_std = dist_params.chunk(2, dim=-1)
    other_mean, other_log_std = other_dist_params.chunk(2, dim=-1)
    ratio = (2.0 * (log_std - other_log_std)).exp()
    shift = (mean - other_mean).square() * (-2.0 * other_log_std).exp()
    return (0.5 * (ratio + shift - 1.0) + other_log_std - log_std).sum(-1)
