"""The head of DDPG and TD3: one action of a box, and critics that see the observation and an action.

Shape letters: ... any leading axes, A = the flattened size of the action, C critics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import EncoderBuilder, SideInputs, compute_dtype, orthogonal_dense, run_block
from league.agents.nets.config import NetworkConfig
from league.agents.nets.heads import VALUE_GAIN, GaussianHead
from league.agents.nets.network_parts import ENCODERS, resolve
from league.envs.protocol import ActionSpec, ArraySpec

ACTION = "action"
"""Field of a critic's observations that holds the action."""


@dataclass(frozen=True)
class DeterministicConfig:
    """Options of `deterministic`.

    Fields:
      critics: networks that value an action, 1 for DDPG and 2 for TD3.
      noise: standard deviation where the head samples, as frozen opponents and evaluations do, in halves of the box's
        width. A little of it keeps them from replaying one game.
    """

    critics: int = 2
    noise: float = 0.01

    def problems(self) -> list[str]:
        found = [] if 1 <= self.critics <= 64 else [f"critics: {self.critics} is not in [1, 64]"]
        return found if 0 < self.noise <= 1 else [*found, f"noise: {self.noise} is not in (0, 1]"]


class DeterministicHead(GaussianHead):
    """Actions low + (high - low) (tanh(output) + 1) / 2; its distribution adds normal noise of a fixed width.

    Args:
      observations: fields that the critics read; they have an encoder of the network's kind each.

    Source: Lillicrap et al. 2016, Continuous control with deep reinforcement learning, section 7; Fujimoto et al. 2018.

    Raises:
      ValueError: the game takes no box, or one without width or bounds; the network has a memory.
    """

    name = "deterministic"

    def __init__(
        self,
        actions: ActionSpec,
        config: NetworkConfig,
        generator: torch.Generator,
        options: DeterministicConfig,
        *,
        observations: Mapping[str, ArraySpec],
    ) -> None:
        super().__init__(actions, config, generator)
        if not (math.isfinite(actions.low) and math.isfinite(actions.high) and actions.low < actions.high):
            raise ValueError(f"head: deterministic needs finite bounds, got [{actions.low}, {actions.high}]")
        if config.core != "none":
            raise ValueError(
                f"head: the critics of deterministic have no memory, core is {config.core}; use core: none"
            )
        self.low, self.high = actions.low, actions.high
        self.half_width = (actions.high - actions.low) / 2.0
        del self.log_std
        self.register_buffer(
            "log_std", torch.full((self.num_outputs,), math.log(options.noise * self.half_width)), persistent=False
        )
        fields = {**observations, ACTION: ArraySpec((self.num_outputs,), "float32")}
        self.critics = nn.ModuleList([_Critic(fields, config, generator) for _ in range(options.critics)])

    def dist_params_of(self, outputs: Tensor, action_mask: Tensor | None) -> Tensor:
        """As in the base, with the means within the bounds."""
        del action_mask
        return super().dist_params_of(self.low + self.half_width * (outputs.float().tanh() + 1.0), None)

    def clipped(self, actions: Tensor) -> Tensor:
        """The actions [..., *shape] as the env makes them, float32 [..., A]."""
        return actions.float().flatten(actions.dim() - len(self.shape)).clamp(self.low, self.high)

    def action_values(self, obs: Mapping[str, Tensor], actions: Tensor) -> Tensor:
        """Q float32 [C, ...] of observation fields [..., *shape] and actions [..., A] within the bounds."""
        scaled = (actions - self.low) / self.half_width - 1.0
        return torch.stack([critic(obs, scaled) for critic in self.critics])


class _Critic(nn.Module):
    """An encoder of observation and action, and one output."""

    def __init__(self, fields: Mapping[str, ArraySpec], config: NetworkConfig, generator: torch.Generator) -> None:
        super().__init__()
        encoder = cast(EncoderBuilder, resolve(config.encoder, ENCODERS, kind="encoder"))(fields, config, generator)
        self._blocks, self._fields = encoder.blocks, tuple(fields)
        self.parts = nn.ModuleList([block.module for block in encoder.blocks])
        self.output = orthogonal_dense(encoder.num_features, 1, gain=VALUE_GAIN, generator=generator)

    def forward(self, obs: Mapping[str, Tensor], actions: Tensor) -> Tensor:
        """Float32 [...] of fields [..., *shape] and actions float32 [..., A] in [-1, 1]."""
        leading = actions.shape[:-1]
        fields = {name: field.flatten(0, len(leading) - 1) for name, field in obs.items() if name in self._fields}
        fields[ACTION] = actions.reshape(-1, actions.shape[-1])
        side = SideInputs(fields, None, actions.new_zeros(len(fields[ACTION]), 0), None)
        features: Tensor | None = None
        for block in self._blocks:
            features = cast(Tensor, run_block(block, features, side))
        assert features is not None, "an encoder without blocks"
        values: Tensor = self.output(features.to(compute_dtype(self.output.weight))).float()
        return values.view(leading)
