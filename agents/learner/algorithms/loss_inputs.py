"""What every objective needs of a microbatch: the decisions time-major, the optional terms, the columns of the report.

Shape letters: B rows, T unroll length, P policy parameters, G groups of an action's parts (1 where they are not told
apart).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from agents.learner.algorithms.kl_terms import has_kl, magnet_sum, teacher_sum
from agents.learner.algorithms.loss_stats import columns_of
from agents.learner.algorithms.objective import Coefficients
from agents.learner.config import LearnerConfig
from agents.learner.data.batch import Batch
from agents.losses.action_groups import group_sums, grouped_policy_gradient_loss, grouped_upgo, grouped_vtrace
from agents.losses.policy import MAX_LOG_RATIO, known
from agents.losses.vtrace import VTraceReturns
from agents.nets.heads import Head
from agents.nets.network import NetworkOutput
from agents.nets.sub_actions import PartsHead, num_parts


@dataclass(frozen=True)
class Groups:
    """The decisions by the groups of their parts, whose ratios are clipped each by itself; float32 [G, T, B] each.

    Fields:
      log_probs: of what each group chose; carries gradients.
      behaviour: the same of the policy that acted; log_rhos: their difference, a constant.
    """

    log_probs: Tensor
    behaviour: Tensor
    log_rhos: Tensor


@dataclass(frozen=True)
class Decisions:
    """T decisions of B rows, time-major.

    Fields:
      parameters: float32 [B, T, P], as the network answered them; actions: [B, T, ...].
      log_probs: float32 [T, B] of the actions; values: float32 [T, B]. These and the parameters carry gradients.
      bootstrap: float32 [B], the value behind the last decision, a constant.
      log_rhos: float32 [T, B], log-ratio of the trained to the behaviour policy, a constant; garbage in invalid steps.
      groups: the same ratios and log-probabilities apart.
      rewards, discounts: float32 [T, B], gamma applied; valid, learn: bool [T, B].
    """

    parameters: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    bootstrap: Tensor
    log_rhos: Tensor
    groups: Groups
    rewards: Tensor
    discounts: Tensor
    valid: Tensor
    learn: Tensor


def vtrace_of(decisions: Decisions, log_rhos: Tensor, *, config: LearnerConfig) -> VTraceReturns:
    """V-trace of the decisions by groups. log_rhos: float32 [G, T, B], of the policy that the returns are of."""
    return grouped_vtrace(
        log_rhos,
        decisions.discounts,
        decisions.rewards,
        decisions.values.detach().contiguous(),
        decisions.bootstrap,
        clip_rho=config.clip_rho,
        clip_c=config.clip_c,
        clip_pg_rho=config.clip_pg_rho,
        lambda_=config.lambda_,
        valid=decisions.valid,
    )


def decisions_of(output: NetworkOutput, batch: Batch, *, head: Head, config: LearnerConfig) -> Decisions:
    """The decisions of a microbatch and what the network says of them.

    Raises:
      ValueError: ratios per group are asked for and the unrolls do not hold the log-probabilities of the parts.
    """
    steps = batch.valid.shape[1]
    parameters = output.logits[:, :steps]
    log_probs, groups = _by_groups(parameters, batch, head=head, config=config)
    values = output.values.t()
    return Decisions(
        parameters=parameters,
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


def group_log_probs(parameters: Tensor, batch: Batch, *, head: Head, config: LearnerConfig) -> Tensor:
    """Float32 [G, T, B] that parameters [B, T, P] give to what each group of parts chose."""
    if not config.action_groups:
        return head.log_prob(parameters, batch.actions).t()[None]
    return group_sums(_part_log_probs(parameters, batch, head)[0], config.action_groups)


def _by_groups(parameters: Tensor, batch: Batch, *, head: Head, config: LearnerConfig) -> tuple[Tensor, Groups]:
    """Log-probabilities float32 [T, B] of the whole actions, and what concerns the groups of their parts."""
    if not config.action_groups:
        log_probs, behaviour = head.log_prob(parameters, batch.actions).t(), batch.log_probs.t()
        return log_probs, Groups(log_probs[None], behaviour[None], (log_probs.detach() - behaviour)[None])
    if batch.part_log_probs is None:
        raise ValueError("action_groups: the unrolls were recorded without the log-probabilities of the parts")
    by_part, used = _part_log_probs(parameters, batch, head)
    behaviour_by_part = batch.part_log_probs.permute(2, 1, 0)
    return by_part.sum(0), Groups(
        log_probs=group_sums(by_part, config.action_groups, used=used),
        behaviour=group_sums(behaviour_by_part, config.action_groups, used=used),
        log_rhos=group_sums(by_part.detach() - behaviour_by_part, config.action_groups, used=used),
    )


def _part_log_probs(parameters: Tensor, batch: Batch, head: Head) -> tuple[Tensor, Tensor]:
    """[H, T, B] log-probabilities of the parts, 0 where one was not used, and which were."""
    assert isinstance(head, PartsHead), "checked when the objective was built"
    by_part, used = head.part_log_probs(parameters, batch.actions)
    return by_part.transpose(1, 2), used.transpose(1, 2)


def entropy_of(decisions: Decisions, head: Head) -> Tensor:
    """Entropy summed over the learnt-from decisions, a scalar."""
    return known(head.entropy(decisions.parameters, decisions.actions).t(), decisions.learn).sum()


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
    if grouped and grouped != num_parts(head):
        raise ValueError(f"action_groups: {grouped} parts are in groups, the actions have {num_parts(head)}")


@dataclass(frozen=True)
class OptionalTerms:
    """The terms that the config switches on, scalars.

    Fields:
      weighted: sum of the UPGO loss and of the KLs to the slow copy and to the teacher, each times its cost.
      teacher_kl: KL(teacher || policy), unweighted.
    """

    weighted: Tensor
    teacher_kl: Tensor


def optional_terms(
    decisions: Decisions,
    batch: Batch,
    *,
    head: Head,
    config: LearnerConfig,
    coefficients: Coefficients,
) -> OptionalTerms:
    """UPGO, with ratios clipped per group, and the KLs."""
    total = teacher_kl = decisions.values.new_zeros(())
    if config.upgo_cost:
        returns = grouped_upgo(
            decisions.groups.log_rhos,
            decisions.discounts,
            decisions.rewards,
            decisions.values.detach().contiguous(),
            decisions.bootstrap,
            clip_pg_rho=config.clip_pg_rho,
            valid=decisions.valid,
        )
        upgoing = grouped_policy_gradient_loss(
            decisions.groups.log_probs, returns.advantages / coefficients.advantage_scale, valid=decisions.learn
        )
        total = total + config.upgo_cost * upgoing
    if config.magnet_cost:
        total = total + config.magnet_cost * magnet_sum(head, decisions.parameters, batch)
    if coefficients.teacher_cost:
        teacher_kl = teacher_sum(head, decisions.parameters, batch)
        total = total + coefficients.teacher_cost * teacher_kl
    return OptionalTerms(total, teacher_kl)


@torch.no_grad()
def report_of(
    decisions: Decisions,
    *,
    policy: Tensor,
    value: Tensor,
    entropy: Tensor,
    extra: OptionalTerms,
    advantages: Tensor,
    targets: Tensor,
    clipped: Tensor,
) -> Tensor:
    """The columns of a microbatch.

    Args:
      policy, value, entropy, extra: the terms.
      advantages: float32 [T, B], raw; targets: float32 [T, B], of the values.
      clipped: bool [T, B], where the ratio was cut.
    """
    learn = decisions.learn
    log_rhos = known(decisions.log_rhos, learn)
    rhos = known(log_rhos.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp(), learn)
    count = learn.sum()
    steps = count.to(rhos.dtype)
    total_rho = rhos.sum()
    return columns_of(
        steps=steps,
        policy=policy,
        value=value,
        entropy=entropy,
        extra=extra.weighted,
        teacher_kl=extra.teacher_kl,
        squared_advantage=known(advantages, learn).square().sum(),
        rho_clipped=(clipped & learn).sum().to(rhos.dtype),
        rho=total_rho,
        squared_rho=rhos.square().sum(),
        kl=total_rho - steps - log_rhos.sum(),
        target=known(targets, learn).sum(),
        squared_target=known(targets, learn).square().sum(),
    )
