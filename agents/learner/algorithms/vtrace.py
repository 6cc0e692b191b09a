"""The V-trace actor-critic, IMPALA's loss: computes targets from the microbatch's own values, row by row.

Shape letters: B rows, T unroll length, G groups of sub-actions.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from league.agents.learner.algorithms.actor_critic import ActorCritic, Terms
from league.agents.learner.algorithms.config import VTraceConfig
from league.agents.learner.algorithms.loss_inputs import LossInputs, scaled_rewards, vtrace_of
from league.agents.learner.algorithms.loss_stats import stack_stats
from league.agents.learner.algorithms.objective import Loss, LossWeights
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.losses.action_groups import grouped_policy_gradient_loss
from league.agents.losses.neurd import neurd_entropy_loss, neurd_loss
from league.agents.losses.one_pass import OnePassSteps, OnePassWeights, one_pass_loss
from league.agents.losses.value import value_loss
from league.agents.losses.vtrace import log_of_clip
from league.agents.nets.heads import CategoricalHead, Head
from league.agents.nets.network import NetworkOutput


class VTraceObjective(ActorCritic):
    """Policy gradient with V-trace corrections, or NeuRD in its place.

    Every group of sub-actions has its own ratio and trace; the value fits the mean of the groups' targets.

    Attributes:
      is_plain: True if there are no other terms than the policy's, the value's and the entropy.

    Source: Espeholt et al. 2018, IMPALA, section 4.2.
    """

    _options: VTraceConfig

    def __init__(self, config: LearnerConfig, head: Head, options: VTraceConfig) -> None:
        super().__init__(config, head, options)
        if options.policy_loss == "neurd" and not isinstance(head, CategoricalHead):
            raise ValueError(f"policy_loss: neurd moves the logits of one categorical, not of a {type(head).__name__}")
        others = options.policy_loss == "neurd" or options.action_groups or options.upgo_cost or options.magnet_cost
        # A subclass may define other terms, or another distribution of the same parameters.
        self.is_plain = type(self) is VTraceObjective and type(head) is CategoricalHead and not others

    def loss(self, output: NetworkOutput, batch: Batch, loss_weights: LossWeights) -> Loss:
        """As in the protocol; in one pass where there are no other terms than the policy's, the value's and entropy."""
        if not self.is_plain or loss_weights.teacher_cost:
            return super().loss(output, batch, loss_weights)
        given = self.steps(batch), self.weights(loss_weights)
        loss, statistics = one_pass_loss(output.logits, output.values, *given)
        zero = 0.0 * statistics["steps"]
        return Loss(loss, stack_stats(**statistics, auxiliary=zero, teacher_kl=zero))

    def steps(self, batch: Batch) -> OnePassSteps:
        """The decisions of a batch for the loss in one pass."""
        return OnePassSteps(
            actions=batch.actions,
            log_probs=batch.log_probs,
            rewards=scaled_rewards(batch, self._config.reward_scales),
            discounts=batch.discounts,
            valid=batch.valid,
            learn=batch.learn,
        )

    def weights(self, loss_weights: LossWeights) -> OnePassWeights:
        """The weights of the loss in one pass."""
        options = self._options
        return OnePassWeights(
            gamma=self._config.gamma,
            value_cost=options.value_cost,
            entropy_cost=loss_weights.entropy_cost,
            advantage_scale=loss_weights.advantage_scale,
            advantage_limit=loss_weights.advantage_limit,
            clip_rho=options.clip_rho,
            clip_c=options.clip_c,
            clip_pg_rho=options.clip_pg_rho,
            lambda_=options.lambda_,
            corrects=options.correction == "vtrace",
        )

    def inputs(self, output: NetworkOutput, batch: Batch) -> LossInputs:
        """As in the base; without a correction every ratio of the groups is 1."""
        inputs = super().inputs(output, batch)
        if self._options.correction == "vtrace":
            return inputs
        groups = replace(inputs.groups, log_rhos=torch.zeros_like(inputs.groups.log_rhos))
        return replace(inputs, groups=groups)

    def terms(self, inputs: LossInputs, batch: Batch, *, advantage_scale: float) -> Terms:
        del batch
        returns = vtrace_of(inputs, inputs.groups.log_rhos, options=self._options)
        targets = returns.targets.mean(0)
        return Terms(
            policy=self._policy_loss(inputs, returns.advantages / advantage_scale),
            value=value_loss(inputs.values, targets, valid=inputs.learn),
            advantages=returns.advantages.mean(0),
            targets=targets,
            clipped=(inputs.groups.log_rhos > log_of_clip(self._options.clip_rho)).any(0),
        )

    def _policy_loss(self, inputs: LossInputs, advantages: Tensor) -> Tensor:
        """The policy's loss, a scalar. advantages: float32 [G, T, B], scaled, importance weight included."""
        if self._options.policy_loss != "neurd":
            return grouped_policy_gradient_loss(inputs.groups.log_probs, advantages, valid=inputs.learn)
        return neurd_loss(
            inputs.dist_params.transpose(0, 1),
            inputs.actions.t(),
            advantages[0],
            min_prob=self._options.neurd_min_prob,
            max_logit=self._options.neurd_max_logit,
            valid=inputs.learn,
        )

    def entropy_loss(self, inputs: LossInputs, entropy: Tensor) -> Tensor:
        """The entropy as a loss, a scalar, in the geometry of the policy loss."""
        if self._options.policy_loss != "neurd":
            return -entropy
        return neurd_entropy_loss(inputs.dist_params.transpose(0, 1), valid=inputs.learn)
