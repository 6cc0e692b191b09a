"""The KL to the slow copy of the policy, for every kind of head: what is kept of the slow copy, and the term.

Shape letters: B rows, T unroll length, P policy parameters, H parts of an action, n choices of one part.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from agents.learner.batch import Batch
from agents.losses.kl import categorical_kl, gaussian_kl
from agents.losses.policy import known
from agents.nets.heads import CategoricalHead, GaussianHead, Head
from agents.nets.network import NetworkOutput
from agents.nets.parts import Part, PartsHead, given_by

MAGNET = "magnet"


def has_magnet(head: Head) -> bool:
    """Whether a KL between two policies of this head is known in closed form."""
    return isinstance(head, (CategoricalHead, GaussianHead, PartsHead))


@torch.no_grad()
def magnet_constants(head: Head, slow: NetworkOutput, batch: Batch) -> Mapping[str, Tensor]:
    """What the term needs of the slow copy, float32 [B, T, ...]; call it while the network holds the slow weights.

    Of a head with parts these are the masked logits of each part side by side, given the choices that were made.
    """
    parameters = slow.logits[:, : batch.valid.shape[1]]
    if isinstance(head, PartsHead):
        parameters = torch.cat([part.logits for part in _parts(head, parameters, batch)], dim=-1)
    return {MAGNET: parameters}


def magnet_sum(head: Head, parameters: Tensor, batch: Batch) -> Tensor:
    """KL(policy || slow copy) summed over the learnt-from decisions, a scalar.

    Args:
      parameters: float32 [B, T, P] of the policy; carry the gradient.
      batch: with the constants of `magnet_constants`.
    Source: Sokota et al. 2023, as `losses.kl.magnet_loss`; parts as in the KL of AlphaStar, summed over the arguments.
    """
    other = batch.constants[MAGNET]
    if isinstance(head, GaussianHead):  # squashing is one-to-one: it changes both densities alike
        return known(gaussian_kl(parameters, other), batch.learn).sum()
    if not isinstance(head, PartsHead):
        return known(categorical_kl(parameters, other), batch.learn).sum()
    parts = _parts(head, parameters, batch)
    others = torch.split(other, [part.logits.shape[-1] for part in parts], dim=-1)
    terms = [
        known(categorical_kl(part.logits, logits), part.used & batch.learn).sum()
        for part, logits in zip(parts, others, strict=True)
    ]
    return torch.stack(terms).sum()


def _parts(head: PartsHead, parameters: Tensor, batch: Batch) -> list[Part]:
    return head.parts(parameters, given_by(batch.actions))
