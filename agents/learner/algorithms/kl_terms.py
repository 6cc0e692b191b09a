"""The KL to another policy, for every kind of head: what is kept of the other one, and the term.

Two others are known: the target network of the policy (the magnet), and a teacher from outside that never changes.

Shape letters: B rows, T unroll length, P policy parameters, H parts of an action, n choices of one part.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from agents.learner.data.batch import Batch
from agents.losses.kl import categorical_kl, gaussian_kl
from agents.losses.policy import zero_invalid
from agents.nets.heads import CategoricalHead, GaussianHead, Head
from agents.nets.network import NetworkOutput
from agents.nets.sub_actions import SubAction, SubActionsHead, given_by

MAGNET = "magnet"
TEACHER = "teacher"


def has_kl(head: Head) -> bool:
    """Whether a KL between two policies of this head is known in closed form."""
    return isinstance(head, (CategoricalHead, GaussianHead, SubActionsHead))


def magnet_targets(head: Head, target: NetworkOutput, batch: Batch) -> Mapping[str, Tensor]:
    """What the term needs of the target network; call it while the network holds the target weights."""
    return {MAGNET: _kept(head, target, batch)}


def teacher_targets(head: Head, teacher: NetworkOutput, batch: Batch) -> Mapping[str, Tensor]:
    """What the term needs of the teacher; call it while the network holds the teacher's weights."""
    return {TEACHER: _kept(head, teacher, batch)}


def magnet_sum(head: Head, dist_params: Tensor, batch: Batch) -> Tensor:
    """KL(policy || target network) summed over the learnt-from decisions, a scalar.

    Args:
      dist_params: float32 [B, T, P] of the policy; carry the gradient.
      batch: with the constants of `magnet_targets`.
    Source: Sokota et al. 2023, as `losses.kl.magnet_loss`; parts as in the KL of AlphaStar, summed over the arguments.
    """
    return _kl_sum(head, dist_params, batch.precomputed[MAGNET], batch, from_policy=True)


def teacher_sum(head: Head, dist_params: Tensor, batch: Batch) -> Tensor:
    """KL(teacher || policy) summed over the learnt-from decisions, a scalar: what the teacher does must stay likely.

    Args:
      dist_params: float32 [B, T, P] of the policy; carry the gradient.
      batch: with the constants of `teacher_targets`.
    Source: Vinyals et al. 2019, AlphaStar, as `losses.kl.teacher_loss`; summed over the arguments of an action.
    """
    return _kl_sum(head, dist_params, batch.precomputed[TEACHER], batch, from_policy=False)


@torch.no_grad()
def _kept(head: Head, other: NetworkOutput, batch: Batch) -> Tensor:
    """Float32 [B, T, ...] of the other policy.

    Of a head with parts these are the masked logits of each part side by side, given the choices that were made.
    """
    dist_params = other.logits[:, : batch.valid.shape[1]]
    if isinstance(head, SubActionsHead):
        dist_params = torch.cat([sub_action.logits for sub_action in _parts(head, dist_params, batch)], dim=-1)
    return dist_params


def _kl_sum(head: Head, dist_params: Tensor, kept: Tensor, batch: Batch, *, from_policy: bool) -> Tensor:
    """KL(policy || other) with `from_policy`, else KL(other || policy); summed over the learnt-from decisions."""
    if isinstance(head, GaussianHead):  # squashing is one-to-one: it changes both densities alike
        pair = (dist_params, kept) if from_policy else (kept, dist_params)
        return zero_invalid(gaussian_kl(*pair), batch.learn).sum()
    sub_actions, used = [dist_params], [batch.learn]
    if isinstance(head, SubActionsHead):
        chosen = _parts(head, dist_params, batch)
        sub_actions, used = (
            [sub_action.logits for sub_action in chosen],
            [sub_action.used & batch.learn for sub_action in chosen],
        )
    others = torch.split(kept, [sub_action.shape[-1] for sub_action in sub_actions], dim=-1)
    terms = [
        zero_invalid(categorical_kl(*((sub_action, other) if from_policy else (other, sub_action))), counted).sum()
        for sub_action, other, counted in zip(sub_actions, others, used, strict=True)
    ]
    return torch.stack(terms).sum()


def _parts(head: SubActionsHead, dist_params: Tensor, batch: Batch) -> list[SubAction]:
    return head.sub_actions(dist_params, given_by(batch.actions))
