"""APPO (IMPACT): PPO's clip around a target network of the policy, so that old data may be used more than once."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from agents.learner.algorithms.kl_terms import magnet_targets
from agents.learner.algorithms.loss_inputs import (
    check_terms,
    entropy_of,
    group_log_probs,
    loss_inputs_of,
    optional_terms,
    report_of,
    vtrace_of,
)
from agents.learner.algorithms.objective import ForwardPasses, LossWeights, Total
from agents.learner.config import LearnerConfig
from agents.learner.data.batch import Batch
from agents.losses.policy import appo_loss, zero_invalid
from agents.losses.value import value_loss
from agents.nets.heads import Head
from agents.nets.network import NetworkOutput

SLOW_LOG_PROBS = "target_log_probs"


class APPOObjective:
    """V-trace with the target network's ratios, and the surrogate clipped around the target network.

    Source: Luo et al. 2020, IMPACT: importance weighted asynchronous architectures with clipped target networks.
    """

    def __init__(self, config: LearnerConfig, head: Head) -> None:
        check_terms(config, head)
        self._config = config
        self._head = head

    @property
    def passes(self) -> ForwardPasses:
        """The target network."""
        return ForwardPasses(target=True)

    def precomputed(self, batch: Batch, *, current: NetworkOutput, total: Total) -> Mapping[str, Tensor]:
        """None."""
        del batch, current, total
        return {}

    @torch.no_grad()
    def target_precomputed(self, batch: Batch, *, target: NetworkOutput) -> Mapping[str, Tensor]:
        """Log-probabilities float32 [B, T, G] that the target network gives to the choices, and what the magnet
        says."""
        dist_params = target.logits[:, : batch.valid.shape[1]]
        log_probs = group_log_probs(dist_params, batch, head=self._head, config=self._config)
        return {SLOW_LOG_PROBS: log_probs.permute(2, 1, 0), **magnet_targets(self._head, target, batch)}

    def loss(self, output: NetworkOutput, batch: Batch, loss_weights: LossWeights) -> tuple[Tensor, Tensor]:
        """As in the protocol."""
        config = self._config
        inputs = loss_inputs_of(output, batch, head=self._head, config=config)
        target_log_probs = batch.precomputed[SLOW_LOG_PROBS].permute(2, 1, 0)
        learn, groups = inputs.learn, inputs.groups
        returns = vtrace_of(
            inputs, zero_invalid(target_log_probs - groups.behaviour, inputs.valid).contiguous(), config=config
        )
        advantages = returns.advantages / loss_weights.advantage_scale
        terms = zip(groups.log_probs, groups.behaviour, target_log_probs, advantages, strict=True)
        policy = torch.stack([appo_loss(*term, clip=config.clip_ratio, valid=learn) for term in terms]).sum()
        targets = returns.targets.mean(0)
        value = value_loss(inputs.values, targets, valid=learn)
        entropy = entropy_of(inputs, self._head)
        auxiliary = optional_terms(inputs, batch, head=self._head, config=config, loss_weights=loss_weights)
        loss = policy + config.value_cost * value - loss_weights.entropy_cost * entropy + auxiliary.weighted
        log_ratios = groups.log_probs.detach() - target_log_probs
        stacked = report_of(
            inputs,
            policy=policy,
            value=value,
            entropy=entropy,
            auxiliary=auxiliary,
            advantages=returns.advantages.mean(0),
            targets=targets,
            clipped=(log_ratios.abs() > math.log1p(config.clip_ratio)).any(0),
        )
        return loss, stacked
