"""APPO (IMPACT): PPO's clip around a target network of the policy, so that data may be used more than once.

Shape letters: B rows, T unroll length, G groups of sub-actions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from league.agents.learner.algorithms.actor_critic import ActorCritic, Terms
from league.agents.learner.algorithms.config import APPOConfig
from league.agents.learner.algorithms.loss_inputs import LossInputs, group_log_probs, vtrace_of
from league.agents.learner.algorithms.objective import ForwardPasses
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.losses.policy import appo_loss, zero_invalid
from league.agents.losses.value import value_loss
from league.agents.nets.heads import Head
from league.agents.nets.network import NetworkOutput

TARGET_LOG_PROBS = "target_log_probs"


class APPOObjective(ActorCritic):
    """V-trace with the target network's ratios, and the surrogate clipped around the target network.

    Source: Luo et al. 2020, IMPACT: importance weighted asynchronous architectures with clipped target networks.
    """

    _options: APPOConfig

    def __init__(self, config: LearnerConfig, head: Head, options: APPOConfig) -> None:
        super().__init__(config, head, options)

    @property
    def epochs(self) -> int:
        """The configured number; the surrogate's clip bounds the effect of several steps on one batch."""
        return self._options.epochs

    @property
    def passes(self) -> ForwardPasses:
        """The target network."""
        return ForwardPasses(target=True)

    @torch.no_grad()
    def target_precomputed(self, batch: Batch, *, target: NetworkOutput) -> Mapping[str, Tensor]:
        """Log-probabilities float32 [B, T, G] of the choices under the target network, and the base's targets."""
        dist_params = target.logits[:, : batch.valid.shape[1]]
        log_probs = group_log_probs(dist_params, batch, head=self._head, action_groups=self._options.action_groups)
        return {TARGET_LOG_PROBS: log_probs.permute(2, 1, 0), **super().target_precomputed(batch, target=target)}

    def terms(self, inputs: LossInputs, batch: Batch, *, advantage_scale: float) -> Terms:
        clip, learn, groups = self._options.clip_ratio, inputs.learn, inputs.groups
        target_log_probs = batch.precomputed[TARGET_LOG_PROBS].permute(2, 1, 0)
        log_rhos = zero_invalid(target_log_probs - groups.behaviour, inputs.valid).contiguous()
        returns = vtrace_of(inputs, log_rhos, options=self._options)
        targets = returns.targets.mean(0)
        scaled = returns.advantages / advantage_scale
        by_group = zip(groups.log_probs, groups.behaviour, target_log_probs, scaled, strict=True)
        return Terms(
            policy=torch.stack([appo_loss(*group, clip=clip, valid=learn) for group in by_group]).sum(),
            value=value_loss(inputs.values, targets, valid=learn),
            advantages=returns.advantages.mean(0),
            targets=targets,
            clipped=((groups.log_probs.detach() - target_log_probs).abs() > math.log1p(clip)).any(0),
        )
