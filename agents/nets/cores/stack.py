"""The stack core: features of the last few decisions beside those of this one, for speeds that are not seen.

What a frame stack does for pictures (Mnih et al. 2015, Human-level control through deep reinforcement learning), behind
the encoder, so that no observation is encoded or stored twice. Nothing in it waits for an earlier step.

Shape letters: B rows, T steps, D features, K earlier steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import Block, Core
from league.agents.nets.config import NetworkConfig


@dataclass(frozen=True)
class StackConfig:
    """Its options. steps: K."""

    steps: int = 1

    def __post_init__(self) -> None:
        """Check.

        Raises:
          ValueError: there is no earlier step.
        """
        if self.steps < 1:
            raise ValueError(f"steps must be at least 1, got {self.steps}")


class StackCore(nn.Module):
    """Puts the features of the K steps before beside those of each step, zeros for steps before the episode.

    The state is float32 [B, K * D], the features of the last K steps, the oldest first.
    """

    def __init__(self, num_features: int, steps: int) -> None:
        super().__init__()
        self.num_features = num_features
        self.steps = steps

    def forward(self, features: Tensor, *, resets: Tensor | None, core: Tensor) -> tuple[Tensor, Tensor]:
        """Features [B, T, (1 + K) * D] and state, of features [B, T, D], resets bool [B, T] (or None) and state."""
        length = features.shape[1]
        before = core.view(-1, self.steps, self.num_features).to(features.dtype)
        history = torch.cat([before, features], dim=1)
        ages = None if resets is None else _steps_since_start(resets, known=self.steps)
        parts = [features]
        for age in range(1, self.steps + 1):
            earlier = history[:, self.steps - age : self.steps - age + length]
            parts.append(earlier if ages is None else earlier * (ages >= age).unsqueeze(2))
        last = history[:, length:]
        if ages is not None:
            begun = torch.arange(self.steps - 1, -1, -1, device=features.device)  # steps from each to the last one
            last = last * (ages[:, -1:] >= begun).unsqueeze(2)
        return torch.cat(parts, dim=2), last.reshape(-1, self.steps * self.num_features).float()


def _steps_since_start(resets: Tensor, *, known: int) -> Tensor:
    """int64 [B, T], steps since the start of the episode, of resets bool [B, T].

    Where it started before the unroll, whose state has zeros for what there is not, `known` more than since its begin.
    """
    steps = torch.arange(resets.shape[1], device=resets.device).expand(resets.shape)
    started = torch.where(resets, steps, -known).cummax(dim=1).values
    return steps - started


def build_stack(num_features: int, config: NetworkConfig, generator: torch.Generator, *, options: StackConfig) -> Core:
    """A core of one block without parameters."""
    del config, generator
    module = StackCore(num_features, options.steps)
    num_outputs, core_size = (1 + options.steps) * num_features, options.steps * num_features
    return Core((Block("core", module, ("resets", "core")),), num_outputs, core_size)
