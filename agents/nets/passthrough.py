"""Features of which a part goes past a module unchanged, so that one tensor between blocks can serve a later block.

Shape letters: ... leading axes, D features of the module, R floats that go past it, B rows, T steps, C core state.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from agents.nets.blocks import Block


class PassBy(nn.Module):
    """A module without side inputs on all but the last R features."""

    def __init__(self, module: nn.Module, num_carried: int) -> None:
        super().__init__()
        self.module = module
        self.num_carried = num_carried

    def forward(self, features: Tensor) -> Tensor:
        """[..., D + R] -> [..., D' + R]."""
        own, carried = features[..., : -self.num_carried], features[..., -self.num_carried :]
        output: Tensor = self.module(own)
        return torch.cat([output, carried.to(output.dtype)], dim=-1)


class PassByCore(nn.Module):
    """A block of a core on all but the last R features."""

    def __init__(self, module: nn.Module, num_carried: int) -> None:
        super().__init__()
        self.module = module
        self.num_carried = num_carried

    def forward(self, features: Tensor, *, resets: Tensor | None, core: Tensor) -> tuple[Tensor, Tensor]:
        """Features [B, T, D' + R] and state [B, C] of features [B, T, D + R] and state [B, C]."""
        own, carried = features[..., : -self.num_carried], features[..., -self.num_carried :]
        output, core = self.module(own, resets=resets, core=core)
        return torch.cat([output, carried.to(output.dtype)], dim=-1), core


def let_pass(block: Block, num_carried: int) -> Block:
    """The same block with `num_carried` floats going past it; the block itself where there are none."""
    if not num_carried:
        return block
    wrap = PassByCore if "core" in block.side_inputs else PassBy
    return Block(block.name, wrap(block.module, num_carried), block.side_inputs)
