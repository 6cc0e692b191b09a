"""Deterministic policy gradients for boxes: DDPG, and TD3 with two critics, smoothed targets and a delayed policy.

Shape letters: B rows, T unroll length, C critics, A = the flattened size of the action.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.func import functional_call

from league.agents.learner.algorithms.action_values import ActionValueObjective
from league.agents.learner.algorithms.objective import Loss, LossWeights
from league.agents.learner.algorithms.q_config import DDPGConfig, TD3Config
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.losses.q_learning import bootstrapped
from league.agents.nets.action_values.deterministic import DeterministicHead
from league.agents.nets.heads import Head
from league.agents.nets.network import NetworkOutput

NEXT = "next_values"
"""Precomputed: float32 [B, T], the least of the target critics' values at the observations 1 to T."""


class DDPGObjective(ActionValueObjective):
    """Critics by squared error, and a policy that climbs the first critic.

    Source: Lillicrap et al. 2016, Continuous control with deep reinforcement learning, algorithm 1.

    Raises:
      ValueError: the network's head has no critics, or the network is cut into stages.
    """

    _options: DDPGConfig
    kind, min_critics = "ddpg", 1

    def __init__(self, config: LearnerConfig, head: Head, options: DDPGConfig) -> None:
        super().__init__(config, options)
        if not isinstance(head, DeterministicHead):
            raise ValueError(
                f"{self.kind} learns one action of a box, and network.head is a {type(head).__name__}; use "
                "network.head: deterministic for a box, or learner.algorithm: dqn for numbered actions"
            )
        if len(head.critics) < self.min_critics:
            raise ValueError(
                f"{self.kind} takes the least of {self.min_critics} critics, and network.head.critics is "
                f"{len(head.critics)}; use {{kind: deterministic, critics: {self.min_critics}}}"
            )
        if config.pipeline.stages > 1:
            raise ValueError(
                f"the critics of {self.kind} read observations behind the last of learner.pipeline.stages: "
                f"{config.pipeline.stages}; use stages: 1"
            )
        self._head = head

    @torch.no_grad()
    def target_precomputed(self, batch: Batch, *, target: NetworkOutput) -> Mapping[str, Tensor]:
        """The value of each observation after the first, of the target policy's action with noise."""
        head, options = self._head, self._options
        actions = target.logits[:, 1:].chunk(2, dim=-1)[0]
        if options.smoothing:
            noise = (self._normals(batch, actions) * options.smoothing).clamp(
                -options.smoothing_clip, options.smoothing_clip
            )
            actions = (actions + noise * head.half_width).clamp(head.low, head.high)
        later = {name: field[:, 1:] for name, field in batch.obs.items()}
        return {NEXT: head.action_values(later, actions).amin(0)}

    def loss(self, output: NetworkOutput, batch: Batch, loss_weights: LossWeights) -> Loss:
        head = self._head
        now = {name: field[:, :-1] for name, field in batch.obs.items()}
        targets = bootstrapped(self.steps_of(batch), batch.precomputed[NEXT])
        errors = targets - head.action_values(now, head.clipped(batch.actions))
        policy = torch.zeros_like(targets)
        if loss_weights.update % self._options.policy_delay == 0:
            policy = -self._value_of(now, output.logits[:, :-1].chunk(2, dim=-1)[0])
        return self.loss_from(batch, batch.learn, critic=0.5 * errors.square().sum(0), policy=policy, errors=errors[0])

    def _value_of(self, obs: Mapping[str, Tensor], actions: Tensor) -> Tensor:
        """The first critic's values float32 [B, T] of actions [B, T, A]; the gradient reaches the actions alone."""
        critic = self._head.critics[0]
        fixed = {name: parameter.detach() for name, parameter in critic.named_parameters()}
        scaled = (actions - self._head.low) / self._head.half_width - 1.0
        values: Tensor = functional_call(critic, fixed, (obs, scaled))
        return values

    def _normals(self, batch: Batch, actions: Tensor) -> Tensor:
        """Normal numbers of the shape of actions [B, T, A], the same for the same rows."""
        rows = batch.actions.detach().cpu().contiguous().numpy()
        generator = torch.Generator().manual_seed(zlib.crc32(rows.tobytes()))
        return torch.randn(actions.shape, generator=generator).to(actions.device)


class TD3Objective(DDPGObjective):
    """The same with the smaller of two critics, noise on the action that follows, and a policy updated less often.

    Source: Fujimoto et al. 2018, Addressing function approximation error, algorithm 1.
    """

    kind, min_critics = "td3", 2

    def __init__(self, config: LearnerConfig, head: Head, options: TD3Config) -> None:
        super().__init__(config, head, options)
