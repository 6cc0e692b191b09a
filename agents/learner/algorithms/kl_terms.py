"""KL terms to another policy, for every kind of head: the targets kept from the other policy, and the loss.

The other policy is the target network (the magnet), or an imported teacher that never changes.

Shape letters: B rows, T unroll length, P dist_params, H sub-actions, n choices of one sub-action.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from league.agents.learner.data.batch import Batch
from league.agents.losses.kl import categorical_kl, gaussian_kl
from league.agents.losses.policy import zero_invalid
from league.agents.nets.heads import CategoricalHead, GaussianHead, Head
from league.agents.nets.network import NetworkOutput
from league.agents.nets.sub_actions import SubAction, SubActionsHead, given_by

MAGNET = "magnet"
TEACHER = "teacher"


def has_kl(head: Head) -> bool:
    """True if the KL between two policies of this head has a closed form."""
    return isinstance(head, (CategoricalHead, GaussianHead, SubActionsHead))


def magnet_targets(head: Head, target: NetworkOutput, batch: Batch) -> Mapping[str, Tensor]:
    """Targets from the target network; call it while the network holds the target weights."""
    return {MAGNET: _kept(head, target, batch)}


def teacher_targets(head: Head, teacher: NetworkOutput, batch: Batch) -> Mapping[str, Tensor]:
    """Targets from the teacher; call it while the network holds the teacher's weights."""
    return {TEACHER: _kept(head, teacher, batch)}


def magnet_sum(head: Head, dist_params: Tensor, batch: Batch) -> Tensor:
    """KL(policy || target network) summed over the learnt-from decisions, a scalar.

    The policy may drop actions of the target network (the magnet) but pays for adding others.

    Args:
      dist_params: float32 [B, T, P] of the policy; carry the gradient.
      batch: with the targets of `magnet_targets`.
    Source: Sokota et al. 2023, A unified approach to reinforcement learning, quantal response equilibria, and
      two-player zero-sum games (magnetic mirror descent); summed over sub-actions, as the KL of AlphaStar.
    """
    return _kl_sum(head, dist_params, batch.precomputed[MAGNET], batch, from_policy=True)


def teacher_sum(head: Head, dist_params: Tensor, batch: Batch) -> Tensor:
    """KL(teacher || policy) summed over the learnt-from decisions, a scalar: the teacher's actions stay likely.

    Args:
      dist_params: float32 [B, T, P] of the policy; carry the gradient.
      batch: with the targets of `teacher_targets`.
    Source: Vinyals et al. 2019, AlphaStar, methods, "imitation learning" and supplementary pseudocode; summed over
      sub-actions.
    """
    return _kl_sum(head, dist_params, batch.precomputed[TEACHER], batch, from_policy=False)


@torch.no_grad()
def _kept(head: Head, other: NetworkOutput, batch: Batch) -> Tensor:
    """Targets float32 [B, T, ...] of the other policy.

    For a head with sub-actions these are the concatenated masked logits, given the choices that were made.
    """
    dist_params = other.logits[:, : batch.valid.shape[1]]
    if isinstance(head, SubActionsHead):
        dist_params = torch.cat([sub_action.logits for sub_action in _parts(head, dist_params, batch)], dim=-1)
    return dist_params


def _kl_sum(head: Head, dist_params: Tensor, kept: Tensor, batch: Batch, *, from_policy: bool) -> Tensor:
    """KL(policy || other) with `from_policy`, else KL(other || policy); summed over the learnt-from decisions."""
    if isinstance(head, GaussianHead):  # tanh is one-to-one and changes both densities by the same factor
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
