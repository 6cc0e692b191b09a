"""APPO (IMPACT): PPO's clip around a slow copy of the policy, so that old data may be used more than once."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from agents.learner.batch import Batch
from agents.learner.config import LearnerConfig
from agents.learner.magnet import magnet_constants
from agents.learner.objective import Coefficients, Passes, Total
from agents.learner.terms import (
    check_optional_terms,
    decisions_of,
    entropy_of,
    optional_terms,
    report_of,
)
from agents.losses.policy import appo_loss, known
from agents.losses.value import value_loss
from agents.losses.vtrace import vtrace
from agents.nets.heads import Head
from agents.nets.network import NetworkOutput

SLOW_LOG_PROBS = "slow_log_probs"


class APPOObjective:
    """V-trace with the slow copy's ratios, and the surrogate clipped around the slow copy.

    Source: Luo et al. 2020, IMPACT: importance weighted asynchronous architectures with clipped target networks.
    """

    def __init__(self, config: LearnerConfig, head: Head) -> None:
        check_optional_terms(config, head)
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
        """Log-probabilities float32 [B, T] that the slow copy gives to the actions, and what the magnet says."""
        parameters = slow.logits[:, : batch.valid.shape[1]]
        log_probs = self._head.log_prob(parameters, batch.actions)
        return {SLOW_LOG_PROBS: log_probs, **magnet_constants(self._head, slow, batch)}

    def loss(self, output: NetworkOutput, batch: Batch, coefficients: Coefficients) -> tuple[Tensor, Tensor]:
        """As in the protocol."""
        config = self._config
        decisions = decisions_of(output, batch, head=self._head, gamma=config.gamma)
        slow_log_probs = batch.constants[SLOW_LOG_PROBS].t()
        learn = decisions.learn
        returns = vtrace(
            known(slow_log_probs - decisions.behaviour, decisions.valid).contiguous(),
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
        policy = appo_loss(
            decisions.log_probs,
            decisions.behaviour,
            slow_log_probs,
            returns.advantages / coefficients.advantage_scale,
            clip=config.clip_ratio,
            valid=learn,
        )
        value = value_loss(decisions.values, returns.targets, valid=learn)
        entropy = entropy_of(decisions, self._head)
        extra = optional_terms(
            decisions, batch, head=self._head, config=config, advantage_scale=coefficients.advantage_scale
        )
        loss = policy + config.value_cost * value - coefficients.entropy_cost * entropy + extra
        log_ratios = decisions.log_probs.detach() - slow_log_probs
        columns = report_of(
            decisions,
            policy=policy,
            value=value,
            entropy=entropy,
            extra=extra,
            advantages=returns.advantages,
            targets=returns.targets,
            clipped=log_ratios.abs() > math.log1p(config.clip_ratio),
        )
        return loss, columns
