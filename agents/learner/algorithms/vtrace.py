"""The V-trace actor-critic, IMPALA's loss: computes targets from the microbatch's own values, row by row.

Shape letters: B rows, T unroll length, G groups of sub-actions.
"""

from __future__ import annotations

import math

from torch import Tensor

from agents.learner.algorithms.actor_critic import ActorCritic, Terms
from agents.learner.algorithms.config import VTraceConfig
from agents.learner.algorithms.loss_inputs import LossInputs, vtrace_of
from agents.learner.config import LearnerConfig
from agents.learner.data.batch import Batch
from agents.losses.action_groups import grouped_policy_gradient_loss
from agents.losses.neurd import neurd_entropy_loss, neurd_loss
from agents.losses.value import value_loss
from agents.nets.heads import CategoricalHead, Head


class VTraceObjective(ActorCritic):
    """Policy gradient with V-trace corrections, or NeuRD in its place.

    Every group of sub-actions has its own ratio and trace; the value fits the mean of the groups' targets.

    Source: Espeholt et al. 2018, IMPALA, section 4.2.
    """

    _options: VTraceConfig

    def __init__(self, config: LearnerConfig, head: Head, options: VTraceConfig) -> None:
        super().__init__(config, head, options)
        if options.policy_loss == "neurd" and not isinstance(head, CategoricalHead):
            raise ValueError(f"policy_loss: neurd moves the logits of one categorical, not of a {type(head).__name__}")

    def terms(self, inputs: LossInputs, batch: Batch, *, advantage_scale: float) -> Terms:
        """As in the base."""
        del batch
        returns = vtrace_of(inputs, inputs.groups.log_rhos, options=self._options)
        targets = returns.targets.mean(0)
        return Terms(
            policy=self._policy_loss(inputs, returns.advantages / advantage_scale),
            value=value_loss(inputs.values, targets, valid=inputs.learn),
            advantages=returns.advantages.mean(0),
            targets=targets,
            clipped=(inputs.groups.log_rhos > _log_of(self._options.clip_rho)).any(0),
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


def _log_of(bound: float | None) -> float:
    """Logarithm of a clip, infinity if there is none."""
    return math.inf if bound is None else math.log(bound)
