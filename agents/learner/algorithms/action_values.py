"""Base of the objectives that learn the values of actions: replayed rows, n-step targets, errors of rows, statistics.

Shape letters: B rows, T unroll length.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from league.agents.learner.algorithms.loss_inputs import scaled_rewards
from league.agents.learner.algorithms.loss_stats import stack_stats
from league.agents.learner.algorithms.objective import ForwardPasses, Loss, Total
from league.agents.learner.algorithms.q_config import QLearningConfig
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.losses.q_learning import NStep, n_step, row_errors
from league.agents.nets.network import NetworkOutput


class ActionValueObjective:
    """An objective without a policy loss, whose rows may be replayed; its target network gives what follows."""

    needs_fresh = False

    def __init__(self, config: LearnerConfig, options: QLearningConfig) -> None:
        if config.has_teacher:
            raise ValueError("teacher_cost: action values have no policy to hold to a teacher; set it to 0")
        if config.value_normalisation != "none":
            raise ValueError(f"value_normalisation: {config.value_normalisation} is for state values; use none")
        self._config = config
        self._options = options

    @property
    def epochs(self) -> int:
        """One optimizer step on a batch."""
        return 1

    @property
    def passes(self) -> ForwardPasses:
        """The target network."""
        return ForwardPasses(target=True)

    def precomputed(self, batch: Batch, *, current: NetworkOutput, total: Total) -> Mapping[str, Tensor]:
        """No targets."""
        del batch, current, total
        return {}

    def steps_of(self, batch: Batch) -> NStep:
        """The n steps after each decision."""
        return n_step(
            scaled_rewards(batch, self._config.reward_scales),
            batch.discounts * self._config.gamma,
            valid=batch.valid,
            steps=self._options.n_steps,
        )

    def loss_from(self, batch: Batch, learn: Tensor, *, critic: Tensor, policy: Tensor, errors: Tensor) -> Loss:
        """The loss of a microbatch.

        Args:
          learn: bool [B, T], decisions that count.
          critic, policy: float32 [B, T], terms of the loss with gradients. errors: float32 [B, T], of the values.
        """
        weights = learn.float() if batch.weights is None else learn * batch.weights[:, None]
        terms = (torch.where(learn, term, 0.0) * weights for term in (critic, policy))
        critic_sum, policy_sum = (term.sum() for term in terms)
        errors = torch.where(learn, errors.detach(), 0.0)
        steps = learn.sum().to(errors.dtype)
        zero = torch.zeros_like(steps)
        columns = stack_stats(
            steps=steps,
            policy=policy_sum.detach(),
            value=critic_sum.detach(),
            entropy=zero,
            auxiliary=zero,
            teacher_kl=zero,
            squared_advantage=errors.square().sum(),
            rho_clipped=zero,
            rho=steps,
            squared_rho=steps,
            kl=zero,
            target=zero,
            squared_target=zero,
        )
        priorities = row_errors(errors, learn, max_share=self._options.max_error_share)
        return Loss(critic_sum + policy_sum, columns, priorities)
