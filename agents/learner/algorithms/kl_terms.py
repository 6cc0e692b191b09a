"""The KL to another policy, for every kind of head: what is kept of the other one, and the term.

Two others are known: the slow copy of the policy (the magnet), and a teacher from outside that never changes.

Shape letters: B rows, T unroll length, P policy parameters, H parts of an action, n choices of one part.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from agents.learner.data.batch import Batch
from agents.losses.kl import categorical_kl, gaussian_kl
from agents.losses.policy import known
from agents.nets.heads import CategoricalHead, GaussianHead, Head
from agents.nets.network import NetworkOutput
from agents.nets.sub_actions import Part, PartsHead, given_by

MAGNET = "magnet"
TEACHER = "teacher"


def has_kl(head: Head) -> bool:
    """Whether a KL between two policies of this head is known in closed form."""
    return isinstance(head, (CategoricalHead, GaussianHead, PartsHead))


def magnet_constants(head: Head, slow: NetworkOutput, batch: Batch) -> Mapping[str, Tensor]:
    """What the term needs of the slow copy; call it while the network holds the slow weights."""
    return {MAGNET: _kept(head, slow, batch)}


def teacher_constants(head: Head, teacher: NetworkOutput, batch: Batch) -> Mapping[str, Tensor]:
    """What the term needs of the teacher; call it while the network holds the teacher's weights."""
    return {TEACHER: _kept(head, teacher, batch)}


def magnet_sum(head: Head, parameters: Tensor, batch: Batch) -> Tensor:
    """KL(policy || slow copy) summed over the learnt-from decisions, a scalar.

    Args:
      parameters: float32 [B, T, P] of the policy; carry the gradient.
      batch: with the constants of `magnet_constants`.
    Source: Sokota et al. 2023, as `losses.kl.magnet_loss`; parts as in the KL of AlphaStar, summed over the arguments.
    """
    return _kl_sum(head, parameters, batch.constants[MAGNET], batch, from_policy=True)


def teacher_sum(head: Head, parameters: Tensor, batch: Batch) -> Tensor:
    """KL(teacher || policy) summed over the learnt-from decisions, a scalar: what the teacher does must stay likely.

    Args:
      parameters: float32 [B, T, P] of the policy; carry the gradient.
      batch: with the constants of `teacher_constants`.
    Source: Vinyals et al. 2019, AlphaStar, as `losses.kl.teacher_loss`; summed over the arguments of an action.
    """
    return _kl_sum(head, parameters, batch.constants[TEACHER], batch, from_policy=False)


@torch.no_grad()
def _kept(head: Head, other: NetworkOutput, batch: Batch) -> Tensor:
    """Float32 [B, T, ...] of the other policy.

    Of a head with parts these are the masked logits of each part side by side, given the choices that were made.
    """
    parameters = other.logits[:, : batch.valid.shape[1]]
    if isinstance(head, PartsHead):
        parameters = torch.cat([part.logits for part in _parts(head, parameters, batch)], dim=-1)
    return parameters


def _kl_sum(head: Head, parameters: Tensor, kept: Tensor, batch: Batch, *, from_policy: bool) -> Tensor:
    """KL(policy || other) with `from_policy`, else KL(other || policy); summed over the learnt-from decisions."""
    if isinstance(head, GaussianHead):  # squashing is one-to-one: it changes both densities alike
        pair = (parameters, kept) if from_policy else (kept, parameters)
        return known(gaussian_kl(*pair), batch.learn).sum()
    parts, used = [parameters], [batch.learn]
    if isinstance(head, PartsHead):
        chosen = _parts(head, parameters, batch)
        parts, used = [part.logits for part in chosen], [part.used & batch.learn for part in chosen]
    others = torch.split(kept, [part.shape[-1] for part in parts], dim=-1)
    terms = [
        known(categorical_kl(*((part, other) if from_policy else (other, part))), counted).sum()
        for part, other, counted in zip(parts, others, used, strict=True)
    ]
    return torch.stack(terms).sum()


def _parts(head: PartsHead, parameters: Tensor, batch: Batch) -> list[Part]:
    return head.parts(parameters, given_by(batch.actions))
