"""PPO: targets and normalised advantages fixed for the whole batch, then a clipped surrogate, over several epochs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from agents.learner.algorithms.kl_terms import magnet_constants
from agents.learner.algorithms.loss_inputs import (
    Decisions,
    check_terms,
    decisions_of,
    entropy_of,
    optional_terms,
    report_of,
    vtrace_of,
)
from agents.learner.algorithms.objective import Coefficients, Passes, Total
from agents.learner.config import LearnerConfig
from agents.learner.data.batch import Batch
from agents.losses.policy import known, ppo_loss
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
    def passes(self) -> Passes:
        """One pass for values and ratios before the first step; the slow copy where there is a magnet."""
        return Passes(current=True, slow=self._config.magnet_cost > 0)

    @torch.no_grad()
    def constants(self, batch: Batch, *, current: NetworkOutput, total: Total) -> Mapping[str, Tensor]:
        """advantages, targets, old_values: float32 [B, T] each."""
        decisions = decisions_of(current, batch, head=self._head, config=self._config)
        advantages, targets = self._estimates(decisions)
        if self._config.normalise_advantages:
            advantages = normalised(advantages, decisions.learn, total)
        fixed = {"advantages": advantages, "targets": targets, "old_values": decisions.values}
        return {name: tensor.t().contiguous() for name, tensor in fixed.items()}

    @torch.no_grad()
    def slow_constants(self, batch: Batch, *, slow: NetworkOutput) -> Mapping[str, Tensor]:
        """What the magnet says."""
        return magnet_constants(self._head, slow, batch)

    def loss(self, output: NetworkOutput, batch: Batch, coefficients: Coefficients) -> tuple[Tensor, Tensor]:
        """As in the protocol."""
        config = self._config
        decisions = decisions_of(output, batch, head=self._head, config=config)
        advantages, targets, old_values = (
            batch.constants[name].t() for name in ("advantages", "targets", "old_values")
        )
        learn = decisions.learn
        pairs = zip(decisions.groups.log_probs, decisions.groups.behaviour, strict=True)
        policy = torch.stack([ppo_loss(*pair, advantages, clip=config.clip_ratio, valid=learn) for pair in pairs]).sum()
        if config.clip_value is None:
            value = value_loss(decisions.values, targets, valid=learn)
        else:
            value = clipped_value_loss(decisions.values, old_values, targets, clip=config.clip_value, valid=learn)
        entropy = entropy_of(decisions, self._head)
        unscaled = replace(coefficients, advantage_scale=1.0)  # the values, and so UPGO's advantages, are raw here
        extra = optional_terms(decisions, batch, head=self._head, config=config, coefficients=unscaled)
        loss = policy + config.value_cost * value - coefficients.entropy_cost * entropy + extra.weighted
        columns = report_of(
            decisions,
            policy=policy,
            value=value,
            entropy=entropy,
            extra=extra,
            advantages=advantages,
            targets=targets,
            clipped=(decisions.groups.log_rhos.abs() > math.log1p(config.clip_ratio)).any(0),
        )
        return loss, columns

    def _estimates(self, decisions: Decisions) -> tuple[Tensor, Tensor]:
        """Advantages without importance weight, and value targets; float32 [T, B] each."""
        config, values = self._config, decisions.values.contiguous()
        if config.targets == "gae":
            advantages = gae(
                decisions.discounts,
                decisions.rewards,
                values,
                decisions.bootstrap,
                lambda_=config.lambda_,
                valid=decisions.valid,
            )
            return advantages, advantages + values
        by_group = vtrace_of(decisions, decisions.groups.log_rhos, config=config)
        targets = by_group.targets.mean(0)
        # The ratio is in the surrogate already: here the advantage goes without it.
        next_targets = torch.cat([targets[1:], decisions.bootstrap[None]])
        return known(decisions.rewards + decisions.discounts * next_targets - values, decisions.valid), targets


def normalised(advantages: Tensor, learn: Tensor, total: Total, *, epsilon: float = 1e-8) -> Tensor:
    """Advantages with mean 0 and standard deviation 1 over the learnt-from decisions of all replicas.

    Args:
      advantages: float32 [T, B]; learn: bool [T, B].
      total: adds up over replicas.
      epsilon: added to the standard deviation.
    """
    chosen = known(advantages, learn).double()
    count, first = total(torch.stack([learn.sum().double(), chosen.sum()]))
    mean = first / count.clamp(min=1.0)
    squares = total(known((chosen - mean).square(), learn).sum()[None])[0]
    deviation = (squares / (count - 1.0).clamp(min=1.0)).sqrt() + epsilon
    return known((chosen - mean) / deviation, learn).to(advantages.dtype)
