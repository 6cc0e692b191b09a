"""What every objective needs of a microbatch: the decisions time-major, the optional terms, the columns of the report.

Shape letters: B rows, T unroll length, P policy parameters, G groups of an action's parts (1 where they are not told
apart).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from agents.learner.algorithms.kl_terms import has_kl, magnet_sum, teacher_sum
from agents.learner.algorithms.loss_stats import stack_stats
from agents.learner.algorithms.objective import LossWeights
from agents.learner.config import LearnerConfig
from agents.learner.data.batch import Batch
from agents.losses.action_groups import group_sums, grouped_policy_gradient_loss, grouped_upgo, grouped_vtrace
from agents.losses.policy import MAX_LOG_RATIO, zero_invalid
from agents.losses.vtrace import VTraceReturns
from agents.nets.heads import Head
from agents.nets.network import NetworkOutput
from agents.nets.sub_actions import SubActionsHead, num_sub_actions


@dataclass(frozen=True)
class ActionGroups:
    """The decisions by the groups of their parts, whose ratios are clipped each by itself; float32 [G, T, B] each.

    Fields:
      log_probs: of what each group chose; carries gradients.
      behaviour: the same of the policy that acted; log_rhos: their difference, a constant.
    """

    log_probs: Tensor
    behaviour: Tensor
    log_rhos: Tensor


@dataclass(frozen=True)
class LossInputs:
    """T decisions of B rows, time-major.

    Fields:
      dist_params: float32 [B, T, P], as the network answered them; actions: [B, T, ...].
      log_probs: float32 [T, B] of the actions; values: float32 [T, B]. These and the parameters carry gradients.
      bootstrap: float32 [B], the value behind the last decision, a constant.
      log_rhos: float32 [T, B], log-ratio of the trained to the behaviour policy, a constant; garbage in invalid steps.
      groups: the same ratios and log-probabilities apart.
      rewards, discounts: float32 [T, B], gamma applied; valid, learn: bool [T, B].
    """

    dist_params: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    bootstrap: Tensor
    log_rhos: Tensor
    groups: ActionGroups
    rewards: Tensor
    discounts: Tensor
    valid: Tensor
    learn: Tensor


def vtrace_of(inputs: LossInputs, log_rhos: Tensor, *, config: LearnerConfig) -> VTraceReturns:
    """V-trace of the decisions by groups. log_rhos: float32 [G, T, B], of the policy that the returns are of."""
    return grouped_vtrace(
        log_rhos,
        inputs.discounts,
        inputs.rewards,
        inputs.values.detach().contiguous(),
        inputs.bootstrap,
        clip_rho=config.clip_rho,
        clip_c=config.clip_c,
        clip_pg_rho=config.clip_pg_rho,
        lambda_=config.lambda_,
        valid=inputs.valid,
    )


def loss_inputs_of(output: NetworkOutput, batch: Batch, *, head: Head, config: LearnerConfig) -> LossInputs:
    """The decisions of a microbatch and what the network says of them.

    Raises:
      ValueError: ratios per group are asked for and the unrolls do not hold the log-probabilities of the parts.
    """
    steps = batch.valid.shape[1]
    dist_params = output.logits[:, :steps]
    log_probs, groups = _by_groups(dist_params, batch, head=head, config=config)
    values = output.values.t()
    return LossInputs(
        dist_params=dist_params,
        actions=batch.actions,
        log_probs=log_probs,
        values=values[:steps],
        bootstrap=values[steps].detach(),
        log_rhos=(log_probs.detach() - batch.log_probs.t()).contiguous(),
        groups=groups,
        rewards=batch.rewards.t().contiguous(),
        discounts=(batch.discounts * config.gamma).t().contiguous(),
        valid=batch.valid.t().contiguous(),
        learn=batch.learn.t(),
    )


def group_log_probs(dist_params: Tensor, batch: Batch, *, head: Head, config: LearnerConfig) -> Tensor:
    """Float32 [G, T, B] that parameters [B, T, P] give to what each group of parts chose."""
    if not config.action_groups:
        return head.log_prob(dist_params, batch.actions).t()[None]
    return group_sums(_sub_action_log_probs(dist_params, batch, head)[0], config.action_groups)


def _by_groups(dist_params: Tensor, batch: Batch, *, head: Head, config: LearnerConfig) -> tuple[Tensor, ActionGroups]:
    """Log-probabilities float32 [T, B] of the whole actions, and what concerns the groups of their parts."""
    if not config.action_groups:
        log_probs, behaviour = head.log_prob(dist_params, batch.actions).t(), batch.log_probs.t()
        return log_probs, ActionGroups(log_probs[None], behaviour[None], (log_probs.detach() - behaviour)[None])
    if batch.sub_action_log_probs is None:
        raise ValueError("action_groups: the unrolls were recorded without the log-probabilities of the parts")
    by_sub_action, used = _sub_action_log_probs(dist_params, batch, head)
    behaviour_by_sub_action = batch.sub_action_log_probs.permute(2, 1, 0)
    return by_sub_action.sum(0), ActionGroups(
        log_probs=group_sums(by_sub_action, config.action_groups, used=used),
        behaviour=group_sums(behaviour_by_sub_action, config.action_groups, used=used),
        log_rhos=group_sums(by_sub_action.detach() - behaviour_by_sub_action, config.action_groups, used=used),
    )


def _sub_action_log_probs(dist_params: Tensor, batch: Batch, head: Head) -> tuple[Tensor, Tensor]:
    """[H, T, B] log-probabilities of the parts, 0 where one was not used, and which were."""
    assert isinstance(head, SubActionsHead), "checked when the objective was built"
    by_sub_action, used = head.sub_action_log_probs(dist_params, batch.actions)
    return by_sub_action.transpose(1, 2), used.transpose(1, 2)


def entropy_of(inputs: LossInputs, head: Head) -> Tensor:
    """Entropy summed over the learnt-from decisions, a scalar."""
    return zero_invalid(head.entropy(inputs.dist_params, inputs.actions).t(), inputs.learn).sum()


def check_terms(config: LearnerConfig, head: Head) -> None:
    """Refuse terms that the policy's distribution does not have.

    Raises:
      ValueError: a magnet or a teacher is asked for and the head has no known KL, or the groups are not of its parts.
    """
    for name, wanted in (("magnet_cost", config.magnet_cost > 0), ("teacher_cost", config.has_teacher)):
        if wanted and not has_kl(head):
            raise ValueError(
                f"{name}: the KL between two policies of a {type(head).__name__} is not known; set it to 0"
            )
    grouped = sum(len(group) for group in config.action_groups)
    if grouped and grouped != num_sub_actions(head):
        raise ValueError(f"action_groups: {grouped} parts are in groups, the actions have {num_sub_actions(head)}")


@dataclass(frozen=True)
class OptionalTerms:
    """The terms that the config switches on, scalars.

    Fields:
      weighted: sum of the UPGO loss and of the KLs to the target network and to the teacher, each times its cost.
      teacher_kl: KL(teacher || policy), unweighted.
    """

    weighted: Tensor
    teacher_kl: Tensor


def optional_terms(
    inputs: LossInputs,
    batch: Batch,
    *,
    head: Head,
    config: LearnerConfig,
    loss_weights: LossWeights,
) -> OptionalTerms:
    """UPGO, with ratios clipped per group, and the KLs."""
    total = teacher_kl = inputs.values.new_zeros(())
    if config.upgo_cost:
        returns = grouped_upgo(
            inputs.groups.log_rhos,
            inputs.discounts,
            inputs.rewards,
            inputs.values.detach().contiguous(),
            inputs.bootstrap,
            clip_pg_rho=config.clip_pg_rho,
            valid=inputs.valid,
        )
        upgoing = grouped_policy_gradient_loss(
            inputs.groups.log_probs, returns.advantages / loss_weights.advantage_scale, valid=inputs.learn
        )
        total = total + config.upgo_cost * upgoing
    if config.magnet_cost:
        total = total + config.magnet_cost * magnet_sum(head, inputs.dist_params, batch)
    if loss_weights.teacher_cost:
        teacher_kl = teacher_sum(head, inputs.dist_params, batch)
        total = total + loss_weights.teacher_cost * teacher_kl
    return OptionalTerms(total, teacher_kl)


@torch.no_grad()
def report_of(
    inputs: LossInputs,
    *,
    policy: Tensor,
    value: Tensor,
    entropy: Tensor,
    auxiliary: OptionalTerms,
    advantages: Tensor,
    targets: Tensor,
    clipped: Tensor,
) -> Tensor:
    """The columns of a microbatch.

    Args:
      policy, value, entropy, auxiliary: the terms.
      advantages: float32 [T, B], raw; targets: float32 [T, B], of the values.
      clipped: bool [T, B], where the ratio was cut.
    """
    learn = inputs.learn
    log_rhos = zero_invalid(inputs.log_rhos, learn)
    rhos = zero_invalid(log_rhos.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp(), learn)
    count = learn.sum()
    steps = count.to(rhos.dtype)
    total_rho = rhos.sum()
    return stack_stats(
        steps=steps,
        policy=policy,
        value=value,
        entropy=entropy,
        auxiliary=auxiliary.weighted,
        teacher_kl=auxiliary.teacher_kl,
        squared_advantage=zero_invalid(advantages, learn).square().sum(),
        rho_clipped=(clipped & learn).sum().to(rhos.dtype),
        rho=total_rho,
        squared_rho=rhos.square().sum(),
        kl=total_rho - steps - log_rhos.sum(),
        target=zero_invalid(targets, learn).sum(),
        squared_target=zero_invalid(targets, learn).square().sum(),
    )
