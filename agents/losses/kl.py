"""KL terms between a policy and another one: a teacher, or a target network of itself (a magnet).

T unroll length, B batch, A actions, D dimensions of a box action. Sums over valid steps.
"""

from __future__ import annotations

from torch import Tensor

from agents.losses.policy import zero_invalid
from agents.nets.distributions import log_softmax


def categorical_kl(logits: Tensor, other_logits: Tensor) -> Tensor:
    """KL(p || q), float32 [...] in nats, of masked logits [..., A]; p is the first argument, q the second.

    Actions that are illegal in both add exactly 0.
    """
    log_probs, other_log_probs = log_softmax(logits), log_softmax(other_logits)
    return (log_probs.exp() * (log_probs - other_log_probs)).sum(-1)


def gaussian_kl(dist_params: Tensor, other_dist_params: Tensor) -> Tensor:
    """KL(p || q), float32 [...] in nats, of independent normals; p is the first argument, q the second.

    Each argument is [..., 2 D]: means, then log standard deviations.
    """
    mean, log_std = dist_params.chunk(2, dim=-1)
    other_mean, other_log_std = other_dist_params.chunk(2, dim=-1)
    ratio = (2.0 * (log_std - other_log_std)).exp()
    shift = (mean - other_mean).square() * (-2.0 * other_log_std).exp()
    return (0.5 * (ratio + shift - 1.0) + other_log_std - log_std).sum(-1)


def teacher_loss(teacher_logits: Tensor, logits: Tensor, *, valid: Tensor | None = None) -> Tensor:
    """KL(teacher || policy), a scalar: the policy must cover everything that the teacher does.

    Args:
      teacher_logits: float [T, B, A], masked; taken as constants.
      logits: float [T, B, A], masked alike; carries the gradient.
      valid: bool [T, B], None when every step is valid.
    Source: Vinyals et al. 2019, AlphaStar, methods, "imitation learning" and supplementary pseudocode.
    """
    return zero_invalid(categorical_kl(teacher_logits.detach(), logits), valid).sum()


def magnet_loss(logits: Tensor, magnet_logits: Tensor, *, valid: Tensor | None = None) -> Tensor:
    """KL(policy || magnet), a scalar: the policy may drop actions of the magnet but pays for adding others.

    Args:
      logits: float [T, B, A], masked; carries the gradient.
      magnet_logits: float [T, B, A], masked alike; taken as constants.
      valid: bool [T, B], None when every step is valid.
    Source: Sokota et al. 2023, A unified approach to reinforcement learning, quantal response equilibria, and
      two-player zero-sum games (magnetic mirror descent).
    """
    return zero_invalid(categorical_kl(logits, magnet_logits.detach()), valid).sum()
