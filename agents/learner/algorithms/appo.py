"""APPO (IMPACT): PPO's clip around a slow copy of the policy, so that old data may be used more than once."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from agents.learner.algorithms.kl_terms import magnet_constants
from agents.learner.algorithms.loss_inputs import (
    check_terms,
    decisions_of,
    entropy_of,
    group_log_probs,
    optional_terms,
    report_of,
    vtrace_of,
)
from agents.learner.algorithms.objective import Coefficients, Passes, Total
from agents.learner.config import LearnerConfig
from agents.learner.data.batch import Batch
from agents.losses.policy import appo_loss, known
from agents.losses.value import value_loss
from agents.nets.heads import Head
from agents.nets.network import NetworkOutput

SLOW_LOG_PROBS = "slow_log_probs"


class APPOObjective:
    """V-trace with the slow copy's ratios, and the surrogate clipped around the slow copy.

    Source: Luo et al. 2020, IMPACT: importance weighted asynchronous architectures with clipped target networks.
    """

    def __init__(self, config: LearnerConfig, head: Head) -> None:
        check_terms(config, head)
        self._config = config
        self._head = head

    @property
    def passes(self) -> Passes:
        """The slow copy."""
        return Passes(slow=True)

    def constants(self, batch: Batch, *, current: NetworkOutput, total: Total) -> Mapping[str, Tensor]:
        """None."""
        del batch, current, total
        return {}

    @torch.no_grad()
    def slow_constants(self, batch: Batch, *, slow: NetworkOutput) -> Mapping[str, Tensor]:
        """Log-probabilities float32 [B, T, G] that the slow copy gives to the choices, and what the magnet says."""
        parameters = slow.logits[:, : batch.valid.shape[1]]
        log_probs = group_log_probs(parameters, batch, head=self._head, config=self._config)
        return {SLOW_LOG_PROBS: log_probs.permute(2, 1, 0), **magnet_constants(self._head, slow, batch)}

    def loss(self, output: NetworkOutput, batch: Batch, coefficients: Coefficients) -> tuple[Tensor, Tensor]:
        """As in the protocol."""
        config = self._config
        decisions = decisions_of(output, batch, head=self._head, config=config)
        slow_log_probs = batch.constants[SLOW_LOG_PROBS].permute(2, 1, 0)
        learn, groups = decisions.learn, decisions.groups
        returns = vtrace_of(
            decisions, known(slow_log_probs - groups.behaviour, decisions.valid).contiguous(), config=config
        )
        advantages = returns.advantages / coefficients.advantage_scale
        terms = zip(groups.log_probs, groups.behaviour, slow_log_probs, advantages, strict=True)
        policy = torch.stack([appo_loss(*term, clip=config.clip_ratio, valid=learn) for term in terms]).sum()
        targets = returns.targets.mean(0)
        value = value_loss(decisions.values, targets, valid=learn)
        entropy = entropy_of(decisions, self._head)
        extra = optional_terms(decisions, batch, head=self._head, config=config, coefficients=coefficients)
        loss = policy + config.value_cost * value - coefficients.entropy_cost * entropy + extra.weighted
        log_ratios = groups.log_probs.detach() - slow_log_probs
        columns = report_of(
            decisions,
            policy=policy,
            value=value,
            entropy=entropy,
            extra=extra,
            advantages=returns.advantages.mean(0),
            targets=targets,
            clipped=(log_ratios.abs() > math.log1p(config.clip_ratio)).any(0),
        )
        return loss, columns
