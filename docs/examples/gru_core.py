"""A core: one GRU layer, whose state is zeroed where an episode starts."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import Block, Core, compute_dtype
from league.agents.nets.config import NetworkConfig


@dataclass(frozen=True)
class GruConfig:
    """Its options: the width of the state."""

    size: int = 32


class Gru(nn.Module):
    """B rows, T steps, D features in, H = C floats of state."""

    def __init__(self, num_features: int, size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.cell = nn.GRUCell(num_features, size)
        for parameter in self.cell.parameters():
            nn.init.uniform_(parameter, -(size**-0.5), size**-0.5, generator=generator)

    def forward(self, features: Tensor, *, resets: Tensor | None, core: Tensor) -> tuple[Tensor, Tensor]:
        """Features [B, T, D], resets bool [B, T], state float32 [B, C] -> features [B, T, H] and the last state."""
        dtype = compute_dtype(self.cell.weight_ih)  # float32 or bfloat16; the state stays float32
        state, outputs = core.to(dtype), []
        for step, inputs in enumerate(features.to(dtype).unbind(1)):
            if resets is not None:
                state = state * ~resets[:, step, None]
            state = self.cell(inputs, state).to(dtype)
            outputs.append(state)
        return torch.stack(outputs, 1), state.float()


def build(num_features: int, config: NetworkConfig, generator: torch.Generator, *, options: GruConfig) -> Core:
    """A core of one block; it takes the state, and the flags of the steps that begin an episode."""
    gru = Gru(num_features, options.size, generator)
    return Core((Block("gru", gru, ("resets", "core")),), num_features=options.size, core_size=options.size)
