"""PPO: targets and normalised advantages fixed for the whole batch, then a clipped surrogate, over several epochs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
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
from agents.losses.policy import ppo_loss, zero_invalid
from agents.losses.returns import gae
from agents.losses.value import clipped_value_loss, value_loss
from agents.nets.heads import Head
from agents.nets.network import NetworkOutput


class PPOObjective:
    """Advantages by GAE, or by V-trace where the data is old (`config.targets`); a clipped ratio per group of parts.

    Source: Schulman et al. 2017, Proximal policy optimisation algorithms; Huang et al. 2022, The 37 implementation
    details of proximal policy optimisation (here the advantages are normalised over the batch, not a minibatch).
    """

    def __init__(self, config: LearnerConfig, head: Head) -> None:
        check_terms(config, head)
        self._config = config
        self._head = head

    @property
    def passes(self) -> ForwardPasses:
        """One pass for values and ratios before the first step; the target network where there is a magnet."""
        return ForwardPasses(current=True, target=self._config.magnet_cost > 0)

    @torch.no_grad()
    def precomputed(self, batch: Batch, *, current: NetworkOutput, total: Total) -> Mapping[str, Tensor]:
        """advantages, targets, old_values: float32 [B, T] each."""
        inputs = loss_inputs_of(current, batch, head=self._head, config=self._config)
        advantages, targets = self._estimates(inputs)
        if self._config.normalise_advantages:
            advantages = normalised(advantages, inputs.learn, total)
        fixed = {"advantages": advantages, "targets": targets, "old_values": inputs.values}
        return {name: tensor.t().contiguous() for name, tensor in fixed.items()}

    @torch.no_grad()
    def target_precomputed(self, batch: Batch, *, target: NetworkOutput) -> Mapping[str, Tensor]:
        """What the magnet says."""
        return magnet_targets(self._head, target, batch)

    def loss(self, output: NetworkOutput, batch: Batch, loss_weights: LossWeights) -> tuple[Tensor, Tensor]:
        """As in the protocol."""
        config = self._config
        inputs = loss_inputs_of(output, batch, head=self._head, config=config)
        advantages, targets, old_values = (
            batch.precomputed[name].t() for name in ("advantages", "targets", "old_values")
        )
        learn = inputs.learn
        pairs = zip(inputs.groups.log_probs, inputs.groups.behaviour, strict=True)
        policy = torch.stack([ppo_loss(*pair, advantages, clip=config.clip_ratio, valid=learn) for pair in pairs]).sum()
        if config.clip_value is None:
            value = value_loss(inputs.values, targets, valid=learn)
        else:
            value = clipped_value_loss(inputs.values, old_values, targets, clip=config.clip_value, valid=learn)
        entropy = entropy_of(inputs, self._head)
        unscaled = replace(loss_weights, advantage_scale=1.0)  # the values, and so UPGO's advantages, are raw here
        auxiliary = optional_terms(inputs, batch, head=self._head, config=config, loss_weights=unscaled)
        loss = policy + config.value_cost * value - loss_weights.entropy_cost * entropy + auxiliary.weighted
        stacked = report_of(
            inputs,
            policy=policy,
            value=value,
            entropy=entropy,
            auxiliary=auxiliary,
            advantages=advantages,
            targets=targets,
            clipped=(inputs.groups.log_rhos.abs() > math.log1p(config.clip_ratio)).any(0),
        )
        return loss, stacked

    def _estimates(self, inputs: LossInputs) -> tuple[Tensor, Tensor]:
        """Advantages without importance weight, and value targets; float32 [T, B] each."""
        config, values = self._config, inputs.values.contiguous()
        if config.targets == "gae":
            advantages = gae(
                inputs.discounts,
                inputs.rewards,
                values,
                inputs.bootstrap,
                lambda_=config.lambda_,
                valid=inputs.valid,
            )
            return advantages, advantages + values
        by_group = vtrace_of(inputs, inputs.groups.log_rhos, config=config)
        targets = by_group.targets.mean(0)
        # The ratio is in the surrogate already: here the advantage goes without it.
        next_targets = torch.cat([targets[1:], inputs.bootstrap[None]])
        return zero_invalid(inputs.rewards + inputs.discounts * next_targets - values, inputs.valid), targets


def normalised(advantages: Tensor, learn: Tensor, total: Total, *, epsilon: float = 1e-8) -> Tensor:
    """Advantages with mean 0 and standard deviation 1 over the learnt-from decisions of all replicas.

    Args:
      advantages: float32 [T, B]; learn: bool [T, B].
      total: adds up over replicas.
      epsilon: added to the standard deviation.
    """
    chosen = zero_invalid(advantages, learn).double()
    count, first = total(torch.stack([learn.sum().double(), chosen.sum()]))
    mean = first / count.clamp(min=1.0)
    squares = total(zero_invalid((chosen - mean).square(), learn).sum()[None])[0]
    deviation = (squares / (count - 1.0).clamp(min=1.0)).sqrt() + epsilon
    return zero_invalid((chosen - mean) / deviation, learn).to(advantages.dtype)
