"""How undecided a policy is, as a sum to be maximised. T unroll length, B batch, A actions."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from agents.losses.policy import known
from agents.nets.distributions import ILLEGAL_LOGIT, categorical_entropy

Normaliser = Literal["none", "legal", "actions"]


def entropy_sum(logits: Tensor, *, normalise: Normaliser = "none", valid: Tensor | None = None) -> Tensor:
    """Entropy of masked categorical policies, summed over valid steps, a scalar; subtract it times a weight.

    Args:
      logits: float [T, B, A], illegal actions masked by `distributions.mask_logits`; carries the gradient.
      normalise: "none" for nats; "legal" divides each step's entropy by the log of its number of legal actions, so that
        every step weighs the same (a step with one legal action counts 0); "actions" divides by log A.
      valid: bool [T, B], None when every step is valid.
    Raises:
      ValueError: an unknown `normalise`.
    Source: for "actions", Vinyals et al. 2019, AlphaStar, supplementary pseudocode.
    """
    entropies = categorical_entropy(logits)
    if normalise == "legal":
        num_legal = (logits.detach() > 0.5 * ILLEGAL_LOGIT).sum(-1)
        # Where one action is legal the entropy is 0: any divisor will do but log 1.
        entropies = entropies / torch.log(num_legal.clamp(min=2).to(entropies.dtype))
    elif normalise == "actions":
        entropies = entropies / math.log(max(logits.shape[-1], 2))
    elif normalise != "none":
        raise ValueError(f"normalise must be 'none', 'legal' or 'actions', got {normalise!r}")
    return known(entropies, valid).sum()
