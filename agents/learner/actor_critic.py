"""The V-trace actor-critic, IMPALA's loss: targets from the microbatch's own values, every row by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping

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
from agents.losses.policy import policy_gradient_loss
from agents.losses.value import value_loss
from agents.losses.vtrace import vtrace
from agents.nets.heads import Head
from agents.nets.network import NetworkOutput


class VTraceObjective:
    """Policy gradient, value and entropy with V-trace corrections, plus the optional terms.

    Source: Espeholt et al. 2018, IMPALA, section 4.2.
    """

    def __init__(self, config: LearnerConfig, head: Head) -> None:
        check_optional_terms(config, head)
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
        config = self._config
        decisions = decisions_of(output, batch, head=self._head, gamma=config.gamma)
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
        scale = coefficients.advantage_scale
        policy = policy_gradient_loss(decisions.log_probs, returns.advantages / scale, valid=decisions.learn)
        value = value_loss(decisions.values, returns.targets, valid=decisions.learn)
        entropy = entropy_of(decisions, self._head)
        extra = optional_terms(decisions, batch, head=self._head, config=config, advantage_scale=scale)
        loss = policy + config.value_cost * value - coefficients.entropy_cost * entropy + extra
        columns = report_of(
            decisions,
            policy=policy,
            value=value,
            entropy=entropy,
            extra=extra,
            advantages=returns.advantages,
            clipped=decisions.log_rhos > log_of(config.clip_rho),
        )
        return loss, columns


def log_of(bound: float | None) -> float:
    """Logarithm of a clip, infinity where there is none."""
    return math.inf if bound is None else math.log(bound)
