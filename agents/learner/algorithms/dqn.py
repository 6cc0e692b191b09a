"""Q-learning of numbered actions: double, n-step, dueling by its head, recurrent by its burn-in; Sarsa as an option.

Shape letters: B rows, T unroll length, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from league.agents.learner.algorithms.action_values import ActionValueObjective
from league.agents.learner.algorithms.objective import Forward, Loss, LossWeights
from league.agents.learner.algorithms.q_config import DQNConfig
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.losses.q_learning import NStep, bootstrapped, rescale, unscale
from league.agents.nets.action_values.q_values import QValuesHead
from league.agents.nets.heads import Head
from league.agents.nets.network import NetworkOutput

NEXT = "next_action_values"
"""Precomputed: float32 [B, T, A], the target network's values of the actions at the observations 1 to T."""


class DQNObjective(ActionValueObjective):
    """Moves Q(s, a) to the sum of n rewards and the value of what follows them.

    Sources: Mnih et al. 2015, Human-level control; van Hasselt et al. 2016, Double Q-learning, equation 4; Kapturowski
    et al. 2019, Recurrent experience replay, section 2.3; Sutton and Barto 2018, section 6.4, for Sarsa.

    Raises:
      ValueError: the network's head has no action values, or the unroll is no longer than the burn-in.
    """

    _options: DQNConfig

    def __init__(self, config: LearnerConfig, head: Head, options: DQNConfig) -> None:
        super().__init__(config, options)
        if not isinstance(head, QValuesHead):
            raise ValueError(
                f"dqn learns values of numbered actions, and network.head is a {type(head).__name__}; use "
                "network.head: q_values for numbered actions, or learner.algorithm: td3 for a box"
            )
        if options.burn_in >= config.unroll_length:
            raise ValueError(
                f"burn_in: {options.burn_in} of {config.unroll_length} decisions of an unroll leave none to learn "
                "from; raise learner.unroll_length"
            )
        if options.burn_in and config.pipeline.stages > 1:
            raise ValueError(
                f"burn_in: {options.burn_in} decisions run through the whole network first, which "
                f"learner.pipeline.stages cuts into {config.pipeline.stages}; use stages: 1"
            )
        self._head = head

    @torch.no_grad()
    def target_precomputed(self, batch: Batch, *, target: NetworkOutput) -> Mapping[str, Tensor]:
        """The target network's action values, in units of the return."""
        del batch
        values = self._head.action_values(target.logits, target.values)[:, 1:]
        return {NEXT: unscale(values) if self._options.rescale else values}

    def loss_of(self, forward: Forward, batch: Batch, loss_weights: LossWeights) -> Loss:
        """As in the protocol; the memory is brought up to date first, without gradient."""
        skipped = self._options.burn_in
        if not skipped:
            return self.loss(forward(batch), batch, loss_weights)
        with torch.no_grad():
            core = forward(batch.steps(0, skipped - 1)).core
        rest = replace(batch.steps(skipped, batch.valid.shape[1]), core=core)
        return self.loss(forward(rest), rest, loss_weights)

    def loss(self, output: NetworkOutput, batch: Batch, loss_weights: LossWeights) -> Loss:
        del loss_weights
        values = self._head.action_values(output.logits, output.values)
        steps = self.steps_of(batch)
        following, known = self._following(values.detach(), batch, steps)
        targets = bootstrapped(steps, following)
        chosen = values[:, :-1].gather(-1, batch.actions.unsqueeze(-1)).squeeze(-1)
        wanted = rescale(targets) if self._options.rescale else targets
        squared = self._options.error == "squared"
        error = functional.mse_loss if squared else functional.smooth_l1_loss
        terms = error(chosen, wanted, reduction="none") * (0.5 if squared else 1.0)
        learn = batch.learn & known
        return self.loss_from(batch, learn, critic=terms, policy=torch.zeros_like(terms), errors=wanted - chosen)

    def _following(self, values: Tensor, batch: Batch, steps: NStep) -> tuple[Tensor, Tensor]:
        """The value of each observation after the first, float32 [B, T], and the decisions whose target is known.

        values: float32 [B, T+1, A], of the learning network.
        """
        target = batch.precomputed[NEXT]
        if self._options.target == "max":
            return target.amax(-1), torch.ones_like(batch.valid)
        if self._options.target == "double":
            preferred = values[:, 1:].argmax(-1, keepdim=True)
            return target.gather(-1, preferred).squeeze(-1), torch.ones_like(batch.valid)
        taken = torch.zeros_like(batch.actions)
        taken[:, :-1] = batch.actions[:, 1:]
        acted = torch.zeros_like(batch.valid)  # what was done at the row's end or at a marker is not recorded
        acted[:, :-1] = batch.valid[:, 1:]
        following = target.gather(-1, taken.unsqueeze(-1)).squeeze(-1)
        return following, acted.gather(1, steps.ends - 1) | (steps.discounts == 0)
