"""Passes the last features around a module unchanged, so that one tensor between blocks can serve a later block.

Shape letters: ... leading axes, D features of the module, R floats that bypass it, B rows, T steps, C core state.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import Block


class Passthrough(nn.Module):
    """Applies a module without side inputs to all but the last R features."""

    def __init__(self, module: nn.Module, num_passthrough: int) -> None:
        super().__init__()
        self.module = module
        self.num_passthrough = num_passthrough

    def forward(self, features: Tensor) -> Tensor:
        """[..., D + R] -> [..., D' + R]."""
        own, passed_through = features[..., : -self.num_passthrough], features[..., -self.num_passthrough :]
        output: Tensor = self.module(own)
        return torch.cat([output, passed_through.to(output.dtype)], dim=-1)


class PassthroughCore(nn.Module):
    """Applies a core's block to all but the last R features."""

    def __init__(self, module: nn.Module, num_passthrough: int) -> None:
        super().__init__()
        self.module = module
        self.num_passthrough = num_passthrough

    def forward(
        self, features: Tensor, *, resets: Tensor | None, core: Tensor, **more: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Features [B, T, D' + R] and state [B, C] of features [B, T, D + R] and state [B, C]."""
        own, passed_through = features[..., : -self.num_passthrough], features[..., -self.num_passthrough :]
        output, core = self.module(own, resets=resets, core=core, **more)
        return torch.cat([output, passed_through.to(output.dtype)], dim=-1), core


def passthrough(block: Block, num_passthrough: int) -> Block:
    """The same block with `num_passthrough` floats that bypass it; the block itself if there are none."""
    if not num_passthrough:
        return block
    wrap = PassthroughCore if "core" in block.side_inputs else Passthrough
    return replace(block, module=wrap(block.module, num_passthrough))
