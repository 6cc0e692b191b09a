"""The clock core: counts the decisions of an episode, for games that last a fixed time and do not show it.

With one decision left another choice is best than with many, and a position is worth something else (Pardo et al. 2018,
Time limits in reinforcement learning, section 2).

Shape letters: B rows, T steps, D features, K parts of an episode.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import Block, Core
from league.agents.nets.config import NetworkConfig

MAX_PARTS = 32
"""Most parts that an episode is divided into."""


@dataclass(frozen=True)
class ClockConfig:
    """Its options. decisions: of a seat in the longest episode; later ones count as the last."""

    decisions: int = 32

    def __post_init__(self) -> None:
        """Check.

        Raises:
          ValueError: there is no decision.
        """
        if self.decisions < 1:
            raise ValueError(f"decisions must be at least 1, got {self.decisions}")


class ClockCore(nn.Module):
    """Scales and moves every feature by the part of the episode that a decision falls into.

    At first every scale is 1 and every move 0. The state is float32 [B, 1], the decisions made so far.

    Source: Perez et al. 2018, FiLM: visual reasoning with a general conditioning layer, eq. 2.
    """

    def __init__(self, num_features: int, decisions: int) -> None:
        super().__init__()
        self.decisions = decisions
        self.num_parts = min(decisions, MAX_PARTS)
        self.scales = nn.Parameter(torch.zeros(self.num_parts, num_features))
        self.moves = nn.Parameter(torch.zeros(self.num_parts, num_features))

    def forward(self, features: Tensor, *, resets: Tensor | None, core: Tensor) -> tuple[Tensor, Tensor]:
        """Features [B, T, D] and state [B, 1] of features [B, T, D], resets bool [B, T] (None for none) and state."""
        steps = torch.arange(features.shape[1], device=features.device).expand(features.shape[:2])
        counts = core + steps
        if resets is not None:
            started = torch.where(resets, steps, -1).cummax(dim=1).values  # the last start up to each step, -1 for none
            counts = torch.where(started >= 0, steps - started, counts)
        parts = (counts.long() * self.num_parts // self.decisions).clamp(max=self.num_parts - 1)
        scales, moves = (table.to(features.dtype)[parts] for table in (self.scales, self.moves))
        return torch.addcmul(features + moves, features, scales), counts[:, -1:].float() + 1.0


def build_clock(num_features: int, config: NetworkConfig, generator: torch.Generator, *, options: ClockConfig) -> Core:
    """A core of one block that keeps the width of the features; nothing in it is drawn at random."""
    del config, generator
    return Core((Block("core", ClockCore(num_features, options.decisions), ("resets", "core")),), num_features, 1)
