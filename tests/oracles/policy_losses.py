"""Slow literal transcriptions of the policy, value, entropy and KL terms: one step at a time, plain Python floats."""

from __future__ import annotations

import math
from collections.abc import Sequence


def softmax(logits: Sequence[float]) -> list[float]:
    """Probabilities of a row of logits."""
    top = max(logits)
    weights = [math.exp(logit - top) for logit in logits]
    return [weight / sum(weights) for weight in weights]


def ppo_term(log_prob: float, behaviour_log_prob: float, advantage: float, clip: float) -> float:
    """The surrogate of one step (to be maximised), by cases."""
    ratio = math.exp(log_prob - behaviour_log_prob)
    if advantage >= 0:
        return min(ratio, 1.0 + clip) * advantage
    return max(ratio, 1.0 - clip) * advantage


def appo_term(
    log_prob: float, behaviour_log_prob: float, target_log_prob: float, advantage: float, *, clip: float, bound: float
) -> float:
    """IMPACT's surrogate of one step (to be maximised), by cases."""
    correction = math.exp(behaviour_log_prob) / math.exp(target_log_prob)
    ratio = min(correction, bound) * math.exp(log_prob) / math.exp(behaviour_log_prob)
    return ppo_term(math.log(ratio), 0.0, advantage, clip)


def clipped_value_term(value: float, old_value: float, target: float, clip: float) -> float:
    """Half the larger of two squared errors."""
    held = min(max(value, old_value - clip), old_value + clip)
    return 0.5 * max((value - target) ** 2, (held - target) ** 2)


def entropy(probs: Sequence[float]) -> float:
    """In nats; actions of probability 0 add nothing."""
    return -sum(p * math.log(p) for p in probs if p > 0)


def kl(probs: Sequence[float], other_probs: Sequence[float]) -> float:
    """KL(probs || other_probs) in nats."""
    return sum(p * math.log(p / q) for p, q in zip(probs, other_probs, strict=True) if p > 0)


def neurd_logit_gradient(
    logits: Sequence[float], legal: Sequence[bool], action: int, advantage: float, min_prob: float
) -> list[float]:
    """How far one NeuRD step of size 1 moves each logit: the chosen one up, the mean of the legal ones kept."""
    probs = softmax([x if ok else -math.inf for x, ok in zip(logits, legal, strict=True)])
    weight = advantage / max(probs[action], min_prob)
    count = sum(legal)
    return [(weight * ((index == action) - 1.0 / count)) if ok else 0.0 for index, ok in enumerate(legal)]
