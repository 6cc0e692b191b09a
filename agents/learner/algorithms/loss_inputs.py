"""Arranges the decisions of a microbatch time-major, with the log-probabilities that every objective needs.

Shape letters: B rows, T unroll length, P dist_params, G groups of sub-actions (1 for the whole action).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from league.agents.learner.algorithms.config import ActorCriticConfig
from league.agents.learner.data.batch import Batch
from league.agents.losses.action_groups import group_sums, grouped_vtrace
from league.agents.losses.vtrace import VTraceReturns
from league.agents.nets.heads import Head
from league.agents.nets.network import NetworkOutput
from league.agents.nets.sub_actions import SubActionsHead
from league.envs.protocol import SEAT_GROUP

Groups = tuple[tuple[int, ...], ...]
"""The sub-actions of each group, counted from 0; empty for the whole action as one group."""


@dataclass(frozen=True)
class ActionGroups:
    """The decisions by groups of sub-actions, whose ratios are clipped separately; float32 [G, T, B] each.

    Fields:
      log_probs: of each group's choices; carries gradients.
      behaviour: the same of the policy that acted; log_rhos: their difference, a constant.
    """

    log_probs: Tensor
    behaviour: Tensor
    log_rhos: Tensor


@dataclass(frozen=True)
class LossInputs:
    """T decisions of B rows, time-major, as an objective needs them.

    Fields:
      dist_params: float32 [B, T, P], outputs of the network; actions: [B, T, ...].
      log_probs, entropies: float32 [T, B] of the actions; values: float32 [T, B]. These carry gradients, and so do the
        dist_params.
      bootstrap: float32 [B], the value after the last decision, a constant.
      log_rhos: float32 [T, B], log-ratio of the trained to the behaviour policy, a constant; garbage in invalid steps.
      groups: the same ratios and log-probabilities by groups.
      rewards, discounts: float32 [T, B], gamma applied; valid, learn: bool [T, B].
    """

    dist_params: Tensor
    actions: Tensor
    log_probs: Tensor
    entropies: Tensor
    values: Tensor
    bootstrap: Tensor
    log_rhos: Tensor
    groups: ActionGroups
    rewards: Tensor
    discounts: Tensor
    valid: Tensor
    learn: Tensor


def vtrace_of(inputs: LossInputs, log_rhos: Tensor, *, options: ActorCriticConfig) -> VTraceReturns:
    """V-trace of the decisions by groups. log_rhos: float32 [G, T, B], of the policy whose returns are estimated."""
    return grouped_vtrace(
        log_rhos,
        inputs.discounts,
        inputs.rewards,
        inputs.values.detach(),
        inputs.bootstrap,
        clip_rho=options.clip_rho,
        clip_c=options.clip_c,
        clip_pg_rho=options.clip_pg_rho,
        lambda_=options.lambda_,
        valid=inputs.valid,
    )


def scaled_rewards(batch: Batch, scales: Sequence[float]) -> Tensor:
    """Rewards float32 [B, T], times the one factor or the factor of each row's seat group."""
    if len(scales) < 2:
        return batch.rewards * scales[0] if scales else batch.rewards
    marks = batch.obs[SEAT_GROUP][:, : batch.rewards.shape[1]]
    return batch.rewards * (marks.to(batch.rewards.dtype) @ batch.rewards.new_tensor(scales))


def loss_inputs_of(
    output: NetworkOutput,
    batch: Batch,
    *,
    head: Head,
    gamma: float,
    action_groups: Groups,
    reward_scales: Sequence[float] = (),
) -> LossInputs:
    """Arrange the decisions of a microbatch and the network's outputs for them.

    Args:
      reward_scales: see `scaled_rewards`.
    Raises:
      ValueError: ratios per group are configured and the unrolls lack the log-probabilities of sub-actions.
    """
    steps = batch.valid.shape[1]
    dist_params = output.logits[:, :steps]
    log_probs, entropies, groups = _by_groups(dist_params, batch, head=head, action_groups=action_groups)
    values = output.values.t()
    return LossInputs(
        dist_params=dist_params,
        actions=batch.actions,
        log_probs=log_probs,
        entropies=entropies,
        values=values[:steps],
        bootstrap=values[steps].detach(),
        log_rhos=log_probs.detach() - batch.log_probs.t() if action_groups else groups.log_rhos[0],
        groups=groups,
        rewards=scaled_rewards(batch, reward_scales).t(),
        discounts=(batch.discounts * gamma).t(),
        valid=batch.valid.t(),
        learn=batch.learn.t(),
    )


def group_log_probs(dist_params: Tensor, batch: Batch, *, head: Head, action_groups: Groups) -> Tensor:
    """Log-probabilities float32 [G, T, B] of each group's choices under dist_params [B, T, P]."""
    if not action_groups:
        return head.log_prob(dist_params, batch.actions).t()[None]
    return group_sums(_sub_action_log_probs(dist_params, batch, head)[0], action_groups)


def _by_groups(
    dist_params: Tensor, batch: Batch, *, head: Head, action_groups: Groups
) -> tuple[Tensor, Tensor, ActionGroups]:
    """Log-probabilities and entropies float32 [T, B] of the whole actions, and their groups of sub-actions."""
    if not action_groups:
        log_probs, entropies = (terms.t() for terms in head.log_prob_and_entropy(dist_params, batch.actions))
        behaviour = batch.log_probs.t()
        log_rhos = log_probs.detach() - behaviour
        return log_probs, entropies, ActionGroups(log_probs[None], behaviour[None], log_rhos[None])
    if batch.sub_action_log_probs is None:
        raise ValueError("action_groups: the unrolls were recorded without the log-probabilities of sub-actions")
    by_sub_action, used, entropies = _sub_action_log_probs(dist_params, batch, head)
    behaviour_by_sub_action = batch.sub_action_log_probs.permute(2, 1, 0)
    groups = ActionGroups(
        log_probs=group_sums(by_sub_action, action_groups, used=used),
        behaviour=group_sums(behaviour_by_sub_action, action_groups, used=used),
        log_rhos=group_sums(by_sub_action.detach() - behaviour_by_sub_action, action_groups, used=used),
    )
    return by_sub_action.sum(0), entropies.sum(0), groups


def _sub_action_log_probs(dist_params: Tensor, batch: Batch, head: Head) -> tuple[Tensor, Tensor, Tensor]:
    """[H, T, B] log-probabilities of the sub-actions, 0 where unused, flags of the used ones, and entropies."""
    assert isinstance(head, SubActionsHead), "checked when the objective was built"
    log_probs, used, entropies = head.sub_action_log_probs(dist_params, batch.actions)
    return log_probs.transpose(1, 2), used.transpose(1, 2), entropies.transpose(1, 2)
