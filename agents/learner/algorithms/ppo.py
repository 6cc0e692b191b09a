"""PPO: targets and normalised advantages fixed for the whole batch, then a clipped surrogate, over several epochs.

Shape letters: B rows, T unroll length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from league.agents.learner.algorithms.actor_critic import ActorCritic, Terms
from league.agents.learner.algorithms.config import PPOConfig
from league.agents.learner.algorithms.loss_inputs import LossInputs, vtrace_of
from league.agents.learner.algorithms.objective import ForwardPasses, Loss, LossWeights, Total
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.losses.policy import normalise_advantages, ppo_loss, zero_invalid
from league.agents.losses.returns import gae
from league.agents.losses.value import clipped_value_loss, value_loss
from league.agents.nets.heads import Head
from league.agents.nets.network import NetworkOutput
from league.envs.protocol import SEAT_GROUP


class PPOObjective(ActorCritic):
    """Advantages by GAE, or by V-trace for old data (option `targets`); a clipped ratio per group of sub-actions.

    Source: Schulman et al. 2017, Proximal policy optimisation algorithms; Huang et al. 2022, The 37 implementation
    details of proximal policy optimisation (here the advantages are normalised over the batch, not a minibatch).
    """

    _options: PPOConfig

    def __init__(self, config: LearnerConfig, head: Head, options: PPOConfig) -> None:
        super().__init__(config, head, options)

    @property
    def epochs(self) -> int:
        """The configured number; the surrogate's clip bounds the effect of several steps on one batch."""
        return self._options.epochs

    @property
    def passes(self) -> ForwardPasses:
        """One pass for values and ratios before the first step; the target network if there is a magnet."""
        return replace(super().passes, current=True)

    @torch.no_grad()
    def precomputed(self, batch: Batch, *, current: NetworkOutput, total: Total) -> Mapping[str, Tensor]:
        """`advantages`, `targets` and `old_values`, float32 [B, T] each."""
        inputs = self.inputs(current, batch)
        advantages, targets = self._estimates(inputs)
        if self._config.normalise_advantages:
            advantages = self._normalised(advantages, inputs.learn, batch, total)
        fixed = {"advantages": advantages, "targets": targets, "old_values": inputs.values}
        return {name: tensor.t().contiguous() for name, tensor in fixed.items()}

    def terms(self, inputs: LossInputs, batch: Batch, *, advantage_scale: float) -> Terms:
        del advantage_scale
        clip, learn = self._options.clip_ratio, inputs.learn
        advantages, targets = batch.precomputed["advantages"].t(), batch.precomputed["targets"].t()
        pairs = zip(inputs.groups.log_probs, inputs.groups.behaviour, strict=True)
        return Terms(
            policy=torch.stack([ppo_loss(*pair, advantages, clip=clip, valid=learn) for pair in pairs]).sum(),
            value=self._value_loss(inputs, targets, old_values=batch.precomputed["old_values"].t()),
            advantages=advantages,
            targets=targets,
            clipped=(inputs.groups.log_rhos.abs() > math.log1p(clip)).any(0),
        )

    def loss(self, output: NetworkOutput, batch: Batch, loss_weights: LossWeights) -> Loss:
        """As in the protocol; UPGO's advantages stay raw, as the values are."""
        return super().loss(output, batch, replace(loss_weights, advantage_scale=1.0))

    def _normalised(self, advantages: Tensor, learn: Tensor, batch: Batch, total: Total) -> Tensor:
        """Normalised advantages [T, B], of each seat group by itself: groups earn on scales of their own."""
        groups = [learn]
        if SEAT_GROUP in batch.obs:
            marks = batch.obs[SEAT_GROUP][:, : learn.shape[0]].bool()
            groups = [learn & mark.t() for mark in marks.unbind(-1)]
        floor, result = self._config.advantage_floor, torch.zeros_like(advantages)
        for group in groups:
            result += normalise_advantages(advantages, valid=group, total=total, floor=floor)
        return result

    def _value_loss(self, inputs: LossInputs, targets: Tensor, *, old_values: Tensor) -> Tensor:
        clip = self._options.clip_value
        if clip is None:
            return value_loss(inputs.values, targets, valid=inputs.learn)
        return clipped_value_loss(inputs.values, old_values, targets, clip=clip, valid=inputs.learn)

    def _estimates(self, inputs: LossInputs) -> tuple[Tensor, Tensor]:
        """Advantages without importance weight, and value targets; float32 [T, B] each."""
        options, values = self._options, inputs.values.contiguous()
        if options.targets == "gae":
            advantages = gae(
                inputs.discounts,
                inputs.rewards,
                values,
                inputs.bootstrap,
                lambda_=options.lambda_,
                valid=inputs.valid,
            )
            return advantages, advantages + values
        by_group = vtrace_of(inputs, inputs.groups.log_rhos, options=options)
        targets = by_group.targets.mean(0)
        # The surrogate already has the ratio: the advantage is taken without it.
        next_targets = torch.cat([targets[1:], inputs.bootstrap[None]])
        return zero_invalid(inputs.rewards + inputs.discounts * next_targets - values, inputs.valid), targets
