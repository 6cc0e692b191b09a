"""The V-trace actor-critic, IMPALA's loss: targets from the microbatch's own values, every row by itself.

Shape letters: B rows, T unroll length, G groups of an action's parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from agents.learner.algorithms.kl_terms import magnet_targets
from agents.learner.algorithms.loss_inputs import (
    LossInputs,
    check_terms,
    entropy_of,
    loss_inputs_of,
    optional_terms,
    report_of,
    vtrace_of,
)
from agents.learner.algorithms.objective import ForwardPasses, LossWeights, Total
from agents.learner.config import LearnerConfig
from agents.learner.data.batch import Batch
from agents.losses.action_groups import grouped_policy_gradient_loss
from agents.losses.neurd import neurd_entropy_loss, neurd_loss
from agents.losses.value import value_loss
from agents.nets.heads import CategoricalHead, Head
from agents.nets.network import NetworkOutput


class VTraceObjective:
    """Policy gradient, value and entropy with V-trace corrections, plus the optional terms.

    Every group of an action's parts has a ratio and a trace of its own; the value regresses on the mean of the groups'
    targets.

    Source: Espeholt et al. 2018, IMPALA, section 4.2.
    """

    def __init__(self, config: LearnerConfig, head: Head) -> None:
        check_terms(config, head)
        if config.policy_loss == "neurd" and not isinstance(head, CategoricalHead):
            raise ValueError(f"policy_loss: neurd moves the logits of one categorical, not of a {type(head).__name__}")
        self._config = config
        self._head = head

    @property
    def passes(self) -> ForwardPasses:
        """The target network where there is a magnet."""
        return ForwardPasses(target=self._config.magnet_cost > 0)

    def precomputed(self, batch: Batch, *, current: NetworkOutput, total: Total) -> Mapping[str, Tensor]:
        """None."""
        del batch, current, total
        return {}

    def target_precomputed(self, batch: Batch, *, target: NetworkOutput) -> Mapping[str, Tensor]:
        """What the magnet says."""
        return magnet_targets(self._head, target, batch)

    def loss(self, output: NetworkOutput, batch: Batch, loss_weights: LossWeights) -> tuple[Tensor, Tensor]:
        """As in the protocol."""
        config = self._config
        inputs = loss_inputs_of(output, batch, head=self._head, config=config)
        returns = vtrace_of(inputs, inputs.groups.log_rhos, config=config)
        targets = returns.targets.mean(0)
        policy = self._policy_loss(inputs, returns.advantages / loss_weights.advantage_scale)
        value = value_loss(inputs.values, targets, valid=inputs.learn)
        entropy = entropy_of(inputs, self._head)
        auxiliary = optional_terms(inputs, batch, head=self._head, config=config, loss_weights=loss_weights)
        entropy_loss = self._entropy_loss(inputs, entropy)
        loss = policy + config.value_cost * value + loss_weights.entropy_cost * entropy_loss + auxiliary.weighted
        stacked = report_of(
            inputs,
            policy=policy,
            value=value,
            entropy=entropy,
            auxiliary=auxiliary,
            advantages=returns.advantages.mean(0),
            targets=targets,
            clipped=(inputs.groups.log_rhos > log_of(config.clip_rho)).any(0),
        )
        return loss, stacked

    def _policy_loss(self, inputs: LossInputs, advantages: Tensor) -> Tensor:
        """A scalar. advantages: float32 [G, T, B], scaled, importance weight included."""
        if self._config.policy_loss != "neurd":
            return grouped_policy_gradient_loss(inputs.groups.log_probs, advantages, valid=inputs.learn)
        return neurd_loss(
            inputs.dist_params.transpose(0, 1),
            inputs.actions.t(),
            advantages[0],
            min_prob=self._config.neurd_min_prob,
            max_logit=self._config.neurd_max_logit,
            valid=inputs.learn,
        )

    def _entropy_loss(self, inputs: LossInputs, entropy: Tensor) -> Tensor:
        """The entropy as a loss, a scalar, in the geometry of the policy loss."""
        if self._config.policy_loss != "neurd":
            return -entropy
        return neurd_entropy_loss(inputs.dist_params.transpose(0, 1), valid=inputs.learn)


def log_of(bound: float | None) -> float:
    """Logarithm of a clip, infinity where there is none."""
    return math.inf if bound is None else math.log(bound)
