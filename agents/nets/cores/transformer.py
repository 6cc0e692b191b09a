"""The transformer core: each step attends to the last steps of its own episode.

Every layer keeps its inputs of the last L steps, so that a step costs one step's work. A stack of layers sees
further back than L. Unrolled or step by step, results are equal: a step attends to itself and the L before it.

Shape letters: B rows, T steps, W width, L steps of memory, D input features, C = layers * L * (W + 1).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from league.agents.nets.attention import EXCLUDED, Norm, TransformerLayer
from league.agents.nets.blocks import Block, Core, compute_dtype, orthogonal_dense
from league.agents.nets.config import NetworkConfig

DISTANCE_STD = 0.02
"""Initial scale of the scores by distance: small against 1, so that content decides at first."""


class CoreInput(nn.Module):
    """Maps features to the width of the core."""

    def __init__(self, num_features: int, size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.linear = orthogonal_dense(num_features, size, gain=1.0, generator=generator)

    def forward(self, features: Tensor) -> Tensor:
        """[..., D] -> [..., W] in the compute dtype."""
        output: Tensor = self.linear(features.to(compute_dtype(self.linear.weight)))
        return output


class MemoryLayer(nn.Module):
    """One transformer layer over the steps of an unroll and the L before it.

    Its slice of the packed state is float32 [B, L * (W + 1)]: L flags, 1 for a remembered step, then the layer's
    inputs of these steps, oldest first, 0 where nothing is remembered. A state of zeros is an empty memory.
    """

    def __init__(self, size: int, num_heads: int, context: int, slice_start: int, generator: torch.Generator) -> None:
        super().__init__()
        self.context = context
        self.slice_start = slice_start
        self.slice_size = context * (size + 1)
        self.layer = TransformerLayer(size, num_heads, generator)
        self.distance_scores = nn.Parameter(
            torch.empty(num_heads, context + 1).normal_(std=DISTANCE_STD, generator=generator)
        )

    def forward(self, features: Tensor, *, resets: Tensor | None, core: Tensor) -> tuple[Tensor, Tensor]:
        """Run T steps.

        Args:
          features: floating [B, T, W].
          resets: bool [B, T], True where the step is the first of its episode; None if no step is.
          core: float32 [B, C] of all layers, before the first step.
        Returns:
          Features [B, T, W] in the compute dtype, and the state [B, C] with this layer's slice replaced.
        """
        features = features.to(self.layer.dtype)
        rows, steps, size = features.shape
        slice_ = core[:, self.slice_start : self.slice_start + self.slice_size]
        memory = slice_[:, self.context :].reshape(rows, self.context, size).to(features.dtype)
        episodes = self._episodes(slice_[:, : self.context] > 0.5, resets, steps)
        output = self.layer(features, self._scores(episodes, steps), memory=memory)

        known = episodes[:, steps:] == episodes[:, -1:]
        seen = torch.cat([memory, features], dim=1)[:, steps:]
        kept = torch.where(known.unsqueeze(-1), seen, 0.0).flatten(1)
        before, after = core[:, : self.slice_start], core[:, self.slice_start + self.slice_size :]
        return output, torch.cat([before, known.float(), kept.float(), after], dim=1)

    def _episodes(self, remembered: Tensor, resets: Tensor | None, steps: int) -> Tensor:
        """int64 [B, L + T], episode number of each place, 0 at the start; -1 if there is no step."""
        earlier = remembered.long() - 1
        if resets is None:
            return torch.cat([earlier, earlier.new_zeros(earlier.shape[0], steps)], dim=1)
        return torch.cat([earlier, resets.long().cumsum(1)], dim=1)

    def _scores(self, episodes: Tensor, steps: int) -> Tensor:
        """Attention scores, float [B, H, T, L + T]: by distance if a step may attend, else so low that it does not."""
        places = torch.arange(self.context + steps, device=episodes.device)
        distance = places[self.context :, None] - places
        near = (distance >= 0) & (distance <= self.context)
        allowed = near & (episodes[:, self.context :, None] == episodes[:, None])
        scores = self.distance_scores[:, distance.clamp(0, self.context)]
        return torch.where(allowed.unsqueeze(1), scores, EXCLUDED)


def build_transformer(num_features: int, config: NetworkConfig, generator: torch.Generator) -> Core:
    """Build `config.core_layers` layers of width `config.core_size` with a context of `config.core_context` steps."""
    size, context = config.core_size, config.core_context
    blocks = [Block("core_input", CoreInput(num_features, size, generator))]
    for index in range(config.core_layers):
        start = index * context * (size + 1)
        layer = MemoryLayer(size, config.attention_heads, context, start, generator)
        blocks.append(Block(f"core_{index}", layer, ("resets", "core")))
    blocks.append(Block("core_norm", Norm(size)))
    return Core(tuple(blocks), size, config.core_layers * context * (size + 1))
