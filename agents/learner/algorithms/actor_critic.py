"""Base of the actor-critic objectives: weighted policy, value, entropy and optional terms, with statistics.

An objective of this family defines its `terms`; PPO and APPO also define targets precomputed for the whole batch.
Everything else that a loss needs is here.

Shape letters: B rows, T unroll length.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from league.agents.learner.algorithms.config import ActorCriticConfig
from league.agents.learner.algorithms.kl_terms import has_kl, magnet_sum, magnet_targets, teacher_sum
from league.agents.learner.algorithms.loss_inputs import LossInputs, loss_inputs_of
from league.agents.learner.algorithms.loss_stats import stack_stats
from league.agents.learner.algorithms.objective import ForwardPasses, Loss, LossWeights, Total
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.losses.action_groups import grouped_policy_gradient_loss, grouped_upgo
from league.agents.losses.policy import MAX_LOG_RATIO, zero_invalid
from league.agents.nets.action_values.deterministic import DeterministicHead
from league.agents.nets.action_values.q_values import QValuesHead
from league.agents.nets.heads import Head
from league.agents.nets.network import NetworkOutput
from league.agents.nets.sub_actions import num_sub_actions


@dataclass(frozen=True)
class Terms:
    """The terms that differ between objectives.

    Fields:
      policy, value: summed losses, scalars; they carry gradients.
      advantages: float32 [T, B], raw; targets: float32 [T, B], of the values. Both for the statistics.
      clipped: bool [T, B], True if the ratio was clipped.
    """

    policy: Tensor
    value: Tensor
    advantages: Tensor
    targets: Tensor
    clipped: Tensor


@dataclass(frozen=True)
class OptionalTerms:
    """The terms that the config can switch on, scalars.

    Fields:
      weighted: sum of the UPGO loss and of the KLs to the target network and to the teacher, each times its cost.
      teacher_kl: KL(teacher || policy), unweighted.
    """

    weighted: Tensor
    teacher_kl: Tensor


class ActorCritic(ABC):
    """An `Objective` whose loss is policy + value_cost * value + entropy_cost * entropy loss + optional terms."""

    needs_fresh = True
    learns_from: tuple[str, ...] = ()

    def __init__(self, config: LearnerConfig, head: Head, options: ActorCriticConfig) -> None:
        _check_head(config, head, options)
        self._config = config
        self._options = options
        self._head = head

    @abstractmethod
    def terms(self, inputs: LossInputs, batch: Batch, *, advantage_scale: float) -> Terms:
        """The policy and value losses of a microbatch.

        Args:
          inputs: its decisions; batch: the same, with precomputed targets.
          advantage_scale: root mean square by which advantages are divided.
        """

    def entropy_loss(self, inputs: LossInputs, entropy: Tensor) -> Tensor:
        """The entropy as a loss, a scalar. entropy: summed, a scalar."""
        del inputs
        return -entropy

    def inputs(self, output: NetworkOutput, batch: Batch) -> LossInputs:
        """The decisions of a microbatch with the network's outputs for them."""
        return loss_inputs_of(
            output,
            batch,
            head=self._head,
            gamma=self._config.gamma,
            action_groups=self._options.action_groups,
            reward_scales=self._config.reward_scales,
        )

    @property
    def epochs(self) -> int:
        """One optimizer step on a batch."""
        return 1

    @property
    def passes(self) -> ForwardPasses:
        """The target network if there is a magnet."""
        return ForwardPasses(target=self._options.magnet_cost > 0)

    def precomputed(self, batch: Batch, *, current: NetworkOutput, total: Total) -> Mapping[str, Tensor]:
        """No targets."""
        del batch, current, total
        return {}

    @torch.no_grad()
    def target_precomputed(self, batch: Batch, *, target: NetworkOutput) -> Mapping[str, Tensor]:
        """The magnet's policy."""
        return magnet_targets(self._head, target, batch)

    def loss(self, output: NetworkOutput, batch: Batch, loss_weights: LossWeights) -> Loss:
        inputs = self.inputs(output, batch)
        terms = self.terms(inputs, batch, advantage_scale=loss_weights.advantage_scale)
        entropy = zero_invalid(inputs.entropies, inputs.learn).sum()
        optional = self._optional_terms(inputs, batch, loss_weights)
        entropy_loss = self.entropy_loss(inputs, entropy)
        loss = (
            terms.policy
            + self._options.value_cost * terms.value
            + loss_weights.entropy_cost * entropy_loss
            + optional.weighted
        )
        return Loss(loss, _stats(inputs, terms, entropy=entropy, optional=optional, limit=loss_weights.advantage_limit))

    def _optional_terms(self, inputs: LossInputs, batch: Batch, loss_weights: LossWeights) -> OptionalTerms:
        """UPGO, with ratios clipped per group, and the KLs."""
        options, head = self._options, self._head
        total = teacher_kl = inputs.values.new_zeros(())
        if options.upgo_cost:
            returns = grouped_upgo(
                inputs.groups.log_rhos,
                inputs.discounts,
                inputs.rewards,
                inputs.values.detach().contiguous(),
                inputs.bootstrap,
                clip_pg_rho=options.clip_pg_rho,
                valid=inputs.valid,
            )
            upgoing = grouped_policy_gradient_loss(
                inputs.groups.log_probs, returns.advantages / loss_weights.advantage_scale, valid=inputs.learn
            )
            total = total + options.upgo_cost * upgoing
        if options.magnet_cost:
            total = total + options.magnet_cost * magnet_sum(head, inputs.dist_params, batch)
        if loss_weights.teacher_cost:
            teacher_kl = teacher_sum(head, inputs.dist_params, batch)
            total = total + loss_weights.teacher_cost * teacher_kl
        return OptionalTerms(total, teacher_kl)


def _check_head(config: LearnerConfig, head: Head, options: ActorCriticConfig) -> None:
    """Refuse terms that the policy's distribution does not have.

    Raises:
      ValueError: the head has no policy to learn, a magnet or a teacher needs a KL that the head lacks, or the groups
        are not of its sub-actions.
    """
    if isinstance(head, QValuesHead | DeterministicHead):
        name, other = ("q_values", "dqn") if isinstance(head, QValuesHead) else ("deterministic", "td3")
        raise ValueError(f"network.head: {name} has no policy for a policy loss; use {other}, or head: auto")
    for name, wanted in (("magnet_cost", options.magnet_cost > 0), ("teacher_cost", config.has_teacher)):
        if wanted and not has_kl(head):
            raise ValueError(f"{name}: policies of a {type(head).__name__} have no KL in closed form; set it to 0")
    grouped = sum(len(group) for group in options.action_groups)
    if grouped and grouped != num_sub_actions(head):
        raise ValueError(
            f"action_groups: {grouped} sub-actions are in groups, the actions have {num_sub_actions(head)}"
        )


@torch.no_grad()
def _stats(inputs: LossInputs, terms: Terms, *, entropy: Tensor, optional: OptionalTerms, limit: float) -> Tensor:
    """The columns of a microbatch, see `loss_stats.stack_stats`. limit: of the advantages that are counted.

    The terms of all columns are one tensor, which is masked, squared and summed at once.
    """
    learn = inputs.learn
    counts = torch.stack([learn, terms.clipped & learn]).flatten(1).sum(1)
    terms_of = torch.stack([inputs.log_rhos, inputs.log_rhos, terms.advantages, terms.targets])
    ratios, log_rhos, advantages, _ = terms_of
    torch.clamp(log_rhos, -MAX_LOG_RATIO, MAX_LOG_RATIO, out=ratios).exp_()
    advantages.clamp_(-limit, limit)
    terms_of = torch.where(learn, terms_of, 0.0).flatten(1)
    sums, squares = torch.stack([terms_of, terms_of.square()]).sum(-1).unbind()
    steps, rho_clipped = counts.to(sums.dtype).unbind()
    rho, log_rho, _, target = sums.unbind()
    squared_rho, _, squared_advantage, squared_target = squares.unbind()
    return stack_stats(
        steps=steps,
        policy=terms.policy,
        value=terms.value,
        entropy=entropy,
        auxiliary=optional.weighted,
        teacher_kl=optional.teacher_kl,
        squared_advantage=squared_advantage,
        rho_clipped=rho_clipped,
        rho=rho,
        squared_rho=squared_rho,
        kl=rho - steps - log_rho,
        target=target,
        squared_target=squared_target,
    )
