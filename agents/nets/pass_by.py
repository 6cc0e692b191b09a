"""Features of which a part goes past a module unchanged, so that one tensor between blocks can serve a later block.

Shape letters: ... leading axes, D features of the module, R floats that go past it, B rows, T steps, C core state.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from agents.nets.blocks import Block


class PassBy(nn.Module):
    """A module without side inputs on the first D features."""

    def __init__(self, module: nn.Module, num_features: int) -> None:
        super().__init__()
        self.module = module
        self.num_features = num_features

    def forward(self, features: Tensor) -> Tensor:
        """[..., D + R] -> [..., D' + R]."""
        output: Tensor = self.module(features[..., : self.num_features])
        return torch.cat([output, features[..., self.num_features :].to(output.dtype)], dim=-1)


class PassByCore(nn.Module):
    """A block of a core on the first D features."""

    def __init__(self, module: nn.Module, num_features: int) -> None:
        super().__init__()
        self.module = module
        self.num_features = num_features

    def forward(self, features: Tensor, *, resets: Tensor | None, core: Tensor) -> tuple[Tensor, Tensor]:
        """Features [B, T, D' + R] and state [B, C] of features [B, T, D + R] and state [B, C]."""
        output, core = self.module(features[..., : self.num_features], resets=resets, core=core)
        return torch.cat([output, features[..., self.num_features :].to(output.dtype)], dim=-1), core


def let_pass(block: Block, num_features: int) -> Block:
    """The same block on the first `num_features` of wider features."""
    wrap = PassByCore if "core" in block.side_inputs else PassBy
    return Block(block.name, wrap(block.module, num_features), block.side_inputs)
