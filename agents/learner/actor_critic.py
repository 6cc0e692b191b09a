"""The V-trace actor-critic, IMPALA's loss: targets from the microbatch's own values, every row by itself.

Shape letters: B rows, T unroll length, H parts of an action, G groups of parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from agents.learner.batch import Batch
from agents.learner.config import LearnerConfig
from agents.learner.magnet import magnet_constants
from agents.learner.objective import Coefficients, Passes, Total
from agents.learner.terms import (
    Decisions,
    check_optional_terms,
    decisions_of,
    entropy_of,
    optional_terms,
    report_of,
)
from agents.losses.action_groups import group_log_rhos, grouped_policy_gradient_loss, grouped_vtrace
from agents.losses.neurd import neurd_entropy_loss, neurd_loss
from agents.losses.policy import policy_gradient_loss
from agents.losses.value import value_loss
from agents.losses.vtrace import vtrace
from agents.nets.heads import CategoricalHead, Head
from agents.nets.network import NetworkOutput
from agents.nets.parts import PartsHead, num_parts


@dataclass(frozen=True)
class _Estimates:
    """The policy loss, a scalar; advantages and value targets float32 [T, B]; clipped: bool [T, B]."""

    policy: Tensor
    advantages: Tensor
    targets: Tensor
    clipped: Tensor


class VTraceObjective:
    """Policy gradient, value and entropy with V-trace corrections, plus the optional terms.

    Source: Espeholt et al. 2018, IMPALA, section 4.2.
    """

    def __init__(self, config: LearnerConfig, head: Head) -> None:
        check_optional_terms(config, head)
        if config.policy_loss == "neurd" and not isinstance(head, CategoricalHead):
            raise ValueError(f"policy_loss: neurd moves the logits of one categorical, not of a {type(head).__name__}")
        grouped = sum(len(group) for group in config.action_groups)
        if grouped and grouped != num_parts(head):
            raise ValueError(f"action_groups: {grouped} parts are in groups, the actions have {num_parts(head)}")
        self._config = config
        self._head = head

    @property
    def passes(self) -> Passes:
        """The slow copy where there is a magnet."""
        return Passes(slow=self._config.magnet_cost > 0)

    def constants(self, batch: Batch, *, current: NetworkOutput, total: Total) -> Mapping[str, Tensor]:
        """None."""
        del batch, current, total
        return {}

    def slow_constants(self, batch: Batch, *, slow: NetworkOutput) -> Mapping[str, Tensor]:
        """What the magnet says."""
        return magnet_constants(self._head, slow, batch)

    def loss(self, output: NetworkOutput, batch: Batch, coefficients: Coefficients) -> tuple[Tensor, Tensor]:
        """As in the protocol."""
        config, scale = self._config, coefficients.advantage_scale
        decisions = decisions_of(output, batch, head=self._head, gamma=config.gamma)
        estimates = self._by_groups(decisions, batch, scale) if config.action_groups else self._whole(decisions, scale)
        value = value_loss(decisions.values, estimates.targets, valid=decisions.learn)
        entropy = entropy_of(decisions, self._head)
        extra = optional_terms(decisions, batch, head=self._head, config=config, advantage_scale=scale)
        disorder = self._disorder(decisions, entropy)
        loss = estimates.policy + config.value_cost * value + coefficients.entropy_cost * disorder + extra
        columns = report_of(
            decisions,
            policy=estimates.policy,
            value=value,
            entropy=entropy,
            extra=extra,
            advantages=estimates.advantages,
            targets=estimates.targets,
            clipped=estimates.clipped,
        )
        return loss, columns

    def _whole(self, decisions: Decisions, scale: float) -> _Estimates:
        """One ratio for the whole action."""
        config = self._config
        returns = vtrace(
            decisions.log_rhos,
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
        clipped = decisions.log_rhos > log_of(config.clip_rho)
        policy = self._policy_loss(decisions, returns.advantages / scale)
        return _Estimates(policy, returns.advantages, returns.targets, clipped)

    def _by_groups(self, decisions: Decisions, batch: Batch, scale: float) -> _Estimates:
        """A ratio and a trace per group. The value regresses on the mean of the groups' targets."""
        config, head = self._config, self._head
        assert isinstance(head, PartsHead), "checked when it was built"
        if batch.part_log_probs is None:
            raise ValueError("action_groups: the unrolls were recorded without the log-probabilities of the parts")
        by_part, used = (part.transpose(1, 2) for part in head.part_log_probs(decisions.parameters, decisions.actions))
        log_ratios = by_part.detach() - batch.part_log_probs.permute(2, 1, 0)  # [H, T, B]
        log_rhos = group_log_rhos(log_ratios, config.action_groups, used=used)
        returns = grouped_vtrace(
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
        policy = grouped_policy_gradient_loss(
            by_part, returns.advantages / scale, config.action_groups, used=used, valid=decisions.learn
        )
        clipped = (log_rhos > log_of(config.clip_rho)).any(0)
        return _Estimates(policy, returns.advantages.mean(0), returns.targets.mean(0), clipped)

    def _policy_loss(self, decisions: Decisions, advantages: Tensor) -> Tensor:
        """A scalar. advantages: float32 [T, B], scaled, importance weight included."""
        if self._config.policy_loss != "neurd":
            return policy_gradient_loss(decisions.log_probs, advantages, valid=decisions.learn)
        return neurd_loss(
            decisions.parameters.transpose(0, 1),
            decisions.actions.t(),
            advantages,
            min_prob=self._config.neurd_min_prob,
            max_logit=self._config.neurd_max_logit,
            valid=decisions.learn,
        )

    def _disorder(self, decisions: Decisions, entropy: Tensor) -> Tensor:
        """The entropy as a loss, a scalar, in the geometry of the policy loss."""
        if self._config.policy_loss != "neurd":
            return -entropy
        return neurd_entropy_loss(decisions.parameters.transpose(0, 1), valid=decisions.learn)


def log_of(bound: float | None) -> float:
    """Logarithm of a clip, infinity where there is none."""
    return math.inf if bound is None else math.log(bound)
